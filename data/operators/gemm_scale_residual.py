"""(a @ b) * scale + residual, one scale for each column of the product."""

import torch
from torch import nn

FAMILY = "matmul"
OUTPUT = "float"
SHAPES = {
    "small": {"m": 67, "k": 129, "n": 95},
    "full": {"m": 1024, "k": 256, "n": 1024},
    "flat": {"m": 4099, "k": 32, "n": 513},
}


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(1 + 0.3 * torch.randn(n))

    def forward(self, a, b, residual):
        return (a @ b) * self.scale + residual


def get_inputs(m=1024, k=256, n=1024):
    # A residual of the product's own size: a smaller one could be dropped unseen.
    return [torch.randn(m, k), torch.randn(k, n), k**0.5 * torch.randn(m, n)]


def get_init_inputs(n=1024, **_):
    return [n]


def flops(m=1024, k=256, n=1024):
    return 2 * m * k * n + 2 * m * n


def moved_bytes(m=1024, k=256, n=1024):
    return 4 * (m * k + k * n + n + 2 * m * n)
