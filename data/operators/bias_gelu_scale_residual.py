"""gelu(x + bias) * scale + residual, bias and scale for each column, gelu with erf."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "elementwise"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 37, "cols": 1031},
    "full": {"rows": 2048, "cols": 2048},
    "wide": {"rows": 129, "cols": 16384},
}


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.scale = nn.Parameter(1 + 0.3 * torch.randn(cols))

    def forward(self, x, residual):
        return functional.gelu(x + self.bias) * self.scale + residual


def get_inputs(rows=2048, cols=2048):
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs(cols=2048, **_):
    return [cols]


def flops(rows=2048, cols=2048):
    return 8 * rows * cols


def moved_bytes(rows=2048, cols=2048):
    return 4 * (3 * rows * cols + 2 * cols)
