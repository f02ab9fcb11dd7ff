"""Mean of each 2x2 window, stride 2; an odd last row or column is left out."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "pool"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 2, "channels": 13, "size": 31},
    "full": {"batch": 16, "channels": 64, "size": 112},
    "deep": {"batch": 32, "channels": 256, "size": 14},
}


class Model(nn.Module):
    def forward(self, x):
        return functional.avg_pool2d(x, kernel_size=2)


def get_inputs(batch=16, channels=64, size=112):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(**_):
    return []


def flops(batch=16, channels=64, size=112):
    return 4 * batch * channels * (size // 2) ** 2


def moved_bytes(batch=16, channels=64, size=112):
    """What is read of an odd size is the even part."""
    return 4 * batch * channels * 5 * (size // 2) ** 2
