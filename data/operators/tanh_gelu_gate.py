"""gelu_tanh(x[:, :cols]) * x[:, cols:], the GEGLU of a transformer's MLP, gelu by its tanh form."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "elementwise"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 53, "cols": 509},
    "full": {"rows": 2048, "cols": 2048},
    "wide": {"rows": 257, "cols": 8192},
}


class Model(nn.Module):
    def forward(self, x):
        gate, value = x.chunk(2, dim=-1)
        return functional.gelu(gate, approximate="tanh") * value


def get_inputs(rows=2048, cols=2048):
    return [torch.randn(rows, 2 * cols)]


def get_init_inputs(**_):
    return []


def flops(rows=2048, cols=2048):
    return 9 * rows * cols


def moved_bytes(rows=2048, cols=2048):
    return 12 * rows * cols
