"""A kernel source as C++ for the emulator: same lines, foreign words rewritten or refused."""

import re
from collections.abc import Mapping, Sequence

UNSUPPORTED: Mapping[str, str] = {
    r"\basm\b": "inline assembly",
    r"\bwmma\b|\bnvcuda\b": "tensor-core fragments (wmma)",
    r"\b__(?:builtin_amdgcn|nvvm)_\w+": "vendor instructions",
    r"\bcooperative_groups\b|\bcg::": "cooperative groups",
    r"\bcuda::(?:barrier|pipeline|memcpy_async)\b|\b__pipeline_\w+": "asynchronous copies",
    r"\bcurand\w*\b|\bcub::|\bthrust::|\brocprim::|\bhipcub::": "device libraries",
    r"<<<": "launches from within the source",
    r"\btex[123]D\w*\s*<|\bsurf[123]D\w*|\bcudaTextureObject_t\b": "textures",
    r"\b__nv_fp8_\w+|\b__hip_fp8_\w+": "8-bit floats",
    r"\b__cluster_\w+|\bcluster_group\b": "clusters of blocks",
}
"""What the emulator lacks: a pattern of code and its name."""
_NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.DOTALL | re.VERBOSE
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](?P<file>[^>\"]+)[>\"][^\n]*", re.MULTILINE)
_KNOWN = re.compile(
    r"cuda\w*\.h|hip/\w+\.h|math\.h|cmath|stdint\.h|cstdint|float\.h|cfloat|limits\.h|climits"
    r"|device_launch_parameters\.h|stddef\.h|cstddef|type_traits|mma\.h|cuda/std/\w+"
)
_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?P<align>__align__\s*\([^)]*\)\s*|alignas\s*\([^)]*\)\s*)?"
    r"(?P<type>[\w:\s]+?)\s*\b(?P<name>\w+)\s*\[\s*\]\s*;"
)
_SHARED = re.compile(r"\b__shared__\b(?P<rest>[^;]*);")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?:=[^,]*)?$")
_ALIGN = re.compile(r"\b(?:__align__|alignas)\s*\([^)]*\)|\bvolatile\b")


class UnsupportedError(Exception):
    """The emulator lacks a feature that the source uses; the message names it with its line."""


def as_cpp(source: str, kernels: Sequence[str], *, file: str) -> str:
    """The source behind the emulator's words, with an entry for each kernel.

    UnsupportedError names what the emulator cannot do, so that it never answers wrongly.
    """
    code = _without_noise(source)
    refuse(code, file, UNSUPPORTED)
    text = _INCLUDE.sub(lambda m: _include(m, code, file), source)
    text = re.sub(r'extern\s*"C"', lambda m: " " * len(m[0]), text)
    text = _DYNAMIC.sub(
        lambda m: f"{m['type']}* {m['name']} = ({m['type']}*)KF_DYNAMIC;" + "\n" * m[0].count("\n"),
        text,
    )
    text = _SHARED.sub(shared, text)
    entries = "\n".join(_entry(name) for name in kernels)
    return f'#line 1 "{file}"\n{text}\n}} }}  // namespaces\n{entries}\n'


def _without_noise(source: str) -> str:
    """The source with comments and strings blanked, lines kept."""
    return _NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), source)


def refuse(code: str, file: str, lacking: Mapping[str, str]) -> None:
    """UnsupportedError for the first of what is lacking that the code uses."""
    for pattern, name in lacking.items():
        found = re.search(pattern, code, re.MULTILINE)
        if found is not None:
            line = code.count("\n", 0, found.start()) + 1
            raise UnsupportedError(
                f"{file}:{line}: the emulator has no {name} ({found[0].strip()})"
            )


def _include(found: re.Match[str], code: str, file: str) -> str:
    if _KNOWN.fullmatch(found["file"]) is None:
        line = code.count("\n", 0, found.start()) + 1
        raise UnsupportedError(f"{file}:{line}: the emulator has no header {found['file']}")
    return ""


def shared(found: re.Match[str]) -> str:
    """References to memory that is made known, and poisoned, where a block first comes to it."""
    kind, text = "", ""
    for part in _declarators(_ALIGN.sub(" ", found["rest"])):
        name = _NAME.search(part.strip())
        if name is None:
            return found[0]
        if not kind:
            kind = part.strip()[: name.start()]
        array = name[0][len(name[1]) :].partition("=")[0]
        text += f"typedef {kind} kf_t_{name[1]}{array}; KF_SHARED({name[1]})"
    return text + "\n" * (found[0].count("\n") - text.count("\n"))


def _declarators(rest: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, depth = [""], 0
    for letter in rest:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _entry(name: str) -> str:
    return (
        f'extern "C" int KF_ENTRY({name})(const kf::Launch* l, void** values) {{'
        f" return kf::launch(&kf_user::{name}, l, values); }}"
    )
