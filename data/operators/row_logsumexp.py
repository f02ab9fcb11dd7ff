"""log(sum(exp(x))) of each row."""

import torch
from torch import nn

FAMILY = "reduction"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 2048, "cols": 2048},
    "long": {"rows": 7, "cols": 500009},
}


class Model(nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, dim=-1)


def get_inputs(rows=2048, cols=2048):
    return [4 * torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=2048, cols=2048):
    return 3 * rows * cols


def moved_bytes(rows=2048, cols=2048):
    return 4 * (rows * cols + rows)
