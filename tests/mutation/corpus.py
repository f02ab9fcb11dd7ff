"""Correct kernels and the bugs planted into them, one at a time, read from `cases/*.toml`.

A file holds one operator and its kernels. A kernel is a C++ source (`c`) and the body of
`ModelNew.forward` (`model`), both correct. Under `mutants` stand edits that make it wrong, by kind
of fault; under `variants` edits that do not. An edit is a list of texts: find, replacement, find,
replacement; each text to find stands in the kernel exactly once.
"""

import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.records import Contract, LibraryPolicy, Operator, Policy, ShapePolicy

FOLDER = Path(__file__).parent / "cases"
OPERATOR = """
import torch
from torch import nn
OUTPUT = {output!r}
DOMAINS = {domains!r}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
{setup}
    def forward(self, {arguments}):
{forward}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""
CANDIDATE = '''
import torch
from torch import nn
from kforge_launch import kernels
K = kernels(r"""
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
static inline float bf16(float v) {{
  uint32_t u;
  memcpy(&u, &v, 4);
  u = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u;
  memcpy(&v, &u, 4);
  return v;
}}
static inline float tf32(float v) {{
  uint32_t u;
  memcpy(&u, &v, 4);
  u = (u + 0xfff + ((u >> 13) & 1)) & ~0x1fffu;
  memcpy(&v, &u, 4);
  return v;
}}
static inline float fp16(float v) {{ return (float)(_Float16)v; }}
{c}
""")
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
{setup}
    def forward(self, {arguments}):
{model}
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kernel with what the judge must say of it."""

    name: str
    """operator/kernel/kind-number."""
    operator: Operator
    contract: Contract
    source: str
    kind: str | None
    """Of the planted fault; None for a correct variant."""

    @property
    def mutant(self) -> bool:
        return self.kind is not None


def _of(file: Path) -> Iterator[Case]:
    told = tomllib.loads(file.read_text())
    known: dict[str, Any] = {"operator": _operator(file.stem, told), "contract": _contract(told)}
    for title, kernel in told["kernels"].items():
        name = f"{file.stem}/{title}"
        yield Case(name=name, source=_source(told, kernel, ()), kind=None, **known)
        for variant, edit in kernel.get("variants", {}).items():
            source = _source(told, kernel, edit)
            yield Case(name=f"{name}/{variant}", source=source, kind=None, **known)
        for kind, edits in kernel.get("mutants", {}).items():
            for number, edit in enumerate(edits):
                source = _source(told, kernel, edit)
                yield Case(name=f"{name}/{kind}-{number}", source=source, kind=kind, **known)


def _operator(name: str, told: Mapping[str, Any]) -> Operator:
    source = OPERATOR.format(
        output=told.get("output", "float"),
        domains=told.get("domains"),
        setup=_indented(told.get("setup", "")),
        arguments=told["arguments"],
        forward=_indented(told["forward"]),
        inputs=told["inputs"],
    )
    return Operator(name=name, source=source, family=told["family"])


def _contract(told: Mapping[str, Any]) -> Contract:
    """Library compute is allowed: no policy shall hide a fault."""
    return Contract(
        policy=Policy(told.get("policy", "strict")),
        shapes=ShapePolicy(told.get("shapes", "fixed")),
        library=LibraryPolicy.ALLOWED,
    )


def _source(told: Mapping[str, Any], kernel: Mapping[str, str], edit: Sequence[str]) -> str:
    c, model = kernel.get("c", ""), kernel["model"]
    for find, into in zip(edit[::2], edit[1::2], strict=True):
        if (c + model).count(find) != 1:
            raise ValueError(f"{find!r} stands {(c + model).count(find)} times in the kernel")
        c, model = c.replace(find, into), model.replace(find, into)
    setup = _indented(told.get("setup", ""))
    return CANDIDATE.format(c=c, setup=setup, arguments=told["arguments"], model=_indented(model))


def _indented(body: str) -> str:
    return textwrap.indent(textwrap.dedent(body).strip() or "pass", " " * 8)


_FILES = tuple(sorted(FOLDER.glob("*.toml")))
FAMILIES = frozenset(str(tomllib.loads(file.read_text())["family"]) for file in _FILES)
CASES = tuple(case for file in _FILES for case in _of(file))
"""All mutants and variants, by operator."""
