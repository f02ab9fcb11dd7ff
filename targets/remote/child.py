"""The driver inside a child: it runs what it is told and answers where the results lie.

It shares a process with foreign code, so nothing it says is believed: the judge reads the answers
out of the child's memory and holds the clock. It never sees seeds, expected values or the operator
(unless the child is a baseline).
"""

import importlib.util
import itertools
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from targets.remote import fence, inherited, kforge_launch
from targets.remote.accelerator import HOST, Kind, kind
from targets.remote.arena import Arena, name_of, unpack
from targets.remote.channel import Channel, Frame
from targets.remote.described import described, leaves_of, told
from targets.remote.emulation.half import emulated
from targets.remote.memory import HostMemory
from targets.remote.races.watched import watched

_COUNT = itertools.count()


class Driver:
    """What one child has loaded so far."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self.module: Any = None
        self.model: Any = None
        self.compiled: Any = None
        self.kind: type[Any] | None = None
        self.sets: list[list[Any]] = []
        self.slots: list[list[torch.Tensor]] = []
        self.held: Any = None
        self.tracer: Any = None
        self.on: Kind = HOST
        self.fences: Any = None
        self._arenas: list[Arena] = []
        self._hold: Callable[[int], None] | None = None
        self._tell = tell

    def begin(self, frame: Frame) -> dict[str, Any]:
        """The context on the device."""
        self.on = kind(frame.header["kind"], frame.header["index"])
        self.on.begin(reduced=frame.header["reduced"])
        return {}

    def load(self, frame: Frame) -> dict[str, Any]:
        """Executes the source as a module and finds the class."""
        header = frame.header
        if header.get("lanes"):
            kforge_launch.HALVES.update(emulated(header["lanes"]))
        if header.get("folder"):
            kforge_launch.load_from(header["folder"])
        if header.get("kept"):
            inherited.restore(Path(header["kept"]))
        name = f"candidate_{next(_COUNT)}"
        path = Path(os.environ["TMPDIR"], f"{name}.py")
        path.write_bytes(frame.body)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        sys.modules[name] = self.module
        spec.loader.exec_module(self.module)
        self.kind = getattr(self.module, header["class"], None)
        if not isinstance(self.kind, type):
            missing = f"the module has no class {header['class']}"
            raise ImportError(missing)  # noqa: TRY004 (told to people as it is)
        return {}

    def construct(self, frame: Frame) -> dict[str, Any]:
        """The model, with its initial parameters; answers their names, shapes and dtypes."""
        arena = _arena(frame)
        assert self.kind is not None
        self.held = self.model = self.compiled = None
        tensors = [t.clone() for t in arena.tensors]
        made = self.kind(*[unpack(a, tensors) for a in frame.header["args"]])
        self.model = made.to(self.on.place)
        for module in self.model.modules():
            if "Dropout" in type(module).__name__ and hasattr(module, "p"):
                module.p = 0.0
        self.compiled = self.model
        if frame.header["compile"]:
            self.compiled = torch.compile(self.model, dynamic=False)
        state = self.model.state_dict()
        return {"state": [[k, list(v.shape), name_of(v.dtype)] for k, v in state.items()]}

    def state(self, frame: Frame) -> dict[str, Any]:
        """Parameters and buffers: by `load_state_dict`, or each in place."""
        arena = _arena(frame)
        values = dict(zip(frame.header["names"], arena.tensors, strict=True))
        with torch.no_grad():
            if frame.header["in_place"]:
                mine = self.model.state_dict(keep_vars=True)
                for name, value in values.items():
                    mine[name].copy_(value)
            else:
                self.model.load_state_dict({k: v.clone() for k, v in values.items()}, strict=True)
        return {}

    def inputs(self, frame: Frame) -> dict[str, Any]:
        """The input sets; their tensors lie in shared memory from now on."""
        self.held = None
        arena = self._mapped(frame)
        self._arenas = [arena]
        self.sets = [[unpack(a, arena.tensors) for a in args] for args in frame.header["sets"]]
        self.slots = []
        return {}

    def _mapped(self, frame: Frame) -> Arena:
        return Arena.of_header(frame.fds[0], frame.header["arena"], self.on.attach)

    def slots_for(self, frame: Frame) -> dict[str, Any]:
        """Where the outputs of a batch go: one row of tensors a call."""
        arena = self._mapped(frame)
        del self._arenas[1:]
        self._arenas.append(arena)
        width = frame.header["width"]
        self.slots = [arena.tensors[i : i + width] for i in range(0, len(arena.tensors), width)]
        return {}

    def call(self, frame: Frame) -> dict[str, Any]:
        """One call; the outputs stay where they are until the next one."""
        self.held = None
        with torch.no_grad():
            self.held = self.compiled(*self.sets[frame.header["set"]])
        self.leave(frame)
        return {"outputs": described(self.held, self.on.place)}

    def leave(self, _: Frame) -> dict[str, Any]:
        """Copies the outputs to the judge, on the stream that they were computed on; waits."""
        leaves = leaves_of(self.held)
        if self.slots and self.on.maps_answers and _shapes(leaves) == _shapes(self.slots[0]):
            _copy_out(leaves, self.slots[0])
        self.on.wait()
        return {}

    def loop(self, frame: Frame) -> dict[str, Any]:
        """Calls over the sets in turn."""
        with torch.no_grad():
            for i in range(frame.header["calls"]):
                self.held = self.compiled(*self.sets[i % len(self.sets)])
        self.on.wait()
        return {}

    def fenced(self, frame: Frame) -> dict[str, Any]:
        """One call whose new tensors lie between fences."""
        self.held = None
        torch.compiler.set_stance("force_eager")
        self.fences = fence.Fence()  # kept, so that the judge can look at them
        with self.fences:
            answer = self.call(frame)
        torch.compiler.set_stance("default")
        return {**answer, "fences": self.fences.places()}

    def batch(self, frame: Frame) -> dict[str, Any]:
        """A call for each of the first sets, each answer copied out before the next call."""
        self.held = None
        with torch.no_grad(), self._queued(frame):
            for i in range(frame.header["calls"]):
                _copy_out(leaves_of(self.compiled(*self.sets[i])), self.slots[i])
        self.on.wait()
        return {}

    def gate(self, frame: Frame) -> dict[str, Any]:
        """Memory whose first word opens the gate; answers whether calls can wait at one."""
        self._hold = self.on.gate(HostMemory(frame.fds[0], frame.header["size"]))
        return {"queues": self._hold is not None}

    @contextmanager
    def _queued(self, frame: Frame) -> Iterator[None]:
        """What is launched inside waits at the gate, if the judge asks for that, who is told."""
        number = frame.header.get("gate")
        if number is None or self._hold is None:
            yield
            return
        self._hold(number)
        yield
        self._tell({"queued": True})

    def null_batch(self, frame: Frame) -> dict[str, Any]:
        """The batch without its calls: what the copies alone cost, at least.

        On a device the source is one row, which the cache holds as it holds a fresh answer.
        """
        with torch.no_grad(), self._queued(frame):
            for i in range(frame.header["calls"]):
                source = self.slots[0 if self.on.maps_answers else i - 1]
                _copy_out(source, self.slots[i])
        self.on.wait()
        return {}

    def null(self, _: Frame) -> dict[str, Any]:
        """The messages without a call."""
        return {"outputs": described(self.held, self.on.place)}

    def poison(self, frame: Frame) -> dict[str, Any]:
        """Fills freed memory of the outputs' sizes with NaN; or all new memory with a value."""
        self.held = None
        fence.perturb(frame.header["value"])
        blocks = [
            torch.full((max(size // 4, 1),), float("nan"), device=self.on.place)
            for size in frame.header["sizes"]
            for _ in range(3)
        ]
        del blocks
        return {}

    def watch(self, _: Frame) -> dict[str, Any]:
        """From now on every ATen call is seen; generated code falls back to ATen."""
        from targets.remote.policy import Tracer

        torch.compiler.set_stance("force_eager")
        self.tracer = tracer = Tracer()
        tracer.__enter__()
        start = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]  # noqa: SLF001

        def start_watched(thread: threading.Thread) -> None:
            with tracer:  # modes belong to a thread; work may be handed to another
                start(thread)

        threading.Thread._bootstrap_inner = start_watched  # type: ignore[attr-defined]  # noqa: SLF001
        return {}

    def trace(self, frame: Frame) -> dict[str, Any]:
        """One watched call: library operators and whether own code reaches the output."""
        given = [t for t in self.sets[0] if isinstance(t, torch.Tensor)]
        self.tracer.begin([*self.model.state_dict().values(), *given])
        answer = self.call(frame)
        authored = self.tracer.authored(leaves_of(self.held))
        return {**answer, "ops": list(self.tracer.ops), "authored": authored}

    def races(self, frame: Frame) -> dict[str, Any]:
        """One call of kernels whose threads take turns, and what each library saw of it."""
        folder, turn = Path(frame.header["folder"]), frame.header["turn"]
        return {"seen": watched(lambda: self.call(frame), folder, turn)}


def drive(channel: Channel) -> None:
    """Serves the judge until it hangs up; ends the process."""
    tempfile.tempdir = None  # the warm process had another
    if not os.access(os.environ["TORCHINDUCTOR_CACHE_DIR"], os.W_OK):  # the baseline's alone
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{os.environ['TMPDIR']}/inductor"
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    driver = Driver(channel.send)
    operations: dict[str, Callable[[Frame], dict[str, Any]]] = {
        "begin": driver.begin,
        "load": driver.load,
        "construct": driver.construct,
        "state": driver.state,
        "inputs": driver.inputs,
        "slots": driver.slots_for,
        "gate": driver.gate,
        "call": driver.call,
        "batch": driver.batch,
        "leave": driver.leave,
        "loop": driver.loop,
        "null": driver.null,
        "null_batch": driver.null_batch,
        "poison": driver.poison,
        "fenced": driver.fenced,
        "watch": driver.watch,
        "trace": driver.trace,
        "races": driver.races,
    }
    while True:
        frame = channel.receive()
        try:
            answer = operations[frame.header["op"]](frame)
        except BaseException as error:  # noqa: BLE001 (the process edge of foreign code)
            answer = {"error": told(error)}
        channel.send(answer)


def _arena(frame: Frame) -> Arena:
    return Arena.of_header(frame.fds[0], frame.header["arena"], HOST.attach)


def _copy_out(leaves: list[Any], row: list[torch.Tensor]) -> None:
    for slot, out in zip(row, leaves, strict=True):
        if isinstance(out, torch.Tensor):
            slot.copy_(out)


def _shapes(leaves: list[Any]) -> list[torch.Size]:
    return [x.shape if isinstance(x, torch.Tensor) else torch.Size([0]) for x in leaves]
