"""clamp(x * scale + bias, -1, 1), scale and bias for each column."""

import torch
from torch import nn

FAMILY = "elementwise"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 4096, "cols": 2048},
    "narrow": {"rows": 65536, "cols": 31},
}


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(1 + 0.3 * torch.randn(cols))
        self.bias = nn.Parameter(0.3 * torch.randn(cols))

    def forward(self, x):
        return torch.clamp(x * self.scale + self.bias, -1.0, 1.0)


def get_inputs(rows=4096, cols=2048):
    return [torch.randn(rows, cols)]


def get_init_inputs(cols=2048, **_):
    return [cols]


def flops(rows=4096, cols=2048):
    return 4 * rows * cols


def moved_bytes(rows=4096, cols=2048):
    return 4 * (2 * rows * cols + 2 * cols)
