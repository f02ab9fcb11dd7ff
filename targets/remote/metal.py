"""The kernels of a Metal source: their names, parameters and where each parameter comes from."""

import re
from dataclasses import dataclass

NOISE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.DOTALL)
ATTRIBUTE = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_KERNEL = re.compile(r"\bkernel\s+void\s+(?P<name>\w+)\s*(?P<given><[^()]*?>)?\s*\(")
_SHORT = re.compile(
    r"\btemplate\s+kernel\s+decltype\s*\([^;]*?\)\s*(?P<name>\w+)\s*(?P<given><[^;]*>)\s*;"
)
_GENERIC = re.compile(r"\btemplate\s*<(?P<parameters>[^<>;{}]*)>\s*$")
_SPACES = re.compile(r"\b(?:device|constant|threadgroup|thread|const|volatile|restrict|coherent)\b")
C_TYPES = {
    "half": "_Float16",
    "bfloat": "__bf16",
    "uint": "unsigned int",
    "ushort": "unsigned short",
    "uchar": "unsigned char",
    "ulong": "unsigned long",
    "atomic_int": "int",
    "atomic_uint": "unsigned int",
    "atomic_float": "float",
    "atomic_bool": "bool",
}
"""C's words for Metal's."""
POINTERS = {
    **{f"float{n}": ("float32",) for n in (2, 3, 4)},
    **{f"half{n}": ("float16",) for n in (2, 3, 4)},
    **{f"bfloat{n}": ("bfloat16",) for n in (2, 3, 4)},
    **{f"{sign}int{n}": ("int32", "uint32") for sign in ("", "u") for n in (2, 3, 4)},
    "packed_float3": ("float32",),
}
"""By type: the dtypes of a tensor behind a pointer to it."""
NUMBERS = re.compile(
    r"float|int|long|short|char|bool|u?int(?:8|16|32|64)_t|size_t|unsigned(?: int)?"
    r"|uint|ushort|uchar|ulong"
)
"""What Python passes as a number; a reference to anything else takes a tensor."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel; `source` is `buffer`, `threadgroup` or the word of a built-in."""

    kind: str
    name: str
    source: str
    index: str
    pointer: bool

    @property
    def number(self) -> bool:
        """Whether Python passes a number for it."""
        return not self.pointer and NUMBERS.fullmatch(self.kind) is not None

    def as_c(self) -> str:
        """The declaration in C."""
        kind = C_TYPES.get(self.kind, self.kind)
        return f"{kind} {self.name}" if self.number else f"{kind}* {self.name}"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel under the name by which it is launched."""

    name: str
    call: str
    """The function, with its template arguments."""
    parameters: tuple[Parameter, ...]
    at: int
    """Where in the source it stands."""

    def buffers(self) -> tuple[Parameter, ...]:
        """Those that Python passes, in the order of their indices; ones without come last."""
        found = [p for p in self.parameters if p.source == "buffer"]
        given = sorted((p for p in found if p.index.isdigit()), key=lambda p: int(p.index))
        return (*given, *(p for p in found if not p.index.isdigit()))


def blank(text: str, pattern: "re.Pattern[str]") -> str:
    """The text with spaces for what matches; lines and columns stay."""
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def kernels_of(source: str) -> tuple[Kernel, ...]:
    """The kernels that can be launched, in the order of the source."""
    code = blank(source, NOISE)
    clean = blank(re.sub(r"\[\[\s*kernel\s*\]\]", _kernel_word, code), ATTRIBUTE)
    generic: dict[str, tuple[tuple[str, ...], tuple[Parameter, ...]]] = {}
    found: list[Kernel] = []
    for head in _KERNEL.finditer(clean):
        before = clean[: head.start()].rstrip()
        inside = code[head.end() : _closing_at(clean, head.end() - 1)]
        template = _GENERIC.search(before)
        if template is not None:
            names = tuple(p.split()[-1] for p in template["parameters"].split(",") if p.split())
            generic[head["name"]] = (names, _parameters(inside))
        elif not re.search(r"\btemplate$", before):
            name = head["name"]
            found.append(Kernel(name, name, _parameters(inside), head.start()))
    found += [
        _instance(source, clean, made, generic[made["name"]])
        for made in (*_KERNEL.finditer(clean), *_SHORT.finditer(clean))
        if made["given"] and made["name"] in generic
    ]
    return tuple(sorted(found, key=lambda k: k.at))


def prototypes(source: str) -> str:
    """A C prototype of each kernel with the parameters that Python passes."""
    return "\n".join(
        f'extern "C" void {k.name}({", ".join(p.as_c() for p in k.buffers())});'
        for k in kernels_of(source)
    )


def _kernel_word(found: "re.Match[str]") -> str:
    return "kernel".ljust(len(found[0]))


def _instance(
    source: str,
    clean: str,
    made: "re.Match[str]",
    generic: tuple[tuple[str, ...], tuple[Parameter, ...]],
) -> Kernel:
    """The template with the arguments of an explicit instantiation."""
    start = clean.rindex("template", 0, made.start("name"))
    named = re.search(r'host_name\s*\(\s*"(\w+)"', source[start : made.start("name")])
    names, parameters = generic
    given = [a.strip() for a in made["given"][1:-1].split(",")]
    kinds = dict(zip(names, given, strict=False))
    replaced = tuple(
        Parameter(
            re.sub(r"\w+", lambda m: kinds.get(m[0], m[0]), p.kind),
            p.name, p.source, p.index, p.pointer,
        )
        for p in parameters
    )  # fmt: skip
    call = f"{made['name']}{made['given']}"
    return Kernel(named[1] if named else made["name"], call, replaced, start)


def _parameters(text: str) -> tuple[Parameter, ...]:
    return tuple(_parameter(part) for part in _between_commas(text) if part.strip())


def _parameter(text: str) -> Parameter:
    attribute = ATTRIBUTE.search(text)
    words = re.match(r"\s*(\w+)\s*(?:\(\s*(.*?)\s*\))?", attribute[1]) if attribute else None
    bare = _SPACES.sub(" ", ATTRIBUTE.sub(" ", text))
    pointer = "*" in bare or "[" in bare
    left = re.match(r"(.*[\w>])[\s*&]+(\w+)\s*(?:\[[^\]]*\])?\s*$", bare, re.DOTALL)
    kind, name = (left[1], left[2]) if left else (bare, "")
    kind = re.sub(r"\bmetal::|[*&]", "", " ".join(kind.split()))
    kind = re.sub(r"^atomic<\s*(\w+)\s*>$", r"\1", kind).strip()
    source = words[1] if words else "buffer"
    return Parameter(kind, name, source, (words[2] or "") if words else "", pointer)


def _between_commas(text: str) -> list[str]:
    """The parts between the outer commas."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _closing_at(text: str, opened: int) -> int:
    """Index of the bracket that closes the one at `opened`; the end when it is missing."""
    depth = 0
    for at in range(opened, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return len(text)
