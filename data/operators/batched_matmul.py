"""Product of two batches of matrices, a (batch, m, k) and b (batch, k, n)."""

import torch
from torch import nn

FAMILY = "matmul"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 5, "m": 33, "k": 65, "n": 31},
    "full": {"batch": 64, "m": 128, "k": 128, "n": 128},
    "tiny": {"batch": 8191, "m": 8, "k": 8, "n": 8},
}


class Model(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


def get_inputs(batch=64, m=128, k=128, n=128):
    return [torch.randn(batch, m, k), torch.randn(batch, k, n)]


def get_init_inputs(**_):
    return []


def flops(batch=64, m=128, k=128, n=128):
    return 2 * batch * m * k * n


def moved_bytes(batch=64, m=128, k=128, n=128):
    return 4 * batch * (m * k + k * n + m * n)
