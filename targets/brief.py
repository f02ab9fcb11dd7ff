"""What a target tells a generator: guide and example, read from `targets/examples/LANGUAGE`."""

from pathlib import Path

from data.records import Brief, Device

EXAMPLES = Path(__file__).parent / "examples"


def brief(device: Device, language: str, **words: str) -> Brief:
    """The brief of a language; `{arch}` and `{WORD}` of the guide are filled in."""
    folder = EXAMPLES / language
    guide = (folder / "guide.md").read_text()
    for word, value in {"arch": device.arch, **words}.items():
        guide = guide.replace(f"{{{word}}}", value)
    return Brief(
        language=language,
        guide=guide,
        example_operator=(EXAMPLES / "cpu" / "operator.py").read_text(),
        example_kernel=(folder / "kernel.py").read_text(),
    )
