"""What `kforge onboard` checks of a target and its device before anything is ported to it."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from data.errors import MachineError
from data.records import Device
from targets import TARGETS, cards
from targets.base import Target
from targets.machines import inventory
from targets.remote.compiler import compiles
from tasks.health import Check
from tasks.onboarding import first_look

CASES = Path(__file__).parents[1] / "tests" / "targets" / "cases"
GUIDE = 500
"""Characters of a guide at least: rules of the language, of the launch and of the arguments."""
KNOWN, EXAMPLE = "known kernel", "example"
NOISE = ("", "\n", "x" * 1000, "error:", ":1:1: error: ", "\x00\xff: :::\n   |\n", "{", '"ID"\n')


async def examine(device: Device, runs: Path, seen: Callable[[Check], object]) -> str:
    """A page in Markdown on what the device can do; `seen` is told each check as it is made.

    Empty, and its known kernel is not judged, where it has no target or no example, or its machine
    fails.
    """
    known = device.target in TARGETS
    for check in contract(device):
        seen(check)
        known &= check.ok or not check.name.startswith(EXAMPLE)
    return await _look(device, runs, seen) if known else ""


def contract(device: Device) -> Iterator[Check]:
    """A line a part of what a target must have. A missing target ends it."""
    target = TARGETS.get(device.target)
    if target is None:
        known = ", ".join(TARGETS)
        yield Check(name="target", ok=False, found=f"no target {device.target!r}; known: {known}")
        return
    yield Check(name="target", ok=True, found=f"{target.name}: {', '.join(target.languages)}")
    yield _parsers(target)
    yield _commands(target)
    yield _reason(target)
    for language in target.languages:
        yield _example(target, device, language)
    yield _cases(target)
    yield _card(device)


def _parsers(target: Target) -> Check:
    """They survive anything; a profile that cannot be read is the world's fault in one line."""
    for text in NOISE:
        target.parse_diagnostics(text)
        target.parse_report(text)
        try:
            target.parse_profile(text)
        except MachineError as error:
            if "\n" in str(error):
                found = f"the fault of an unreadable profile has several lines: {error}"
                return Check(name="parsers", ok=False, found=found)
        else:
            found = f"a profile was read out of {text[:20]!r}; expected MachineError"
            return Check(name="parsers", ok=False, found=found)
    return Check(name="parsers", ok=True, found="noise is no message, no report and no profile")


def _commands(target: Target) -> Check:
    """Each language has a compiler, and its command names what it was given."""
    for language in (word for half in target.halves for word in half.languages):
        own = [tool for tool in target.tools if compiles(target, tool, language)]
        for tool in own:
            command = target.compile_command(
                Path("some.src"), Path("some.out"), language=language, compiler=tool, arch="any"
            )
            if command[0] != tool or not {"some.src", "some.out"} <= set(command):
                found = f"{language}: {' '.join(command)}; expected {tool}, some.src, some.out"
                return Check(name="commands", ok=False, found=found)
        if not own:
            return Check(name="commands", ok=False, found=f"no tool compiles {language}")
    return Check(name="commands", ok=True, found=f"compiled by {', '.join(target.tools)}")


def _reason(target: Target) -> Check:
    """A machine without its tools can do nothing, and it is said what to install."""
    without = target.capabilities(frozenset())
    ok = not (without.compile or without.execute or without.time) and bool(without.why)
    return Check(name="without tools", ok=ok, found=without.why or "no reason is given")


def _example(target: Target, device: Device, language: str) -> Check:
    name = f"{EXAMPLE} {language}"
    try:
        brief = target.brief(device, language)
    except FileNotFoundError as error:
        return Check(name=name, ok=False, found=f"{error.filename} is missing: docs/new-chip.md, 2")
    for source, wanted in ((brief.example_operator, "Model"), (brief.example_kernel, "ModelNew")):
        try:
            classes = [n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef)]
        except SyntaxError as error:
            return Check(name=name, ok=False, found=f"its kernel is no Python: {error}")
        if wanted not in classes:
            return Check(name=name, ok=False, found=f"no class {wanted} in it")
    if len(brief.guide) < GUIDE:
        found = f"its guide has {len(brief.guide)} characters; expected {GUIDE} at least"
        return Check(name=name, ok=False, found=found)
    return Check(name=name, ok=True, found=f"a guide of {len(brief.guide)} characters")


def _cases(target: Target) -> Check:
    """Recorded outputs are there, unless its compiler reports nothing beside its messages."""
    found = sorted((CASES / target.name).glob("*.json"))
    said = ", ".join(p.stem for p in found) or f"none in {CASES / target.name}"
    return Check(name="cases", ok=bool(found) or not CASES.exists(), found=said)


def _card(device: Device) -> Check:
    sheet = cards.sheets().get(device.name) or cards.for_arch(device.arch)
    if sheet is not None:
        return Check(name="card", ok=True, found=f"{sheet.title}: {sheet.peak_gb_s:g} GB/s")
    return Check(name="card", ok=True, found="no data sheet: peaks are measured on the device")


async def _look(device: Device, runs: Path, seen: Callable[[Check], object]) -> str:
    """Its page, and whether its known kernel is judged right where it is."""
    try:
        page = await first_look(device, runs)
    except MachineError as error:
        seen(Check(name=KNOWN, ok=False, found=str(error)))
        return ""
    report = inventory.capabilities(device)
    if report.execute:
        said = next(line for line in page.splitlines() if line.startswith("The known kernel"))
        seen(Check(name=KNOWN, ok=True, found=f"{said} execution {device.execution}"))
    else:
        seen(Check(name=KNOWN, ok=False, found=f"cannot run: {report.why}"))
    return page
