"""A candidate's build: import in record mode, then each recorded source compiled by content.

Both happen behind the walls and need no device; the run phase loads the libraries from
a folder of the candidate's own (`products.py`). A candidate that does not use the launcher builds
when it is imported, in the run phase: route `one-phase`.
"""

import importlib.util
import json
import math
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data.codec import decode
from data.errors import MachineError
from data.metrics import METRICS, Merge
from data.records import BuildResult, Device, Diagnostic, Metric, Operator
from targets import TARGETS
from targets.base import Target
from targets.diagnostics import readable
from targets.remote import kforge_launch, strays
from targets.remote.compiler import (
    Compiled,
    compiled,
    emulating,
    installed,
    toolchain,
    written_in,
)
from targets.remote.emulator import UNSUPPORTED
from targets.remote.products import keep_list
from targets.remote.sandbox import Limits
from targets.remote.scrub import scrub
from targets.remote.walled import Ended, walled

RECORD = Limits(memory_bytes=2 << 30, seconds=60.0, tmpfs_bytes=256 << 20)
FILE = "candidate.py"
LOG_LENGTH = 20_000
SOURCES = 16
"""Kernel sources of one candidate at most: each costs a compiler run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the import of a candidate gave."""

    sources: tuple[tuple[str, ...], ...] = ()
    """(language, source)."""
    fault: Diagnostic | None = None


def build(
    operator: Operator, source: str, device: Device, *, zygote: object, cache: Path
) -> BuildResult:
    """The candidate's kernels are in the cache if ok; what is wrong with it is a value.

    Raises MachineError when there is no compiler. `operator` and `zygote` are there for targets
    whose compiler needs shapes or a device.
    """
    del operator, zygote
    started = time.monotonic()
    target = TARGETS.get(device.target)
    if target is None:
        raise MachineError(f"no target {device.target!r} here; known: {', '.join(TARGETS)}")
    recorded = _for_device(record(source), target, device)
    if recorded.fault is not None:
        return _failed_import(recorded.fault, started)
    keep_list(cache, device, source, recorded.sources)
    if not recorded.sources:
        return _unbuilt(device, started)
    if device.execution == "emulated":
        return _emulated(target, device, recorded.sources, cache)
    return _result(target, _compiled(cache, device, recorded.sources), started)


def _compiled(cache: Path, device: Device, sources: Sequence[tuple[str, ...]]) -> list[Compiled]:
    """What the vendor's compilers say of each source."""
    return [
        compiled(cache, toolchain(written_in(device, language)), language, text)
        for language, text in sources
    ]


def _emulated(
    target: Target, device: Device, sources: Sequence[tuple[str, ...]], cache: Path
) -> BuildResult:
    """What the vendor's compiler says where it is here, and whether the emulator has it all."""
    started = time.monotonic()
    here = all(installed(target, language) for language, _ in sources)
    own = _compiled(cache, device, sources) if here else []
    if any(not c.ok for c in own):
        return _result(target, own, started)
    tools = emulating()
    done = [compiled(cache, tools, *s) for s in sources]
    failed = [c for c in done if not c.ok]
    lacking = next((c.output for c in failed if c.output.startswith(UNSUPPORTED)), "")
    if failed and not (here or lacking):
        return _result(target, failed, started)  # the only compiler there is
    result = _result(target, own, started)
    if not here:
        why = target.capabilities(frozenset(), sources[0][0]).why
        result = replace(result, remarks=(f"not compiled by the vendor's compiler: {why}",))
    if not failed:
        return result
    why = lacking.removeprefix(UNSUPPORTED) or (
        f"the emulator does not take what the compiler took: "
        f"{_detail(target.parse_diagnostics(failed[0].output), failed)}"
    )
    return replace(result, executable=False, detail=f"{UNSUPPORTED}{why.strip()}")


def record(source: str) -> Recorded:
    """Imports the candidate without compiling anything and collects its kernel sources."""
    with strays.folder() as folder:
        path = folder / FILE
        path.write_text(source)
        ended = walled(lambda answer: _import(path, answer), folder, RECORD)
    return _read(ended, source)


def _unbuilt(device: Device, started: float) -> BuildResult:
    """A candidate without the launcher builds when it is imported, where the device is."""
    emulated = device.execution == "emulated"
    lacking = f"{UNSUPPORTED}{device.name} is emulated, which runs kernels of the launcher only"
    return BuildResult(
        ok=True,
        route="one-phase",
        seconds=_since(started),
        executable=not emulated,
        detail=lacking if emulated else "",
    )


def _for_device(recorded: Recorded, target: Target, device: Device) -> Recorded:
    """A fault when a kernel is written for another kind of device."""
    known = [word for half in target.halves for word in half.languages]
    other = next((s[0] for s in recorded.sources if s[0] not in known), None)
    if other is None:
        return recorded
    message = f"a kernel in {other!r} cannot run on {device.name}; known: {', '.join(known)}"
    return _fault(message, None, "")


