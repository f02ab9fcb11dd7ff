"""The judge's handle of one child: each request has a deadline, each answer is doubted.

Answers are read out of the child's memory, without its help.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch

from data.errors import MachineError
from data.records import RunStatus
from targets.remote import foreign
from targets.remote.accelerator import HOST, Kind
from targets.remote.allowance import Allowance
from targets.remote.arena import Arena, pack
from targets.remote.channel import Closed, Late, Malformed
from targets.remote.ending import ended, forged, raised
from targets.remote.gate import QUEUE_S, Gate
from targets.remote.offspring import Child
from targets.remote.output import Output, SideFault, fences, output, same_names


class Side:
    """A baseline, a candidate or its parent, each in a child of its own."""

    def __init__(
        self,
        child: Child,
        *,
        name: str,
        allowance: Allowance,
        call_s: float = 30.0,
        kind: Kind = HOST,
    ) -> None:
        self.child, self.name, self.kind = child, name, kind
        self.allowance = allowance
        self._call_s = call_s
        """A call that takes longer hangs: the references take milliseconds."""
        self.arena: Arena | None = None
        self._borrowed = False
        self.args: list[list[Any]] = []
        self.slots: Arena | None = None
        self.width = 1
        """Outputs a call."""
        self.gate: Gate | None = None
        """Where calls wait until the judge opens it; None where they start as they come."""

    def begin(self, *, reduced: bool) -> None:
        """The child's own context on the device, before it reads foreign code."""
        at = {"kind": self.kind.name, "index": self.kind.index, "reduced": reduced}
        self._ask({"op": "begin", **at}, first=True)

    def load(
        self,
        source: str,
        *,
        class_name: str = "ModelNew",
        folder: Path | None = None,
        kept: Path | None = None,
        lanes: int | None = None,
    ) -> None:
        """Executes the source; a fault here is IMPORT_FAILED unless it is worse.

        Compiled kernels lie in `folder`, what a child built at run time in `kept`; emulated
        in sub-groups of `lanes` where that is given.
        """
        header = {"op": "load", "class": class_name, "lanes": lanes}
        header |= {k: str(v) if v else None for k, v in (("folder", folder), ("kept", kept))}
        self._ask(header, source.encode(), failed=RunStatus.IMPORT_FAILED, first=True)

    def construct(
        self, init_args: Sequence[Any], state: Mapping[str, torch.Tensor], *, compiled: bool = False
    ) -> None:
        """The model with this state; its names and shapes must be exactly those of `state`."""
        tensors: list[torch.Tensor] = []
        args = [pack(a, tensors) for a in init_args]
        header = {"op": "construct", "args": args, "compile": compiled}
        answer = self._ask_with(header, Arena.holding(tensors))
        try:
            theirs = {str(k): (tuple(s), str(d)) for k, s, d in answer["state"]}
        except (KeyError, TypeError, ValueError) as error:
            raise forged("an answer that is no state") from error
        same_names(theirs, state)
        self.state(state)

    def state(self, state: Mapping[str, torch.Tensor], *, in_place: bool = False) -> None:
        """New parameters and buffers, by `load_state_dict` or each in place."""
        if state:
            header = {"op": "state", "names": list(state), "in_place": in_place}
            self._ask_with(header, Arena.holding([*state.values()]))

    def inputs(self, sets: Sequence[Sequence[Any]]) -> None:
        """Input sets in shared memory. Sets of the same form overwrite those before, in place."""
        tensors: list[torch.Tensor] = []
        args = [[pack(a, tensors) for a in s] for s in sets]
        if self.arena is not None and args == self.args and self.arena.fits(tensors):
            for mine, new in zip(self.arena.tensors, tensors, strict=True):
                mine.copy_(new)
            self.kind.wait()
            return
        for old in (self.arena, self.slots):
            if old is not None:
                old.free()
        self.arena, self.args, self.slots = Arena.holding(tensors, self.kind.new), args, None
        self.kind.wait()
        self._ask_with({"op": "inputs", "sets": args}, self.arena)

    def borrow(self, args: list[list[Any]], arena: Arena) -> None:
        """Input sets in memory that outlives this side: the next one finds its pages there."""
        self.arena, self.args, self._borrowed = arena, args, True
        self._ask_with({"op": "inputs", "sets": args}, arena)

    def outputs_to(self, outputs: Sequence[torch.Tensor], calls: int) -> None:
        """Where a batch leaves its answers: memory that the judge maps."""
        if self.slots is not None:
            self.slots.free()
        self.slots = Arena.shaped([*outputs] * calls, self.kind.new)
        self.width = len(outputs)
        self._ask_with({"op": "slots", "width": self.width}, self.slots)

    def call(self, index: int = 0, *, first: bool = False) -> list[Output]:
        """Where the outputs of a call on this input set lie until the next call."""
        self.blank(calls=1)
        return self.read_answer(self._ask({"op": "call", "set": index}, first=first))

    def blank(self, calls: int | None = None) -> None:
        """NaN where answers will come: what nobody writes must not look like one."""
        if self.kind.maps_answers and self.slots is not None:
            rows = len(self.slots.places) // self.width
            size = self.slots.size if calls is None else self.slots.size // rows * calls
            self.slots.memory.flat[:size].fill_(0xFF)
            self.kind.wait()

    def leave(self) -> None:
        """The outputs of the last call are copied out once more, when all else is done."""
        if self.kind.maps_answers:
            self.blank(calls=1)
            self._ask({"op": "leave"})

    def loop(self, calls: int) -> None:
        """So many calls over the input sets; a baseline's, since nothing is looked at."""
        self._ask({"op": "loop", "calls": calls})

    def start(self, start: bytes) -> dict[str, Any]:
        """Sends a prepared message and waits for its answer: all that is timed."""
        try:
            self.expect_silence()
            self.child.channel.send_raw(start)
            return self._received(self._call_s)
        except Closed as error:
            raise ended(self.child) from error

    def make_gate(self) -> None:
        """A gate, where the device lets calls be queued ahead."""
        gate = Gate()
        told = self._ask({"op": "gate", "size": gate.memory.size}, fds=(gate.memory.fd,))
        gate.memory.close()
        self.gate = gate if told.get("queues") is True else None

    def queue(self, start: bytes) -> bool:
        """Sends a prepared message whose calls wait; whether all were launched in time."""
        self.expect_silence()
        self.child.channel.send_raw(start)
        if not self.child.channel.spoke(QUEUE_S):
            return False
        self._launched()
        return True

    def open_gate(self, *, queued: bool) -> dict[str, Any]:
        """The calls run; waits for their end."""
        assert self.gate is not None
        self.gate.open()
        if not queued:
            self._launched()
        return self._received(self._call_s)

    def _launched(self) -> None:
        if self._received(self._call_s) != {"queued": True}:
            raise forged("an answer before the gate was open")

    def expect_silence(self, within_s: float = 0.0) -> None:
        """FORGED when an answer lies there that nobody has asked for."""
        if self.child.channel.spoke(within_s):
            raise forged("an answer before it was asked")

    def poison(self, sizes: Sequence[int], value: int) -> None:
        """NaN into freed blocks of these sizes, bytes; with a `value` that into all new memory."""
        self._ask({"op": "poison", "sizes": list(sizes), "value": value})

    def fenced_call(self) -> tuple[list[Output], list[tuple[int, int]]]:
        """A call whose new tensors lie between fences: its outputs; address and bytes of each."""
        answer = self._ask({"op": "fenced", "set": 0}, first=True)
        return self.read_answer(answer), fences(answer)

    def watch(self) -> None:
        """Every ATen call of the child is seen from now on; before `load`."""
        self._ask({"op": "watch"})

    def trace(self, *, bounded: bool = False) -> tuple[list[Output], tuple[str, ...], bool]:
        """A watched call: its outputs, library operators, whether own code reaches the output.

        Bounded, it may take no longer than any later call.
        """
        answer = self._ask({"op": "trace", "set": 0}, first=not bounded)
        try:
            ops = tuple(str(o) for o in answer["ops"])
            return self.read_answer(answer), ops, answer["authored"] is True
        except (KeyError, TypeError) as error:
            raise forged("an answer that is no trace") from error

    def races(self, folder: Path, turn: int) -> Any:
        """What the libraries in `folder` saw of a call, as the child tells it."""
        header = {"op": "races", "set": 0, "folder": str(folder), "turn": turn}
        return self._ask(header, first=True).get("seen")

    def read(self, output: Output) -> object:
        """The whole output, out of the child's memory, with its strides."""
        if output.plain:
            return output.value
        if output.slot is not None:
            assert self.slots is not None
            return self.slots.tensors[output.slot].clone()
        if not output.nbytes:
            return torch.empty(output.shape, dtype=output.dtype)
        data = bytearray(output.nbytes)
        self.read_pieces([(output.address, output.nbytes)], data)
        flat = torch.frombuffer(data, dtype=output.dtype)
        return flat.as_strided(output.shape, output.strides)

    def read_pieces(self, pieces: Sequence[tuple[int, int]], into: bytearray) -> None:
        """(address, bytes) one after the other into the buffer, in one system call or a few."""
        try:
            foreign.read(self.child.pid, pieces, into)
        except OSError as error:
            raise self._unreadable(error.errno or 0) from error

    def _unreadable(self, code: int) -> Exception:
        if code == 1:  # EPERM
            return MachineError("process_vm_readv is not permitted: allow ptrace of own processes")
        if code == 3:  # ESRCH
            return ended(self.child)
        return forged("an output that does not lie in its memory")

    def freeze(self) -> None:
        self.child.freeze()

    def thaw(self) -> None:
        self.child.thaw()

    def close(self) -> None:
        """Kills the child and all its descendants."""
        self.child.kill()
        self.child.end()
        for arena in (None if self._borrowed else self.arena, self.slots):
            if arena is not None:
                arena.free()
        self.arena = self.slots = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read_answer(self, answer: Mapping[str, Any]) -> list[Output]:
        """The places that an answer names; raises SideFault for anything but plain tensors."""
        try:
            told = [output(o) for o in answer["outputs"]]
        except SideFault:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise forged(f"outputs that are none ({error})") from error
        return [replace(o, slot=k) for k, o in enumerate(told)] if self.kind.maps_answers else told

    def _ask_with(self, header: dict[str, Any], arena: Arena) -> dict[str, Any]:
        answer = self._ask({**header, "arena": arena.header()}, fds=(arena.fd,), first=True)
        if arena is not self.arena and arena is not self.slots:
            arena.close()
        return answer

    def _ask(
        self,
        header: dict[str, Any],
        body: bytes = b"",
        *,
        fds: Sequence[int] = (),
        failed: RunStatus = RunStatus.CRASHED,
        first: bool = False,
    ) -> dict[str, Any]:
        """`first`: may compile, so that only the job's deadline counts."""
        try:
            self.expect_silence()
            self.child.channel.send(header, body, fds=fds)
        except Closed as error:
            raise ended(self.child) from error
        return self._received(float("inf") if first else self._call_s, failed)

    def _received(self, limit_s: float, failed: RunStatus = RunStatus.CRASHED) -> dict[str, Any]:
        began = time.monotonic()
        try:
            with self.allowance.waiting():
                frame = self.child.channel.receive(began + min(limit_s, self.allowance.left_s))
        except Late as error:
            raise self._late(time.monotonic() - began) from error
        except Closed as error:
            raise ended(self.child) from error
        except Malformed as error:
            raise forged(str(error)) from error
        if "error" in frame.header:
            raise raised(frame.header["error"], failed)
        return frame.header

    def _late(self, waited: float) -> Exception:
        """A child that let us wait as long as no call may take hangs, however slow we were."""
        self.child.kill()
        if waited < self._call_s and self.allowance.wasted:
            return MachineError("the judge itself is too slow here: its own work took the time")
        detail = f"no answer within {waited:.1f} s; the process was killed"
        return SideFault(RunStatus.TIMED_OUT, detail)
