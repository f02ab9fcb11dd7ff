"""A Metal source as C++ for the emulator: same lines, address spaces and attributes taken away."""

import re
from collections.abc import Mapping, Sequence

from targets.remote.emulation.translate import UnsupportedError, refuse, shared
from targets.remote.metal import ATTRIBUTE, NOISE, Kernel, Parameter, blank, kernels_of

UNSUPPORTED: Mapping[str, str] = {
    r"\bsimdgroup_(?:matrix|(?:float|half|bfloat)8x8|load|store|multiply\w*)\b": (
        "matrices of a SIMD-group (simdgroup_matrix)"
    ),
    r"\btexture(?:1d|2d|3d|cube|_buffer)\w*|\bsampler\b": "textures",
    r"\bfunction_constant\b|\bis_function_constant_defined\b": "function constants",
    r"\bquad_\w+|\b\w+_in_quadgroup\b|\bquadgroup\w*": "quad-groups",
    r"\bsimdgroup_async_copy\w*|\bsimdgroup_event\b": "asynchronous copies",
    r"\b(?:float|half)[234]x[234]\b": "matrix types",
    r"\bsimd_shuffle_and_fill_\w+": "shuffles that fill",
    r"\b(?:visible_function_table|intersection_function_table|imageblock\w*)\b": "graphics",
    r"\[\[\s*(?:vertex|fragment|mesh|object)\s*\]\]|^\s*(?:vertex|fragment)\s+\w": "graphics",
    r"^[ \t]*#[ \t]*define(?:[^\n]*\\\n)*[^\n]*\bkernel\b": "kernels written by a macro",
    r"^[ \t]*#[ \t]*define[^\n]*\bthreadgroup\b": "threadgroup memory behind a macro",
    r"\b(?:__asm__|__asm|asm)\b": "inline assembly",
    r"\.(?:[xyzw]{2,4}|[rgba]{2,4})\s*(?:=(?!=)|[-+*/]=)": "writes to several elements of a vector",
    r"\btensor_(?:handle|inline)\b|\bmpp::": "tensors",
}
"""What the emulator lacks: a pattern of code and its name."""
FORBIDDEN: Mapping[str, str] = {
    r"\bdouble\b": "'double' is not supported in Metal",
    r"\bstd::": "use of undeclared identifier 'std'",
    r"\bgoto\b": "'goto' is not supported in Metal",
    r"\b(?:throw|try|catch)\b": "exceptions are not supported in Metal",
    r"\bvirtual\b": "virtual functions are not supported in Metal",
    r"\b(?:new|delete)\b(?!\s*;)": "'new' and 'delete' are not supported in Metal",
    r"\b__(?:global__|shared__|device__|syncthreads|shfl\w*)|\bthreadIdx\b|\bblockIdx\b": (
        "this is a word of CUDA"
    ),
}
"""What C++ takes and Metal does not."""
_WORDS = r"(?:device|constant|threadgroup|thread|const|volatile|static|inline|[A-Z][A-Z0-9_]*)"
_POINTER = re.compile(
    rf"(?P<before>(?:\b{_WORDS}\s+)*)"
    r"\b(?P<kind>(?:float|half|bfloat|u?int|u?short|u?char|u?long|bool)[234]?|atomic_\w+)\b"
    rf"(?P<after>(?:\s+{_WORDS}\b)*)\s*(?P<mark>[*&])(?!&)"
)
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[^\n]*\b(?:device|constant|thread)\b", re.MULTILINE
)
_SPACE = re.compile(r"\b(?:device|constant|threadgroup|thread)\b")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](?P<file>[^>\"]+)[>\"][^\n]*", re.MULTILINE)
_KNOWN = re.compile(r"metal_\w+|simd/simd\.h")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INSTANCE = re.compile(r"\btemplate\s+(?:kernel\s+)?(?:void|decltype)\b[^;{}]*;")
_SHARED = re.compile(r"\bthreadgroup\b(?P<rest>(?:[^;(){}\[\]*&]|\[[^\]]*\])*);")
_SWIZZLE = re.compile(r"\.(?P<letters>[xyzw]{2,4}|[rgba]{2,4})\b(?!\s*\()")
_HALF = re.compile(r"(?<![\w.])(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[hH]\b")
_LIMIT = re.compile(r"max_total_threads_per_threadgroup\s*\(\s*(\d+)\s*\)")
SHARED_BYTES = 32 << 10
"""Threadgroup memory of Apple GPUs (Metal feature set tables)."""
BUILT_IN: Mapping[str, str] = {
    "thread_position_in_grid": "kf_in_grid()",
    "thread_position_in_threadgroup": "kf_in_group()",
    "thread_index_in_threadgroup": "kf_one(kf::self->index)",
    "threadgroup_position_in_grid": "kf_group()",
    "threads_per_threadgroup": "kf_group_size()",
    "dispatch_threads_per_threadgroup": "kf_group_size()",
    "threadgroups_per_grid": "kf_groups()",
    "threads_per_grid": "kf_threads()",
    "thread_index_in_simdgroup": "kf_one(kf::self->lane)",
    "simdgroup_index_in_threadgroup": "kf_one(kf::self->warp)",
    "simdgroups_per_threadgroup": "kf_one((kf::thread_count + 31) / 32)",
    "dispatch_simdgroups_per_threadgroup": "kf_one((kf::thread_count + 31) / 32)",
    "threads_per_simdgroup": "kf_one(32)",
    "thread_execution_width": "kf_one(32)",
}
"""Where a parameter that no buffer holds comes from."""


def as_cpp(source: str, kernels: Sequence[str], *, file: str) -> str:
    """The source behind the emulator's words, with an entry for each kernel.

    UnsupportedError names what the emulator cannot do, SyntaxError what Metal does not have.
    """
    code = blank(source, NOISE)
    refuse(code, file, UNSUPPORTED)
    _forbid(code, file)
    text = _INCLUDE.sub(lambda m: _include(m, code, file), blank(source, _COMMENT))
    found = {k.name: k for k in kernels_of(source)}
    entries = [_entry(found[name], source, file) for name in kernels]
    text = _HALF.sub(r"half(\g<number>)", _plain(text))
    calls = "\n".join(call for call, _ in entries)
    doors = "\n".join(door for _, door in entries)
    return f'#line 1 "{file}"\n{text}\n#line 1 "entries"\n{calls}\n}} }}\n{doors}\n'


def _plain(text: str) -> str:
    """Without attributes, address spaces and instantiations; arrays of a group are references."""
    text = blank(blank(text, ATTRIBUTE), re.compile(r"\bkernel\b"))
    text = blank(text, _INSTANCE)
    text = _SHARED.sub(shared, text)
    text = re.sub(r"\bconst(\s+)constant\b|\bconstant(\s+)const\b", r"const\1\2", text)
    text = re.sub(r"\bconstant\b(?!\s+constexpr)", "const   ", text)
    text = blank(text, re.compile(r"\b(?:device|threadgroup|thread|constant|coherent)\b"))
    return _SWIZZLE.sub(_swizzle, text)


def _swizzle(found: re.Match[str]) -> str:
    places = ", ".join(str("xyzw".find(x) if x in "xyzw" else "rgba".find(x)) for x in found[1])
    return f".kf_swizzle(kf_at<{places}>{{}})"


def _forbid(code: str, file: str) -> None:
    for pattern, text in FORBIDDEN.items():
        found = re.search(pattern, code)
        if found is not None:
            raise SyntaxError(_error(code, found.start(), file, text))
    macros = set(_MACRO.findall(code))
    for found in _POINTER.finditer(code):
        words = found["before"] + found["after"]
        if not _SPACE.search(words) and macros.isdisjoint(words.split()):
            what = "pointer" if found["mark"] == "*" else "reference"
            text = f"{what} type must have explicit address space qualifier"
            raise SyntaxError(_error(code, found.start("kind"), file, text))


def _error(code: str, at: int, file: str, text: str) -> str:
    line, column = code.count("\n", 0, at) + 1, at - code.rfind("\n", 0, at)
    return f"{file}:{line}:{column}: error: {text}\n"


def _include(found: re.Match[str], code: str, file: str) -> str:
    if _KNOWN.fullmatch(found["file"]) is None:
        line = code.count("\n", 0, found.start()) + 1
        raise UnsupportedError(f"{file}:{line}: the emulator has no header {found['file']}")
    return ""


def _entry(kernel: Kernel, source: str, file: str) -> tuple[str, str]:
    """A function that calls the kernel on a thread, and the launch that begins with it."""
    line = source.count("\n", 0, kernel.at) + 1
    order = {id(p): k for k, p in enumerate(kernel.buffers())}
    indices = sorted(int(p.index) for p in kernel.buffers() if p.index.isdigit())
    if indices and indices != list(range(len(indices))):
        given = ", ".join(map(str, indices))
        raise UnsupportedError(f"{file}:{line}: the emulator has no gaps in buffers ({given})")
    lines, values = [], []
    for number, parameter in enumerate(kernel.parameters):
        declared, value = _value(parameter, number, order, f"{file}:{line}")
        lines.append(declared)
        values.append(value)
    name, limit = kernel.name, _LIMIT.search(source, *_around(source, kernel.at))
    body = f"{' '.join(lines)} {kernel.call}({', '.join(values)});"
    call = f"KF_RT static void kf_call_{name}(void* held) {{ void** v = (void**)held; {body} }}"
    most = f"if (kf::too_many(l, {limit[1]})) return 1; " if limit else ""
    door = (
        f'extern "C" int KF_ENTRY({name})(const kf::Launch* l, void** v) {{ '
        f"kf::shared_limit = {SHARED_BYTES}; {most}"
        f"return kf::run(l, &kf_user::kf_call_{name}, v); }}"
    )
    return call, door


def _around(source: str, at: int) -> tuple[int, int]:
    """From the end of what stands before a kernel to its parameters."""
    before = max(source.rfind("}", 0, at), source.rfind(";", 0, at)) + 1
    return before, source.find("{", at) % (len(source) + 1)


def _value(
    parameter: Parameter, number: int, order: Mapping[int, int], where: str
) -> tuple[str, str]:
    """The declaration that a kernel's argument needs, and the argument."""
    if parameter.source == "buffer":
        at = f"v[{order[id(parameter)]}]"
        if parameter.number:
            kind = parameter.kind
            return f"{kind} a{number} = *({kind}*){at};", f"a{number}"
        return "", f"KfPointer{{*(void**){at}}}"
    if parameter.source == "threadgroup" and parameter.index in ("", "0"):
        return "", "KfPointer{kf::dynamic_shared}"
    if parameter.source not in BUILT_IN:
        index = f"({parameter.index})" if parameter.index else ""
        raise UnsupportedError(f"{where}: the emulator has no [[{parameter.source}{index}]]")
    return "", BUILT_IN[parameter.source]
