"""A first look at a new device: what it can do, whether it judges rightly, what to port first."""

from pathlib import Path

from data.operator import built_in
from data.records import Card, Device
from targets.machines import inventory
from targets.machines.judged import Judged
from targets.remote.peaks import Probe
from tasks import soundness
from tasks.machines import machine_for
from tasks.placing import somewhere


def first_operators() -> tuple[str, ...]:
    """One operator of each family of ours, the first by name: every kind of work once."""
    by_family = {o.family or o.name: o.name for o in reversed(built_in())}
    return tuple(sorted(by_family.values()))


async def first_look(device: Device, runs: Path) -> str:
    """A page in Markdown on the device; MachineError when its known kernel is not judged right."""
    report = inventory.capabilities(device)
    able = {"compile": report.compile, "execute": report.execute, "time": report.time}
    where = f"target {device.target}, machine {device.machine}, execution {device.execution}"
    can = ", ".join(name for name, yes in able.items() if yes) or "nothing"
    lines = [
        f"# {device.name}",
        f"{device.vendor}, architecture {device.arch}, {where}",
        f"Can: {can}. {report.why}".rstrip(),
        f"Compiler: {report.tool or 'none'} {report.version}".rstrip(),
    ]
    if report.execute:
        lines.append(_probed(await somewhere(device, runs, lambda d: _sound(d, runs))))
    return "\n\n".join(lines)


async def _sound(device: Device, runs: Path) -> Probe | None:
    """What the machine says of itself, after it judged the target's example right."""
    machine = machine_for(device, runs)
    await soundness.check(machine, device)
    return await machine.probe(device) if isinstance(machine, Judged) else None


def _probed(probe: Probe | None) -> str:
    if probe is None:
        return "The known kernel is judged right."
    environment = "\n".join(f"| {k} | {v} |" for k, v in sorted(probe.environment.items()))
    return (
        f"The known kernel is judged right. {_card(probe.card)}\n\n| | |\n|---|---|\n{environment}"
    )


def _card(card: Card) -> str:
    source = "measured" if card.measured else "from the data sheet"
    rates = ", ".join(f"{k} {v:.3g} TFLOP/s" for k, v in card.peak_tflop_s.items())
    return f"Peaks, {source}: {card.peak_gb_s:.4g} GB/s; {rates or 'no arithmetic peak known'}."
