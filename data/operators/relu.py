"""Elementwise maximum of x and zero."""

import torch
from torch import nn

FAMILY = "elementwise"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 4096, "cols": 2048},
    "narrow": {"rows": 131072, "cols": 33},
}


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs(rows=4096, cols=2048):
    return [torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=4096, cols=2048):
    return rows * cols


def moved_bytes(rows=4096, cols=2048):
    return 8 * rows * cols
