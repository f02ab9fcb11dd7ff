"""Compile a kernel source for the device in hand and call it, without torch headers.

The module travels with the candidate and with every export: one file, stdlib only. C and C++ are
built in; another language is a `Half`, entered in `HALVES` by the target that brings it. Three
modes:

- *standalone* (the default): `kernels()` compiles into a private cache folder and loads.
- *record*: `record()` was called; nothing is compiled, the sources are collected.
- *load*: `load_from(folder)` was called; what was compiled is found by content hash, without a
  compiler.

Kernels are `extern "C"` functions without a result; their parameters are read from the source, so
that a Python int becomes what the kernel declares (`long`, `int`, `float`, `double`, ...) and a
tensor of another dtype is refused by name:

>>> signatures('extern "C" void relu(const float* x, float* y, long n) { }')
{'relu': ('const float* x', 'float* y', 'long n')}

A kernel is called as `K.relu(grid=(64,), block=(256,), args=(x, y, n), shared=0)`; on a processor
`args` alone is used.
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

LANGUAGES = ("cpp", "c")
"""Built in; `HALVES` has all."""
STANDARDS = {"cpp": ("-std=c++17", "-x", "c++"), "c": ("-std=gnu11", "-x", "c")}
CPP_FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
"""Contraction (FMA) stays on, fast-math off: 0.45 s a file (TOOLCHAINS.md, section 7)."""
DEFINED = ("-Wl,-z,defs",) if sys.platform == "linux" else ()
"""A missing function is the linker's message and not the loader's."""

Launch = Callable[[Sequence[Any], Any, Any, int, Sequence[Any]], None]
"""Arguments as the kernel declares them, grid, block, bytes of dynamic shared memory, and the
arguments as they were given: a device that is emulated has to know where a tensor ends."""


class Half(Protocol):
    """One vendor's way to compile a source, to load what came out and to call it.

    It stands in the target's file and uses nothing of this module, so that both can be joined into
    the one file that an export carries.
    """

    @property
    def languages(self) -> tuple[str, ...]: ...

    @property
    def source(self) -> str:
        """Name of the file that the compiler reads, with the suffix that it expects."""

    @property
    def product(self) -> str:
        """Name of the file that it writes."""

    @property
    def place(self) -> str:
        """Type of the torch device on which tensors must lie: cpu, cuda, xpu, mps."""

    @property
    def pointers(self) -> dict[str, tuple[str, ...]]:
        """By type name: the dtypes of a tensor behind a pointer to it, beyond those of C."""

    def as_c(self, source: str) -> str:
        """The source in which each kernel is an `extern "C"` function, to read its parameters."""

    def hollow(self, language: str, kernels: Mapping[str, Sequence[str]]) -> str:
        """A source with these kernels, by name with their parameters, none of which does anything.

        Empty where the judge has no use for one.
        """

    def tag(self) -> str:
        """What the compiled file depends on beside the source: the device's architecture."""

    def compile(self, language: str, source: Path, product: Path) -> None:
        """Compiles for the device in hand. RuntimeError with the compiler's text."""

    def load(self, product: Path) -> Any:
        """What `bind` takes; nothing is asked of the device yet."""

    def bind(self, loaded: Any, name: str, kinds: Sequence[Any]) -> Launch:
        """The kernel of that name; `kinds` are the ctypes of its parameters."""


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
    """From now on compiled kernels come from `folder`, named `source_hash` + a suffix."""
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
    if language not in HALVES:
        raise ValueError(
            f"kforge_launch cannot build {language!r} here; known: {', '.join(HALVES)}"
        )
    if not isinstance(source, str):
        raise TypeError(f"the kernel source must be a str, not {type(source).__name__}")
    if _recorded is not None:
        _recorded.append((language, source))
        return Kernels(source, None, language=language)
    loaded = HALVES[language].load(_product(language, source))
    return Kernels(source, loaded, language=language)


def _product(language: str, source: str) -> Path:
    """What the compiler made of the source."""
    half, name = HALVES[language], source_hash(language, source)
    suffix = Path(half.product).suffix
    if _folder is not None:
        found = _folder / f"{name}{suffix}"
        if not found.exists():
            raise RuntimeError("this kernel source was not there when the module was recorded")
        return found
    cache = Path(os.environ.get("KFORGE_LAUNCH_CACHE") or Path.home() / ".cache" / "kforge_launch")
    found = cache / f"{name}{half.tag()}{suffix}"
    return found if found.exists() else _compile(language, source, found)


