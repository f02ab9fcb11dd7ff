"""Largest element of each 3x3 window, stride 2, padding 1."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "pool"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 2, "channels": 13, "size": 31},
    "full": {"batch": 8, "channels": 64, "size": 112},
    "deep": {"batch": 32, "channels": 256, "size": 14},
}


class Model(nn.Module):
    def forward(self, x):
        return functional.max_pool2d(x, kernel_size=3, stride=2, padding=1)


def get_inputs(batch=8, channels=64, size=112):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(**_):
    return []


def flops(batch=8, channels=64, size=112):
    """Eight comparisons a window, the padded taps at the rim counted too."""
    return 8 * batch * channels * ((size + 1) // 2) ** 2


def moved_bytes(batch=8, channels=64, size=112):
    return 4 * batch * channels * (size**2 + ((size + 1) // 2) ** 2)
