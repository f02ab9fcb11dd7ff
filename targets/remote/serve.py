"""The judge server of a device's machine: requests and answers are lines of JSON.

`python -m targets.remote.serve --cache DIR` reads `{"id": 1, "op": "build", "args": {...}}` and
answers `{"id": 1, "ok": true, "value": {...}}` or `{"id": 1, "ok": false, "error": "one line"}`, in
the order in which the jobs end. An error is never the candidate's fault: those are values.
Each job runs in a forked child, so that a crash takes nothing along and memory is given back; the
server itself has torch imported and never runs a torch operation. The end of stdin or SIGTERM ends
it with all that it started.
"""

import argparse
import gc
import importlib
import json
import os
import selectors
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.codec import decode
from data.errors import MachineError
from data.records import OFFICIAL, Contract, Device, MeasureJob, Operator
from targets.remote import emulator, peaks
from targets.remote.fork import Fork, fork, kill_group
from targets.remote.processes import reap
from targets.remote.sandbox import DEVICE, adopt_orphans

if TYPE_CHECKING:
    from targets.remote.zygote import Zygote

READ = 1 << 20
IMPORTED = (
    "torch._dynamo",
    "torch.export",
    "targets.remote.admit",
    "targets.remote.cuda",
    "targets.remote.device_peaks",
    "targets.remote.build",
    "targets.remote.measure",
    "targets.remote.trace",
)
"""Fake tensors pull in torch._dynamo, 2.8 s a job unless the server has it."""
FIRST = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x @ x).sum(1)


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What all jobs share."""

    cache: Path
    probe: peaks.Probe
    """Taken once, before anything else ran: floors do not move within a campaign."""
    zygote: "Zygote | None" = None
    """Started with the first job that needs it or is followed by one that does."""


def _probe(context: Context, args: dict[str, Any]) -> object:
    return _peaks(context, decode(Device, args["device"]), leased=True)


def _peaks(context: Context, device: Device, *, leased: bool) -> peaks.Probe:
    """Of the host, of the device beside it, or of the data sheet of one that is not here."""
    from targets.remote import accelerator, device_peaks

    if not device.timed:
        return replace(context.probe, card=emulator.card(device))
    if accelerator.kind_of_device(device).place == accelerator.HOST.place:
        return context.probe
    return device_peaks.probe(context.cache, device, leased=leased)


def _admit(context: Context, args: dict[str, Any]) -> object:
    from targets.remote.admit import Terms, admit

    operator, contract = decode(Operator, args["operator"]), decode(Contract, args["contract"])
    device = decode(Device, args["device"])
    probe = _peaks(context, device, leased=bool(args.get("timed")))
    job = MeasureJob(operator=operator, device=device, contract=contract, source="", pairs=0)
    terms = Terms(
        contract=contract,
        card=probe.card,
        environment=probe.environment,
        cache=context.cache,
        timed=_timer(context, job) if args.get("timed") else None,
        insist=bool(args.get("insist")),
    )
    return admit(operator, terms)


def _timer(context: Context, job: MeasureJob) -> Callable[[str], float] | None:
    """Measures the faster stock form at a shape, in microseconds, where that is cheap: here."""
    from targets.remote.accelerator import HOST, kind_of_device
    from targets.remote.baseline import stock_us

    assert context.zygote is not None
    if not job.device.timed or kind_of_device(job.device) is not HOST:
        return None
    return partial(stock_us, job, context.zygote, context.cache)


def _build(context: Context, args: dict[str, Any]) -> object:
    from targets.remote.build import build

    return build(
        decode(Operator, args["operator"]),
        args["candidate_source"],
        decode(Device, args["device"]),
        zygote=context.zygote,
        cache=context.cache,
    )


def _measure(context: Context, args: dict[str, Any]) -> object:
    from targets.remote.measure import measure

    assert context.zygote is not None
    job = decode(MeasureJob, args)
    card = _peaks(context, job.device, leased=True).card
    return measure(job, zygote=context.zygote, cache=context.cache, card=card)


Op = Callable[[Context, dict[str, Any]], object]
OPS: dict[str, Op] = {"probe": _probe, "admit": _admit, "build": _build, "measure": _measure}
WARM = ("admit", "measure")
"""Ops at which the warm process is started: it takes seconds, admission gives it the time."""


@dataclass(slots=True)
class Server:
    """The loop: it only reads lines, forks jobs and writes their answers."""

    context: Context
    requests: int
    """Descriptor of the request lines."""
    answers: int
    waker: int
    """Becomes readable on SIGTERM and SIGINT."""
    ops: Mapping[str, Op] = field(default_factory=lambda: OPS)
    jobs: dict[Any, Fork] = field(default_factory=dict)
    """By request id."""
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _rest: bytes = b""

    def run(self) -> None:
        """Until stdin or a signal says that it is over; nothing is left behind."""
        self._selector.register(self.requests, selectors.EVENT_READ, self._take)
        self._selector.register(self.waker, selectors.EVENT_READ, lambda: False)
        try:
            while all(key.data() for key, _ in self._selector.select()):
                pass
        finally:
            for number in list(self.jobs):
                self._kill(number)
            if self.context.zygote is not None:
                self.context.zygote.close()

    def _take(self) -> bool:
        """Reads requests; False at the end."""
        chunk = os.read(self.requests, READ)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in filter(None, lines):
            self._accept(line)
        return bool(chunk)

    def _accept(self, line: bytes) -> None:
        try:
            request = json.loads(line)
            number, op, args = request["id"], request["op"], dict(request["args"])
        except (ValueError, TypeError, KeyError):
            self._answer(None, error="a request is one line of JSON with id, op and args")
            return
        if op == "cancel":
            self._kill(args.get("id"))
            self._answer(number, value=None)
        elif op in self.ops:
            self._start(number, op, args)
        else:
            self._answer(number, error=f"unknown op {op!r}; known: {', '.join(self.ops)}, cancel")

    def _start(self, number: Any, op: str, args: dict[str, Any]) -> None:
        if op in WARM and self.context.zygote is None:
            from targets.remote.zygote import Zygote

            try:
                self.context = replace(self.context, zygote=Zygote(self.context.cache))
            except MachineError as error:  # nothing shuts candidates in here
                self._answer(number, error=str(error))
                return
        job = fork(lambda: self.ops[op](self.context, args))
        self.jobs[number] = job
        self._selector.register(job.reader, selectors.EVENT_READ, lambda: self._continue(number))

    def _continue(self, number: Any) -> bool:
        """Reads from a job; answers when it has ended."""
        job = self.jobs.get(number)
        if job is not None and not job.read():
            self._selector.unregister(job.reader)
            del self.jobs[number]
            try:
                self._answer(number, value=job.result())
            except MachineError as error:
                self._answer(number, error=str(error))
        return True

    def _kill(self, number: Any) -> None:
        """Ends a job early; one that is over already is no fault."""
        job = self.jobs.pop(number, None)
        if job is None:
            return
        self._selector.unregister(job.reader)
        kill_group(job.pid)
        os.close(job.reader)
        os.waitpid(job.pid, 0)

    def _answer(self, number: Any, *, value: object = None, error: str | None = None) -> None:
        outcome = {"ok": True, "value": value} if error is None else {"ok": False, "error": error}
        data = memoryview(json.dumps({"id": number, **outcome}).encode() + b"\n")
        while data:
            data = data[os.write(self.answers, data) :]


def main() -> None:
    """The process itself."""
    parser = argparse.ArgumentParser(prog="python -m targets.remote.serve")
    parser.add_argument(
        "--cache", type=Path, required=True, help="folder for what can be made again"
    )
    run(parser.parse_args().cache)


def run(cache: Path) -> None:
    """Serves stdin and stdout until the end; `cache` is made if it is not there."""
    cache = cache.resolve()
    for folder in ("peaks", "kernels"):  # an unusable cache shows before torch is imported
        (cache / folder).mkdir(parents=True, exist_ok=True)
    serve(lambda: _prepare(cache), OPS)


def _prepare(cache: Path) -> Context:
    """Imports once for all jobs, then measures while nothing else runs."""
    for name in IMPORTED:
        importlib.import_module(name)
    _know_shapes()
    gc.freeze()  # a collection in a job would look through all of torch: 0.15 s
    return Context(cache=cache, probe=peaks.probe(cache))


def _know_shapes() -> None:
    """The first call without memory takes 0.04 to 0.13 s in each process that never made one."""
    from targets.remote.operator import LoadedOperator
    from targets.remote.sizing import sizes

    sizes(LoadedOperator(Operator(name="first", source=FIRST)), OFFICIAL)


def serve(prepare: Callable[[], Context], ops: Mapping[str, Op]) -> None:
    """Serves until the end; stdin and stdout are taken, what anything prints goes to stderr."""
    os.environ.update(DEVICE)
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    waker = _wake_on_signals()
    adopt_orphans()  # of jobs that are killed, and of a bubblewrap that is
    server = Server(context=prepare(), requests=requests, answers=answers, waker=waker, ops=ops)
    server.run()
    reap()


def _wake_on_signals() -> int:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return reader


if __name__ == "__main__":
    main()
