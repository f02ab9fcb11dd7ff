"""Ledgers with a few confirmed kernels, made by hand."""

from dataclasses import replace
from pathlib import Path

from data.records import Candidate, Device, Draw, Iteration, Operator, RunResult, RunStatus
from data.store import Ledger
from tests.data.samples import CPU, confirmed, timing

ARGMAX = '''
"""Index of the largest element of each row, and whether it is positive."""

import torch
from torch import nn

FAMILY = "reduction"
OUTPUT = ["index", "bool"]
SHAPES = {"small": {"rows": 5, "cols": 33}, "full": {"rows": 64, "cols": 100}}


class Model(nn.Module):
    def forward(self, x):
        best = x.max(dim=-1)
        return best.indices, best.values > 0


def get_inputs(rows=64, cols=100):
    return [torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []
'''
ARGMAX_KERNEL = '''
from __future__ import annotations

import torch
from kforge_launch import kernels as build
from torch import nn

K = build(r"""
extern "C" void best(const float* x, int64_t* index, bool* positive, long rows, long cols) {
  for (long r = 0; r < rows; ++r) {
    long k = 0;
    for (long c = 1; c < cols; ++c) if (x[r * cols + c] > x[r * cols + k]) k = c;
    index[r] = k;
    positive[r] = x[r * cols + k] > 0;
  }
}
""".replace("extern", "#include <cstdint>\\nextern", 1))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        index = torch.empty(x.shape[0], dtype=torch.int64)
        positive = torch.empty(x.shape[0], dtype=torch.bool)
        K.best(args=(x, index, positive, x.shape[0], x.shape[1]))
        return index, positive
'''


def operator(name: str, source: str) -> Operator:
    return Operator(name=name, source=source)


def kernel(
    name: str, source: str, candidate: str, *, device: Device = CPU, **other: object
) -> Iteration:
    """A confirmed kernel, right at `small` and `full`, 1.5 times as fast at `full`."""
    row = confirmed(9, 1.5)
    shapes = ("small", "full")
    draws = tuple(
        Draw(shape=shape, distribution="official", error=1.0, worst=1.0, ok=True)
        for shape in shapes
    )
    run = RunResult(status=RunStatus.RAN, draws=draws, timings=(timing("full"),))
    written = Candidate(source=candidate, language="cpp", agent_kind="given", agent_name="given")
    plain = replace(row, operator=operator(name, source), candidate=written, run=run, device=device)
    return replace(plain, **other)  # type: ignore[arg-type]  # fields by name


def argmax(**other: object) -> Iteration:
    return kernel("row_best", ARGMAX, ARGMAX_KERNEL, **other)  # type: ignore[arg-type]


def ledger(folder: Path, *rows: Iteration) -> Path:
    """A folder with these rows, each a step of its own."""
    for number, row in enumerate(rows):
        move = replace(row.move, step=number)
        Ledger(folder).append(
            replace(row, move=move, ended_at=f"2026-01-01T01:{number:02d}:00+00:00")
        )
    return folder
