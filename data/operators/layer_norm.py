"""Layer normalisation over the last axis with weight and bias, biased variance, eps 1e-5."""

import torch
from torch import nn

FAMILY = "norm"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 67, "cols": 769},
    "full": {"rows": 2048, "cols": 2048},
    "short": {"rows": 32768, "cols": 96},
}


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x):
        return self.norm(x)


def get_inputs(rows=2048, cols=2048):
    return [torch.randn(rows, cols)]


def get_init_inputs(cols=2048, **_):
    return [cols]


def flops(rows=2048, cols=2048):
    return 8 * rows * cols


def moved_bytes(rows=2048, cols=2048):
    return 4 * (2 * rows * cols + 2 * cols)
