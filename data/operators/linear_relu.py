"""relu(x @ weight.T + bias); weight has shape (n, k)."""

import torch
from torch import nn

FAMILY = "matmul"
OUTPUT = "float"
SHAPES = {
    "small": {"m": 67, "k": 129, "n": 95},
    "full": {"m": 1024, "k": 256, "n": 1024},
    "few": {"m": 5, "k": 1024, "n": 2048},
}


class Model(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs(m=1024, k=256, **_):
    return [torch.randn(m, k)]


def get_init_inputs(k=256, n=1024, **_):
    return [k, n]


def flops(m=1024, k=256, n=1024):
    return 2 * m * k * n + 2 * m * n


def moved_bytes(m=1024, k=256, n=1024):
    return 4 * (m * k + k * n + n + m * n)
