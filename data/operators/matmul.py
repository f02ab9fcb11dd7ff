"""Product of two matrices, a (m, k) and b (k, n)."""

import torch
from torch import nn

FAMILY = "matmul"
OUTPUT = "float"
SHAPES = {
    "small": {"m": 67, "k": 129, "n": 95},
    "full": {"m": 512, "k": 512, "n": 512},
    "deep": {"m": 127, "k": 4096, "n": 130},
}


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs(m=512, k=512, n=512):
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs(**_):
    return []


def flops(m=512, k=512, n=512):
    return 2 * m * k * n


def moved_bytes(m=512, k=512, n=512):
    return 4 * (m * k + k * n + m * n)
