"""Compile a kernel source for the device in hand and call it, without torch headers.

The module travels with the candidate and with every export: one file, stdlib only. Three modes:

- *standalone* (the default): `kernels()` compiles into a private cache folder and loads.
- *record*: `record()` was called; nothing is compiled, the sources are collected.
- *load*: `load_from(folder)` was called; libraries are found by content hash, without a compiler.

C and C++ kernels are `extern "C"` functions without a result; their parameters are read from the
source, so that a Python int becomes what the kernel declares (`long`, `int`, `float`, `double`,
...) and a tensor of another dtype is refused by name:

>>> signatures('extern "C" void relu(const float* x, float* y, long n) { }')
{'relu': ('const float* x', 'float* y', 'long n')}
"""

import ctypes
import hashlib
import operator
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LANGUAGES = ("cpp", "c")
STANDARDS = {"cpp": ("-std=c++17", "-x", "c++"), "c": ("-std=gnu11", "-x", "c")}
CPP_FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
"""Contraction (FMA) stays on, fast-math off: 0.45 s a file (TOOLCHAINS.md, section 7)."""
DEFINED = ("-Wl,-z,defs",) if sys.platform == "linux" else ()
"""A missing function is the linker's message and not the loader's."""

_recorded: list[tuple[str, str]] | None = None
_folder: Path | None = None


def source_hash(language: str, source: str) -> str:
    """The name under which the compiled source is found."""
    return hashlib.sha256(f"{language}\0{source}".encode()).hexdigest()[:32]


def record() -> list[tuple[str, str]]:
    """From now on nothing is compiled; the list fills with (language, source)."""
    global _recorded  # noqa: PLW0603 (one process, one mode)
    _recorded = []
    return _recorded


def load_from(folder: str | os.PathLike[str]) -> None:
    """From now on libraries come from `folder`, named `source_hash` + `.so`."""
    global _folder  # noqa: PLW0603 (one process, one mode)
    _folder = Path(folder)


def compile_command(
    source: Path, library: Path, *, compiler: str = "g++", language: str = "cpp"
) -> tuple[str, ...]:
    """The command that builds a C or C++ source into a library."""
    flags = (*CPP_FLAGS, *DEFINED, *STANDARDS[language])
    return (compiler, *flags, "-o", str(library), str(source), "-x", "none", "-lm")


def kernels(source: str, *, language: str = "cpp") -> "Kernels":
    """The kernels in `source`, callable by name: `K.relu(args=(x, y, n))`.

    RuntimeError when the source does not compile; the compiler's text is the message.
    """
    if language not in LANGUAGES:
        raise ValueError(
            f"kforge_launch cannot build {language!r} here; known: {', '.join(LANGUAGES)}"
        )
    if not isinstance(source, str):
        raise TypeError(f"the kernel source must be a str, not {type(source).__name__}")
    if _recorded is not None:
        _recorded.append((language, source))
        return Kernels(source, None, language=language)
    return Kernels(source, ctypes.CDLL(str(_library(language, source))), language=language)


def _library(language: str, source: str) -> Path:
    name = source_hash(language, source)
    if _folder is not None:
        found = _folder / f"{name}.so"
        if not found.exists():
            raise RuntimeError("this kernel source was not there when the module was recorded")
        return found
    cache = Path(os.environ.get("KFORGE_LAUNCH_CACHE") or Path.home() / ".cache" / "kforge_launch")
    found = cache / f"{name}.so"
    return found if found.exists() else _compile(language, source, found)


def _compile(language: str, source: str, library: Path) -> Path:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise RuntimeError("no C++ compiler on this machine: install g++ or clang")
    library.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        text, built = Path(folder) / "kernel.cpp", Path(folder) / "kernel.so"
        text.write_text(source)
        command = compile_command(text, built, compiler=compiler, language=language)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        built.replace(library)
    return library


class Kernels:
    """The callable functions of one source."""

    def __init__(self, source: str, library: ctypes.CDLL | None, *, language: str = "cpp") -> None:
        self._signatures = signatures(source, language=language)
        self._library = library

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._signatures:
            known = ", ".join(self._signatures) or "none"
            raise AttributeError(f'no extern "C" void {name}(...) in the source; found: {known}')
        call = _caller(name, self._signatures[name], self._library)
        setattr(self, name, call)
        return call


# --- reading the signatures --------------------------------------------------------------------

