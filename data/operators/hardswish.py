"""x * clamp(x + 3, 0, 6) / 6."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "elementwise"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 4096, "cols": 2048},
    "narrow": {"rows": 65536, "cols": 31},
}


class Model(nn.Module):
    def forward(self, x):
        return functional.hardswish(x)


def get_inputs(rows=4096, cols=2048):
    return [3 * torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=4096, cols=2048):
    return 5 * rows * cols


def moved_bytes(rows=4096, cols=2048):
    return 8 * rows * cols
