"""log(1 + exp(x)), x itself above 20."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "elementwise"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 2048, "cols": 2048},
    "narrow": {"rows": 65536, "cols": 31},
}


class Model(nn.Module):
    def forward(self, x):
        return functional.softplus(x)


def get_inputs(rows=2048, cols=2048):
    return [torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=2048, cols=2048):
    return 3 * rows * cols


def moved_bytes(rows=2048, cols=2048):
    return 8 * rows * cols