_NOISE = re.compile(
    r"""//[^\n]* | /\*.*?\*/                      # comments
      | R"(?P<mark>[^()\s\\"]{0,16})\(.*?\)(?P=mark)"   # raw strings
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+'  # strings and characters
      | ^[ \t]*\#(?:\\\n|[^\n])*                  # preprocessor lines, continued ones too
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_LINKAGE = re.compile(r'\bextern\s*"C"\s*(?P<block>\{)?')
_ATTRIBUTE = re.compile(r"\b(?:__attribute__|__declspec|alignas)\s*(?=\()|\[\[.*?\]\]", re.DOTALL)
_HEAD = re.compile(r"(?P<before>[^;{}()=]*?)\b(?P<name>[A-Za-z_]\w*)\s*(?=\()")
_OPEN, _CLOSE = "([{<", ")]}>"


def signatures(source: str, *, language: str = "cpp") -> dict[str, tuple[str, ...]]:
    """The parameters, as written, of each `extern "C"` function of the source.

    In C all functions that are not static count. Functions with a result are left out.
    """
    text = _plain(source)
    found: dict[str, tuple[str, ...]] = {}
    if language == "c":
        _definitions(text, 0, len(text), found)
        return found
    for linkage in _LINKAGE.finditer(text):
        if linkage["block"]:
            inside = linkage.end()
            _definitions(text, inside, _closing(text, inside - 1), found)
        else:
            _definition(text, linkage.end(), found)
    return found


def _plain(source: str) -> str:
    """The source without comments, strings, directives and attributes; `extern "C"` stays."""
    text = _NOISE.sub(lambda m: '"C"' if m[0] == '"C"' else " ", source)
    while (attribute := _ATTRIBUTE.search(text)) is not None:
        end = attribute.end()
        if not attribute[0].startswith("[["):
            end = _closing(text, end) + 1
        text = f"{text[: attribute.start()]} {text[end:]}"
    return text


def _definitions(text: str, start: int, end: int, found: dict[str, tuple[str, ...]]) -> None:
    """Adds the functions declared at the outer level of `text[start:end]`."""
    while start < end:
        start = _definition(text, start, found)


def _definition(text: str, start: int, found: dict[str, tuple[str, ...]]) -> int:
    """Adds the function declared at `start`, if it is one; returns where the next item begins."""
    head = _HEAD.match(text, start)
    if head is None:
        return _next_item(text, start)
    close = _closing(text, head.end())
    body = re.compile(r"\s*(?:noexcept\s*)?[{;]").match(text, close + 1)
    if body is None:
        return _next_item(text, close + 1)
    words = head["before"].split()
    if words and words[-1] == "void" and "static" not in words:
        found[head["name"]] = tuple(_split(text[head.end() + 1 : close]))
    return _next_item(text, close + 1)


def _next_item(text: str, start: int) -> int:
    """Past the next `;` or balanced `{...}`."""
    for at in range(start, len(text)):
        if text[at] in ";}":
            return at + 1
        if text[at] == "{":
            return _closing(text, at) + 1
    return len(text)


def _closing(text: str, opened: int) -> int:
    """Index of the bracket that closes the one at `opened`; the end when it is missing."""
    left = text[opened]
    right = _CLOSE[_OPEN.index(left)]
    depth = 0
    for at in range(opened, len(text)):
        depth += (text[at] == left) - (text[at] == right)
        if depth == 0:
            return at
    return len(text)


def _split(parameters: str) -> list[str]:
    """The parameters between the outer commas; `void` alone is none."""
    parts, depth = [""], 0
    for letter in parameters:
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    named = [" ".join(p.split("=")[0].split()) for p in parts]
    return [p for p in named if p and p != "void"]


# --- calling -----------------------------------------------------------------------------------

_INT32, _INT64 = ("int32",), ("int64",)
_HALVES = ("int16", "uint16", "float16", "bfloat16")
_BYTES = ("int8", "uint8", "bool")
_TYPES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "float": (ctypes.c_float, ("float32",)),
    "double": (ctypes.c_double, ("float64",)),
    "int": (ctypes.c_int, _INT32),
    "long": (ctypes.c_long, _INT64),
    "long int": (ctypes.c_long, _INT64),
    "long long": (ctypes.c_longlong, _INT64),
    "long long int": (ctypes.c_longlong, _INT64),
    "int32_t": (ctypes.c_int32, _INT32),
    "int64_t": (ctypes.c_int64, _INT64),
    "ptrdiff_t": (ctypes.c_ssize_t, _INT64),
    "ssize_t": (ctypes.c_ssize_t, _INT64),
    "unsigned": (ctypes.c_uint, ("uint32", "int32")),
    "unsigned int": (ctypes.c_uint, ("uint32", "int32")),
    "uint32_t": (ctypes.c_uint32, ("uint32", "int32")),
    "unsigned long": (ctypes.c_ulong, ("uint64", "int64")),
    "unsigned long long": (ctypes.c_ulonglong, ("uint64", "int64")),
    "uint64_t": (ctypes.c_uint64, ("uint64", "int64")),
    "size_t": (ctypes.c_size_t, ("uint64", "int64")),
    "short": (ctypes.c_short, _HALVES),
    "int16_t": (ctypes.c_int16, _HALVES),
    "unsigned short": (ctypes.c_ushort, _HALVES),
    "uint16_t": (ctypes.c_uint16, _HALVES),
    "_Float16": (None, ("float16",)),
    "__bf16": (None, ("bfloat16",)),
    "char": (ctypes.c_byte, _BYTES),
    "signed char": (ctypes.c_byte, _BYTES),
    "int8_t": (ctypes.c_int8, _BYTES),
    "unsigned char": (ctypes.c_ubyte, _BYTES),
    "uint8_t": (ctypes.c_uint8, _BYTES),
    "bool": (ctypes.c_bool, _BYTES),
}
"""By C type: how a scalar is passed, and the dtypes of a tensor behind a pointer to it."""
_QUALIFIER = re.compile(
    r"\b(?:const|volatile|restrict|__restrict__|__restrict|std::|struct)\b|std::"
)


def _caller(
    name: str, parameters: Sequence[str], library: ctypes.CDLL | None
) -> Callable[..., None]:
    if library is None:

        def refuse(**_: object) -> None:
            raise RuntimeError(f"{name}: kernels do not run while the module is recorded")

        return refuse
    function = library[name]
    function.restype = None
    passing = [_passing(name, p) for p in parameters]
    function.argtypes = [kind for kind, _ in passing]
    convert = [get for _, get in passing]

    def call(*, args: Sequence[Any], grid: object = None, block: object = None) -> None:  # noqa: ARG001 (for devices)
        if len(args) != len(convert):
            wanted = ", ".join(parameters)
            raise TypeError(f"{name} takes {len(convert)} arguments ({wanted}), got {len(args)}")
        function(*[get(a) for get, a in zip(convert, args, strict=True)])

    return call


def _passing(kernel: str, parameter: str) -> tuple[Any, Callable[[Any], Any]]:
    """Type for ctypes and the conversion of an argument for `float* x`, `long n`, ..."""
    kind, name, pointers = _declared(parameter)
    where = f"{kernel}: argument {name!r}"
    if pointers == 1:
        dtypes = _TYPES.get(kind, (None, ()))[1]
        return ctypes.c_void_p, _address(where, parameter, frozenset(f"torch.{d}" for d in dtypes))
    scalar = _TYPES.get(kind, (None, ()))[0]
    if pointers or scalar is None:
        known = ", ".join(k for k, (c, _) in _TYPES.items() if c is not None)
        raise TypeError(f"{where}: cannot pass {parameter!r}; give a pointer or one of {known}")
    return scalar, _number(where, parameter, scalar)


def _declared(parameter: str) -> tuple[str, str, int]:
    """Type, name and number of stars: `const float* __restrict x` is ('float', 'x', 1).

    A reference counts as two stars: it cannot be passed.
    """
    stars = parameter.count("*") + parameter.count("[") + 2 * parameter.count("&")
    words = re.sub(r"\[[^\]]*\]|[*&]", " ", _QUALIFIER.sub(" ", parameter)).split()
    if len(words) > 1 and " ".join(words) not in _TYPES:
        return " ".join(words[:-1]), words[-1], stars
    return " ".join(words), parameter, stars


def _address(where: str, parameter: str, dtypes: frozenset[str]) -> Callable[[Any], int | None]:
    """The conversion of a tensor to the address of its first element; None is a null pointer."""
    seen: set[Any] = set()  # torch.dtype objects that were right: comparing names costs more

    def address(tensor: Any) -> int | None:
        if tensor is None:
            return None
        if not hasattr(tensor, "data_ptr"):
            raise TypeError(f"{where} ({parameter}) must be a tensor, not {type(tensor).__name__}")
        if tensor.dtype not in seen:
            if dtypes and str(tensor.dtype) not in dtypes:
                raise TypeError(
                    f"{where} is declared {parameter!r} and was given a tensor of {tensor.dtype}"
                )
            seen.add(tensor.dtype)
        if not tensor.is_cpu:
            raise TypeError(f"{where} must be a CPU tensor, not one on {tensor.device}")
        if not tensor.is_contiguous():
            raise ValueError(f"{where} was given a tensor that is not contiguous: .contiguous()")
        return int(tensor.data_ptr())

    return address


def _number(where: str, parameter: str, kind: Any) -> Callable[[Any], Any]:
    """The conversion of a Python number; one that does not fit is refused, not cut."""
    if kind is ctypes.c_bool:
        return bool
    exact = float if kind in (ctypes.c_float, ctypes.c_double) else operator.index

    def number(value: Any) -> Any:
        try:
            plain = exact(value)
        except TypeError:
            given = type(value).__name__
            raise TypeError(f"{where} ({parameter}) must be a number, not {given}") from None
        if exact is operator.index and kind(plain).value != plain:
            raise OverflowError(f"{where}: {plain} does not fit {parameter!r}")
        return plain

    return number
