"""Running sum along the last axis of those elements whose mask is true."""

import torch
from torch import nn

FAMILY = "scan"
OUTPUT = "float"
DOMAINS = ["real", "fixed"]
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 2048, "cols": 2048},
    "short": {"rows": 32768, "cols": 65},
}


class Model(nn.Module):
    def forward(self, x, mask):
        return torch.cumsum(x * mask, dim=-1)


def get_inputs(rows=2048, cols=2048):
    return [torch.randn(rows, cols), torch.rand(rows, cols) < 0.5]


def get_init_inputs(**_):
    return []


def flops(rows=2048, cols=2048):
    return 2 * rows * cols


def moved_bytes(rows=2048, cols=2048):
    return 9 * rows * cols
