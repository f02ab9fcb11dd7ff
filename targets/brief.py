"""What a target tells a generator: guide and example, read from `targets/examples/LANGUAGE`."""

from pathlib import Path

from data.records import Brief, Device
from targets import cards

FACTS = ("device", "driver", "torch")
"""Of the environment: what concerns a kernel that does not run on the host's processor."""
EXAMPLES = Path(__file__).parent / "examples"


def brief(device: Device, language: str, **words: str) -> Brief:
    """The brief of a language; `{arch}` and `{WORD}` of the guide are filled in."""
    folder = EXAMPLES / language
    guide = (folder / "guide.md").read_text()
    for word, value in {"arch": device.arch, **words}.items():
        guide = guide.replace(f"{{{word}}}", value)
    return Brief(
        language=language,
        guide=guide + _limits(device.arch),
        facts=FACTS,
        example_operator=(EXAMPLES / "cpu" / "operator.py").read_text(),
        example_kernel=(folder / "kernel.py").read_text(),
    )


def _limits(arch: str) -> str:
    """What a group of threads can have on devices of that architecture; empty when nobody says."""
    sheet = cards.for_arch(arch)
    if sheet is None:
        return ""
    limits = sheet.limits
    named = {
        "threads a group": limits.threads_per_group,
        "bytes of shared memory a group": limits.shared_bytes_per_group,
        "registers a thread": limits.registers_per_thread,
        f"threads a {sheet.unit}": limits.threads,
        f"groups a {sheet.unit}": limits.groups,
        f"bytes of shared memory a {sheet.unit}": limits.shared_bytes,
        f"registers a {sheet.unit}": limits.registers,
    }
    known = ", ".join(f"{value} {name}" for name, value in named.items() if value is not None)
    widths = " or ".join(str(width) for width in sheet.sub_groups)
    return f"- Limits: {known}; sub-groups of {widths}; {sheet.units} {sheet.unit}s.\n"
