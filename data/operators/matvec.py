"""Product of a matrix (rows, cols) and a vector (cols,)."""

import torch
from torch import nn

FAMILY = "matmul"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 509, "cols": 1003},
    "full": {"rows": 4096, "cols": 4096},
    "wide": {"rows": 11, "cols": 500009},
}


class Model(nn.Module):
    def forward(self, a, x):
        return a @ x


def get_inputs(rows=4096, cols=4096):
    return [torch.randn(rows, cols), torch.randn(cols)]


def get_init_inputs(**_):
    return []


def flops(rows=4096, cols=4096):
    return 2 * rows * cols


def moved_bytes(rows=4096, cols=4096):
    return 4 * (rows * cols + cols + rows)
