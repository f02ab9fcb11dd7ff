"""Group normalisation of (batch, channels, height, width) with weight and bias, eps 1e-5."""

import torch
from torch import nn

FAMILY = "norm"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 3, "channels": 24, "size": 17, "groups": 8},
    "full": {"batch": 16, "channels": 128, "size": 56, "groups": 8},
    "deep": {"batch": 32, "channels": 512, "size": 7, "groups": 32},
}


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs(batch=16, channels=128, size=56, **_):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(groups=8, channels=128, **_):
    return [groups, channels]


def flops(batch=16, channels=128, size=56, **_):
    return 8 * batch * channels * size * size


def moved_bytes(batch=16, channels=128, size=56, **_):
    return 4 * (2 * batch * channels * size * size + 2 * channels)