def _import(path: Path, answer: int) -> None:
    """In the child: executes the module and writes what it recorded, or how it failed."""
    sys.modules["kforge_launch"] = kforge_launch
    sources = kforge_launch.record()
    told: dict[str, Any] = {}
    try:
        source = path.read_text()
        code = compile(source, FILE, "exec")
        if "kforge_launch" in source:
            spec = importlib.util.spec_from_loader("candidate", loader=None)
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules["candidate"] = module
            exec(code, vars(module))
    except BaseException as error:  # noqa: BLE001 (the process edge of foreign code)
        told = _told(error)
    data = memoryview(json.dumps({"sources": sources, **told}).encode())
    while data:
        data = data[os.write(answer, data) :]


def _told(error: BaseException) -> dict[str, Any]:
    """Type, message and the last line of the candidate that took part."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if f.filename == FILE]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return {"type": type(error).__name__, "message": message[:2000], "line": line}


def _read(ended: Ended, source: str) -> Recorded:
    """The answer of the child, which is foreign text, as a value."""
    if not ended.in_time:
        return _fault(f"import took longer than {RECORD.seconds:.0f} s", None, source)
    if ended.out_of_memory:
        return _fault(f"import took more than {RECORD.memory_bytes >> 30} GiB", None, source)
    try:
        answer = json.loads(ended.answer)
        if "type" in answer:
            message = scrub(f"{answer['type']}: {answer['message']}")
            return _fault(message, answer["line"], source)
        sources = decode(tuple[tuple[str, ...], ...], answer["sources"])
    except (ValueError, TypeError, KeyError):
        how = f"ended with status {ended.code}" if ended.code else "ended"
        return _fault(f"the process {how} during the import", None, source)
    if len(sources) > SOURCES:
        return _fault(f"{len(sources)} kernel sources; at most {SOURCES} are built", None, source)
    if any(len(s) != 2 or s[0] not in kforge_launch.HALVES for s in sources):
        return _fault("the process wrote something else than its kernel sources", None, source)
    return Recorded(sources=sources)


def _fault(message: str, line: object, source: str) -> Recorded:
    lines = source.splitlines()
    at = line if isinstance(line, int) and 0 < line <= len(lines) else None
    fault = Diagnostic(
        file=FILE,
        line=at,
        severity="error",
        message=message,
        source_line=lines[at - 1].strip() if at else "",
    )
    return Recorded(fault=fault)


def _failed_import(fault: Diagnostic, started: float) -> BuildResult:
    where = f"line {fault.line}: " if fault.line else ""
    return BuildResult(
        ok=False,
        route="launcher",
        diagnostics=(fault,),
        detail=f"the module cannot be imported: {where}{fault.message}",
        seconds=_since(started),
    )


def _result(target: Target, done: Sequence[Compiled], started: float) -> BuildResult:
    failed = [c for c in done if not c.ok]
    texts = [c.output for c in (failed or done)]
    diagnostics = tuple(d for text in texts for d in target.parse_diagnostics(text))
    log = "\n".join(readable(text) for text in texts)
    return BuildResult(
        ok=not failed,
        route="launcher",
        diagnostics=diagnostics,
        metrics=() if failed else _metrics(target, texts),
        remarks=() if failed else tuple(r for t in texts for r in target.parse_report(t).remarks),
        command="; ".join(dict.fromkeys(c.command for c in done)),
        log=cut(log),
        seconds=_since(started),
        detail=_detail(diagnostics, failed) if failed else "",
    )


_MERGED: dict[Merge, Callable[[list[float]], float]] = {
    Merge.SUM: math.fsum,
    Merge.MAX: max,
    Merge.MIN: min,
}


def _metrics(target: Target, texts: Sequence[str]) -> tuple[Metric, ...]:
    """One value of each name: counts are added, of registers and the like the worst one counts."""
    found: dict[str, list[Metric]] = {}
    for metric in (m for text in texts for m in target.parse_report(text).metrics):
        found.setdefault(metric.name, []).append(metric)
    return tuple(
        replace(same[0], value=_MERGED[METRICS[name].merge]([m.value for m in same]))
        for name, same in found.items()
    )


def _detail(diagnostics: Sequence[Diagnostic], failed: Sequence[Compiled]) -> str:
    """One sentence: the first error, or the end of what the compiler printed."""
    first = next((d for d in diagnostics if d.severity == "error"), None)
    if first is None:
        lines = failed[0].output.strip().splitlines()
        return f"the compiler failed: {lines[-1] if lines else 'without a message'}"
    where = f"{first.file}:{first.line}" if first.line else first.file
    return f"{where}: {first.message}"


def cut(text: str, length: int = LOG_LENGTH) -> str:
    r"""The text, or its head and tail with a line that says how much is missing.

    >>> cut("abcdefgh" * 3, 10)
    'abcde\n... 14 characters cut ...\ndefgh'
    """
    if len(text) <= length:
        return text
    half = length // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters cut ...\n{text[-half:]}"


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)
