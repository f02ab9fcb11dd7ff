"""Product of a tall matrix a (m, k) and a small one b (k, n)."""

import torch
from torch import nn

FAMILY = "matmul"
OUTPUT = "float"
SHAPES = {
    "small": {"m": 1009, "k": 33, "n": 15},
    "full": {"m": 65536, "k": 64, "n": 32},
    "thin": {"m": 200003, "k": 16, "n": 8},
}


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs(m=65536, k=64, n=32):
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs(**_):
    return []


def flops(m=65536, k=64, n=32):
    return 2 * m * k * n


def moved_bytes(m=65536, k=64, n=32):
    return 4 * (m * k + k * n + m * n)
