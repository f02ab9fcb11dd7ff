"""Metal kernels with known answers, in one source, and what they should give."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

N = 1000
ROWS, COLUMNS = 3, 700


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A launch, and the answer in the tensor at `result`."""

    kernel: str
    args: Callable[[], list[Any]]
    wanted: Callable[[Sequence[Any]], Tensor]
    result: int = 1
    grid: Any = (4,)
    block: Any = (256,)
    shared: int = 0


def line(n: int = N) -> Tensor:
    return torch.linspace(-2, 2, n)


def zeros(*size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(*size, dtype=dtype)


def ints(n: int) -> Tensor:
    return (torch.arange(n) * 7919 % 1009).int()


def table() -> Tensor:
    return torch.arange(ROWS * COLUMNS).remainder(97).float().view(ROWS, COLUMNS) / 7


SOURCE = (Path(__file__).parent / "metal" / "kernels.metal").read_text()


def _shuffled(args: Sequence[Any]) -> Tensor:
    x = args[0].view(-1, 32).long()
    lane = torch.arange(32)
    flags = 10000 * (x == 0).any(-1) + 20000 * (x >= 0).all(-1)
    columns = [
        x.flip(-1), x[:, lane ^ 1], x[:, torch.where(lane < 2, lane, lane - 2)],
        x[:, torch.where(lane > 28, lane, lane + 3)], x[:, 5:6].expand_as(x), x.cumsum(-1),
        x.cumsum(-1) - x, (x[:, 0] + flags)[:, None].expand_as(x),
    ]  # fmt: skip
    return torch.stack(columns, -1).int()


def _branches(_: Sequence[Any]) -> Tensor:
    lane = torch.arange(32)
    rounds = [int((lane > k).sum()) for k in range(0, 32, 8)]
    turns = torch.tensor([1000 * sum(r for k, r in enumerate(rounds) if 8 * k < i) for i in lane])
    own = torch.where(lane < 10, 10, 2200)
    return (own + turns + 32_000_000).int()


def _vectors(args: Sequence[Any]) -> Tensor:
    a = args[0]
    b = a[:, [2, 0, 1]]
    x, other = a[:, 0], b[:, 0]
    first = (torch.linalg.cross(a, b) * a).sum(-1)
    chosen = torch.where(x < other, other, x)
    return torch.stack([first, torch.zeros_like(x), chosen, x + (other - x) * 0.25 + 0.8], -1)


def _bits(args: Sequence[Any]) -> Tensor:
    def one(v: int) -> int:
        return v.bit_count() + (32 - v.bit_length()) * 100 + 10000 + (v >> 2)

    return torch.tensor([one(v) for v in args[0].tolist()], dtype=torch.int32)


def _pixels(args: Sequence[Any]) -> Tensor:
    c = args[0][:, :3].float() / 255
    return c @ torch.tensor([0.5, 0.25, 0.125]) + (c > 0.1).all(-1).float()


def _cube(_: Sequence[Any]) -> Tensor:
    z, y, x = torch.meshgrid(torch.arange(4), torch.arange(6), torch.arange(4), indexing="ij")
    return (x + 10 * y + 100 * z + 2000 + 320000).int()


def _norm(args: Sequence[Any]) -> Tensor:
    return torch.nn.functional.layer_norm(args[0], (COLUMNS,), args[1])


def _histogram(args: Sequence[Any]) -> Tensor:
    return torch.bincount(args[0].long() & 15, minlength=16).int()


def _pairs(n: int) -> Tensor:
    return torch.arange(n * 3).float().view(n, 3).sin()


CASES = (
    Case(kernel="relu", args=lambda: [line(), zeros(N), N], wanted=lambda a: a[0].relu()),
    Case(
        kernel="gelu",
        args=lambda: [line(), zeros(N), N],
        wanted=lambda a: torch.nn.functional.gelu(a[0], approximate="tanh"),
    ),
    Case(
        kernel="scaled",
        args=lambda: [line(), zeros(N), 0.5],
        wanted=lambda a: a[0] * 0.5 + 2.5,
        grid=1,
    ),
    Case(
        kernel="softmax",
        args=lambda: [table(), zeros(ROWS, COLUMNS), COLUMNS],
        wanted=lambda a: a[0].softmax(-1),
        grid=(ROWS,),
    ),
    Case(
        kernel="transpose",
        args=lambda: [table(), zeros(COLUMNS, ROWS), torch.tensor([COLUMNS, ROWS]).int()],
        wanted=lambda a: a[0].T,
        grid=(44, 1),
        block=(16, 16),
    ),
    Case(
        kernel="matmul",
        result=2,
        args=lambda: [table()[:, :50].contiguous(), table()[:, :60].reshape(-1)[:150].view(50, 3)
                      .contiguous(), zeros(3, 3), 3, 3, 50],
        wanted=lambda a: a[0] @ a[1],
        grid=(1, 1),
        block=(8, 8),
    ),
    Case(
        kernel="total",
        args=lambda: [line(), zeros(1), N],
        wanted=lambda a: a[0].sum()[None],
        grid=(1,),
        block=(64,),
        shared=256,
    ),
    Case(
        kernel="histogram",
        args=lambda: [ints(N), zeros(16, dtype=torch.int32), N],
        wanted=_histogram,
    ),
    Case(
        kernel="extremes",
        args=lambda: [ints(1024), zeros(2, dtype=torch.int32) + 500],
        wanted=lambda a: torch.stack([a[0].max(), a[0].min()]),
    ),
    Case(
        kernel="float_sum",
        args=lambda: [line(1024), zeros(1)],
        wanted=lambda a: a[0].sum()[None],
    ),
    Case(
        kernel="shuffles",
        args=lambda: [ints(64), zeros(2, 32, 8, dtype=torch.int32)],
        wanted=_shuffled,
        grid=(1,),
        block=(64,),
    ),
    Case(
        kernel="branches",
        result=0,
        args=lambda: [zeros(32, dtype=torch.int32)],
        wanted=_branches,
        grid=(1,),
        block=(32,),
    ),
    Case(
        kernel="halves",
        args=lambda: [line().half(), zeros(N).half()],
        wanted=lambda a: (a[0] * 1.5).clamp(-1, 1) + a[0].exp(),
    ),
    Case(
        kernel="brains",
        args=lambda: [line().bfloat16(), zeros(N).bfloat16()],
        wanted=lambda a: a[0] * 3,
    ),
    Case(
        kernel="pixels",
        args=lambda: [(ints(256 * 4) % 256).to(torch.uint8).view(-1, 4), zeros(256)],
        wanted=_pixels,
        grid=(1,),
    ),
    Case(
        kernel="vectors",
        args=lambda: [_pairs(64), zeros(64, 4)],
        wanted=_vectors,
        grid=(1,),
        block=(64,),
    ),
    Case(
        kernel="bits",
        args=lambda: [ints(256), zeros(256, dtype=torch.int32)],
        wanted=_bits,
        grid=(1,),
    ),
    Case(
        kernel="cube",
        result=0,
        args=lambda: [zeros(4, 6, 4, dtype=torch.int32)],
        wanted=_cube,
        grid=(2, 3, 2),
        block=(2, 2, 2),
    ),
    Case(
        kernel="affine",
        args=lambda: [line(), torch.tensor([3.0, 1.0])],
        wanted=lambda _: line() * 3 + 1,
        result=0,
    ),
    Case(
        kernel="doubled_float",
        args=lambda: [line(), zeros(N), N],
        wanted=lambda a: a[0] * 2,
    ),
    Case(
        kernel="doubled_half",
        args=lambda: [line().half(), zeros(N).half(), N],
        wanted=lambda a: a[0] * 2,
    ),
    Case(
        kernel="layer_norm",
        result=2,
        args=lambda: [table(), line(COLUMNS), zeros(ROWS, COLUMNS), COLUMNS, 1e-5],
        wanted=_norm,
        grid=(ROWS,),
    ),
    Case(
        kernel="scan",
        args=lambda: [line(256), zeros(256)],
        wanted=lambda a: a[0].cumsum(-1),
        grid=(1,),
    ),
    Case(
        kernel="neighbours",
        args=lambda: [line(32), zeros(32)],
        wanted=lambda a: a[0].roll(-1),
        grid=(1,),
        block=(32,),
    ),
)  # fmt: skip