def _compile(language: str, source: str, product: Path) -> Path:
    half = HALVES[language]
    product.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=product.parent) as folder:
        text, built = Path(folder, half.source), Path(folder, half.product)
        text.write_text(source)
        half.compile(language, text, built)
        built.replace(product)
    return product


class CppHalf:
    """C and C++ on the processor: a shared library called through ctypes."""

    languages, place, pointers = LANGUAGES, "cpu", dict[str, tuple[str, ...]]()
    source, product = "kernel.cpp", "kernel.so"

    def as_c(self, source: str) -> str:
        return source

    def hollow(self, language: str, kernels: Mapping[str, Sequence[str]]) -> str:
        form = "void {}(void) {{}}" if language == "c" else 'extern "C" void {}() {{}}'
        return "\n".join(form.format(name) for name in kernels)

    def tag(self) -> str:
        return ""

    def compile(self, language: str, source: Path, product: Path) -> None:
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            raise RuntimeError("no C++ compiler on this machine: install g++ or clang")
        command = compile_command(source, product, compiler=compiler, language=language)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)

    def load(self, product: Path) -> ctypes.CDLL:
        return ctypes.CDLL(str(product))

    def bind(self, loaded: ctypes.CDLL, name: str, kinds: Sequence[Any]) -> Launch:
        function = loaded[name]
        function.restype, function.argtypes = None, list(kinds)
        return lambda values, _grid, _block, _shared, _args: function(*values)


CPP = CppHalf()
HALVES: dict[str, Half] = dict.fromkeys(LANGUAGES, CPP)
"""By language."""


class Kernels:
    """The callable functions of one source; without `loaded` they say that they do not run."""

    def __init__(self, source: str, loaded: Any, *, language: str = "cpp") -> None:
        self._half = HALVES[language]
        self._signatures = signatures(self._half.as_c(source), language=language)
        self._loaded = loaded

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._signatures:
            known = ", ".join(self._signatures) or "none"
            raise AttributeError(f'no extern "C" void {name}(...) in the source; found: {known}')
        call = _caller(self._half, name, self._signatures[name], self._loaded)
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


def _caller(half: Half, name: str, parameters: Sequence[str], loaded: Any) -> Callable[..., None]:
    if loaded is None:

        def refuse(**_: object) -> None:
            raise RuntimeError(f"{name}: kernels do not run while the module is recorded")

        return refuse
    passing = [_passing(half, name, p) for p in parameters]
    convert = [get for _, get in passing]
    launch = half.bind(loaded, name, [kind for kind, _ in passing])

    def call(*, args: Sequence[Any], grid: Any = None, block: Any = None, shared: int = 0) -> None:
        if len(args) != len(convert):
            wanted = ", ".join(parameters)
            raise TypeError(f"{name} takes {len(convert)} arguments ({wanted}), got {len(args)}")
        values = [get(a) for get, a in zip(convert, args, strict=True)]
        launch(values, grid, block, shared, args)

    return call


def _passing(half: Half, kernel: str, parameter: str) -> tuple[Any, Callable[[Any], Any]]:
    """Type for ctypes and the conversion of an argument for `float* x`, `long n`, ..."""
    kind, name, pointers = _declared(parameter)
    where = f"{kernel}: argument {name!r}"
    if pointers == 1:
        wanted = half.pointers.get(kind) or _TYPES.get(kind, (None, ()))[1]
        dtypes = frozenset(f"torch.{d}" for d in wanted)
        return ctypes.c_void_p, _address(f"{where} ({parameter})", dtypes, half.place)
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


def _address(where: str, dtypes: frozenset[str], place: str) -> Callable[[Any], int | None]:
    """The conversion of a tensor to the address of its first element; None is a null pointer."""
    seen: set[Any] = set()  # torch.dtype objects that were right: comparing names costs more
    is_there = f"is_{place}"

    def address(tensor: Any) -> int | None:
        if tensor is None:
            return None
        if not hasattr(tensor, "data_ptr"):
            raise TypeError(f"{where} must be a tensor, not {type(tensor).__name__}")
        if tensor.dtype not in seen:
            if dtypes and str(tensor.dtype) not in dtypes:
                raise TypeError(f"{where} was given a tensor of {tensor.dtype}")
            seen.add(tensor.dtype)
        if not getattr(tensor, is_there):
            raise TypeError(f"{where} must be a {place.upper()} tensor, not one on {tensor.device}")
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
