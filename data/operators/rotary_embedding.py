"""Rotates the halves (a, b) of each head's vector: (a * cos - b * sin, b * cos + a * sin)."""

import torch
from torch import nn

FAMILY = "rope"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 2, "heads": 3, "length": 61, "dim": 34},
    "full": {"batch": 2, "heads": 16, "length": 1024, "dim": 128},
    "long": {"batch": 1, "heads": 8, "length": 8191, "dim": 64},
}


class Model(nn.Module):
    def forward(self, x, angles):
        cos, sin = angles.cos(), angles.sin()
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def get_inputs(batch=2, heads=16, length=1024, dim=128):
    rate = 10000 ** (-2 * torch.arange(dim // 2) / dim)
    angles = (torch.rand(1) * 8 + torch.arange(length))[:, None] * rate
    return [torch.randn(batch, heads, length, dim), angles]


def get_init_inputs(**_):
    return []


def flops(batch=2, heads=16, length=1024, dim=128):
    return 3 * batch * heads * length * dim + length * dim


def moved_bytes(batch=2, heads=16, length=1024, dim=128):
    return 8 * batch * heads * length * dim + 2 * length * dim
