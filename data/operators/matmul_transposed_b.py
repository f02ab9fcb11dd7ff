"""a @ b.T for a (m, k) and b (n, k), both read along their rows."""

import torch
from torch import nn

FAMILY = "matmul"
OUTPUT = "float"
SHAPES = {
    "small": {"m": 67, "k": 129, "n": 95},
    "full": {"m": 512, "k": 512, "n": 512},
    "deep": {"m": 63, "k": 8191, "n": 65},
}


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b.t()


def get_inputs(m=512, k=512, n=512):
    return [torch.randn(m, k), torch.randn(n, k)]


def get_init_inputs(**_):
    return []


def flops(m=512, k=512, n=512):
    return 2 * m * k * n


def moved_bytes(m=512, k=512, n=512):
    return 4 * (m * k + k * n + m * n)
