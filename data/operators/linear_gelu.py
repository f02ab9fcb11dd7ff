"""gelu(x @ weight.T + bias), gelu with erf; weight has shape (n, k)."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "matmul"
OUTPUT = "float"
SHAPES = {
    "small": {"m": 67, "k": 129, "n": 95},
    "full": {"m": 512, "k": 512, "n": 1024},
    "few": {"m": 5, "k": 1024, "n": 2048},
}


class Model(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return functional.gelu(self.linear(x))


def get_inputs(m=512, k=512, **_):
    return [torch.randn(m, k)]


def get_init_inputs(k=512, n=1024, **_):
    return [k, n]


def flops(m=512, k=512, n=1024):
    return 2 * m * k * n + 6 * m * n


def moved_bytes(m=512, k=512, n=1024):
    return 4 * (m * k + k * n + n + m * n)
