"""Index of the largest element of each row; any of equal ones."""

import torch
from torch import nn

FAMILY = "reduction"
OUTPUT = "index"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 8192, "cols": 2048},
    "long": {"rows": 7, "cols": 500009},
}


class Model(nn.Module):
    def forward(self, x):
        return torch.argmax(x, dim=-1)


def get_inputs(rows=8192, cols=2048):
    return [torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=8192, cols=2048):
    return rows * cols


def moved_bytes(rows=8192, cols=2048):
    return 4 * rows * cols + 8 * rows
