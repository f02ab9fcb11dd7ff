"""Running sum along the last axis."""

import torch
from torch import nn

FAMILY = "scan"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 2048, "cols": 2048},
    "short": {"rows": 65536, "cols": 65},
}


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=-1)


def get_inputs(rows=2048, cols=2048):
    return [torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=2048, cols=2048):
    return rows * cols


def moved_bytes(rows=2048, cols=2048):
    return 8 * rows * cols
