"""Convolution of (batch, in_channels, size, size) with 3x3 filters and a bias, no padding."""

import torch
from torch import nn

FAMILY = "conv"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 2, "in_channels": 7, "out_channels": 11, "size": 19},
    "full": {"batch": 8, "in_channels": 32, "out_channels": 64, "size": 58},
    "deep": {"batch": 4, "in_channels": 128, "out_channels": 128, "size": 16},
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=3)

    def forward(self, x):
        return self.conv(x)


def get_inputs(batch=8, in_channels=32, size=58, **_):
    return [torch.randn(batch, in_channels, size, size)]


def get_init_inputs(in_channels=32, out_channels=64, **_):
    return [in_channels, out_channels]


def flops(batch=8, in_channels=32, out_channels=64, size=58):
    return 2 * 9 * batch * in_channels * out_channels * (size - 2) ** 2


def moved_bytes(batch=8, in_channels=32, out_channels=64, size=58):
    images = batch * (in_channels * size**2 + out_channels * (size - 2) ** 2)
    return 4 * (images + 9 * in_channels * out_channels + out_channels)
