"""Largest element of each column."""

import torch
from torch import nn

FAMILY = "reduction"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 8192, "cols": 2048},
    "tall": {"rows": 131072, "cols": 33},
}


class Model(nn.Module):
    def forward(self, x):
        return x.amax(dim=0)


def get_inputs(rows=8192, cols=2048):
    return [torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=8192, cols=2048):
    return rows * cols


def moved_bytes(rows=8192, cols=2048):
    return 4 * (rows * cols + cols)
