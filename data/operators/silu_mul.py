"""silu(gate) * up, the gated unit of a transformer's MLP: silu(g) = g / (1 + exp(-g))."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "elementwise"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 53, "cols": 1019},
    "full": {"rows": 2048, "cols": 2048},
    "wide": {"rows": 257, "cols": 11008},
}


class Model(nn.Module):
    def forward(self, gate, up):
        return functional.silu(gate) * up


def get_inputs(rows=2048, cols=2048):
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=2048, cols=2048):
    return 5 * rows * cols


def moved_bytes(rows=2048, cols=2048):
    return 12 * rows * cols
