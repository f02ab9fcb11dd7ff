"""Softmax over the last axis."""

import torch
from torch import nn

FAMILY = "softmax"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 4096, "cols": 2048},
    "short": {"rows": 32768, "cols": 127},
}


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs(rows=4096, cols=2048):
    return [torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=4096, cols=2048):
    return 5 * rows * cols


def moved_bytes(rows=4096, cols=2048):
    return 8 * rows * cols
