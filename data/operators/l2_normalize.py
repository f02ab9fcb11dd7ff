"""x / max(||x||, 1e-12), the Euclidean norm over the last axis."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "norm"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 4096, "cols": 2048},
    "short": {"rows": 65536, "cols": 48},
}


class Model(nn.Module):
    def forward(self, x):
        return functional.normalize(x, dim=-1)


def get_inputs(rows=4096, cols=2048):
    return [torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=4096, cols=2048):
    return 3 * rows * cols


def moved_bytes(rows=4096, cols=2048):
    return 8 * rows * cols
