"""An operator file in KernelBench form for calls of one ATen operator."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tasks.from_model.profile import Call, Tensor, Used

EMBEDDING = "aten.embedding.default"
"""The only operator whose integers have a range that can be told: rows of its first argument."""
POSITIVE = ("log", "sqrt", "rsqrt", "reciprocal", "log2", "log10", "log1p")
"""Whose first argument must not be negative."""
PLAIN = (type(None), bool, int, float, str, torch.dtype, torch.memory_format, torch.layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Calls that differ in the sizes of their tensors alone, the longest first."""

    members: tuple[Used, ...]

    @property
    def call(self) -> Call:
        return self.members[0].call

    @property
    def microseconds(self) -> float:
        """In one run of the model."""
        return sum(member.microseconds for member in self.members)


def groups(found: Sequence[Used]) -> tuple[Group, ...]:
    """The calls by operator and constants; the groups that take longest first."""
    by_form: dict[Any, list[Used]] = {}
    for one in found:
        form = (one.call.op, _form(one.call.arguments), _form(one.call.keywords))
        by_form.setdefault(repr(form), []).append(one)
    made = [Group(members=tuple(members)) for members in by_form.values()]
    return tuple(sorted(made, key=lambda group: -group.microseconds))


def _form(value: Any) -> Any:
    """The value without the sizes of its tensors."""
    if isinstance(value, Tensor):
        return ("tensor", len(value.shape), value.dtype, value.state)
    return tuple(map(_form, value)) if isinstance(value, tuple) else value


def fault(call: Call) -> str:
    """Why no file can be made of a call; empty where one can."""
    tensors = _tensors(call)
    if call.random:
        return "it draws random numbers"
    if not any(not tensor.state for tensor in tensors):
        return "it has no input"
    for value in _leaves((call.arguments, call.keywords)):
        if not isinstance(value, (*PLAIN, Tensor, torch.device)):
            return f"it takes a {type(value).__name__}"
    whole = [i for i, t in enumerate(tensors) if t.dtype.startswith(("int", "uint"))]
    if whole and (call.op, whole) != (EMBEDDING, [1]):
        return "it takes integers whose range only the model knows"
    if any("complex" in tensor.dtype or "8" in tensor.dtype for tensor in tensors):
        return "it takes numbers of a kind that are not drawn here"
    return ""


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for v in value for leaf in _leaves(v)]
    return [value]


def _tensors(call: Call) -> list[Tensor]:
    found = _leaves((call.arguments, call.keywords))
    return [leaf for leaf in found if isinstance(leaf, Tensor)]


def source(group: Group, model: str) -> str:
    """The text of the file; it is the same for the same calls, whatever time they took."""
    written = _Written(group)
    lines = [
        f'"""{group.call.op} as {model} calls it."""',
        "",
        "import torch",
        "from torch import nn",
        "",
        f"SHAPES = {written.shapes()}",
        f"DOMAINS = {json.dumps(written.domains)}",
        "",
        "",
        "class Model(nn.Module):",
        *(written.constructor()),
        f"    def forward({', '.join(['self', *written.inputs])}):",
        f"        return torch.ops.{written.call}",
        "",
        "",
        f"def get_inputs({written.defaults}):",
        "    return [",
        *(f"        {drawn}," for drawn in written.drawn),
        "    ]",
        "",
        "",
        f"def get_init_inputs({written.defaults}):",
        f"    return [{', '.join(written.init)}]",
    ]
    return "\n".join(lines) + "\n"


class _Written:
    """The parts of the text, filled argument by argument."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._extents = [_extents(member.call) for member in group.members]
        columns = list(zip(*self._extents, strict=True))
        self._names = {column: f"d{i}" for i, column in enumerate(dict.fromkeys(columns))}
        self._left = [self._names[column] for column in columns]
        self.inputs: list[str] = []
        self.drawn: list[str] = []
        self.domains: list[str] = []
        self.parameters: list[str] = []
        self.init: list[str] = []
        words = [self._value(value) for value in group.call.arguments]
        named = [(n, v) for n, v in group.call.keywords if not isinstance(v, torch.device)]
        words += [f"{name}={self._value(value)}" for name, value in named]
        self.call = f"{group.call.op}({', '.join(words)})"
        self.defaults = ", ".join(f"{n}={column[0]}" for column, n in self._names.items())

    def constructor(self) -> list[str]:
        """Its lines; none without parameters."""
        if not self.parameters:
            return []
        head = f"    def __init__({', '.join(['self', *self.init])}):"
        body = (f"        {line}" for line in self.parameters)
        return [head, "        super().__init__()", *body, ""]

    def shapes(self) -> str:
        """The literal of SHAPES: the call that takes longest is the official one."""
        labels = ("full", *(f"shape{i}" for i in range(1, len(self._extents))))
        rows = [
            f"    {json.dumps(label)}: {json.dumps({n: c[i] for c, n in self._names.items()})},"
            for i, label in enumerate(labels)
        ]
        return "\n".join(("{", *rows, "}"))

    def _value(self, value: Any) -> str:
        if isinstance(value, tuple):
            return f"[{', '.join(map(self._value, value))}]"
        if not isinstance(value, Tensor):
            return repr(value)
        dims = [self._left.pop(0) for _ in value.shape]
        return self._parameter(value, dims) if value.state else self._input(value, dims)

    def _parameter(self, tensor: Tensor, dims: list[str]) -> str:
        name = f"state{len(self.parameters)}"
        scale = f" / {dims[-1]} ** 0.5" if len(dims) > 1 else ""
        self.parameters.append(
            f"self.{name} = nn.Parameter({_drawn('randn', dims, tensor)}{scale})"
        )
        self.init += [d for d in dims if d not in self.init]
        return f"self.{name}"

    def _input(self, tensor: Tensor, dims: list[str]) -> str:
        self.inputs.append(f"x{len(self.inputs)}")
        drawn, domain = _drawn("randn", dims, tensor), "real"
        operator = self._group.call.op.split(".")[1]
        if tensor.dtype == "bool":
            drawn, domain = f"torch.rand({_size(dims)}) > 0.5", "fixed"
        elif tensor.dtype.startswith("int"):
            rows = next(iter(self._names.values()))  # the first extent of the first argument
            drawn = f"torch.randint(0, {rows}, ({', '.join(dims)},), dtype=torch.{tensor.dtype})"
            domain = f"index:{rows}"
        elif operator in POSITIVE:
            drawn, domain = f"0.1 + {_drawn('rand', dims, tensor)}", "positive"
        self.drawn.append(drawn)
        self.domains.append(domain)
        return self.inputs[-1]


def _extents(call: Call) -> tuple[int, ...]:
    """The extents of all tensors, in the order of the arguments."""
    return tuple(extent for tensor in _tensors(call) for extent in tensor.shape)


def _drawn(recipe: str, dims: Sequence[str], tensor: Tensor) -> str:
    return f"torch.{recipe}({_size(dims)}, dtype=torch.{tensor.dtype})"


def _size(dims: Sequence[str]) -> str:
    return ", ".join(dims) or "()"
