"""Convolution of each channel with its own 3x3 filter, padding 1, no bias."""

import torch
from torch import nn

FAMILY = "conv"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 2, "channels": 13, "size": 31},
    "full": {"batch": 16, "channels": 64, "size": 64},
    "large": {"batch": 1, "channels": 32, "size": 255},
}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(
            channels, channels, kernel_size=3, padding=1, groups=channels, bias=False
        )

    def forward(self, x):
        return self.conv(x)


def get_inputs(batch=16, channels=64, size=64):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(channels=64, **_):
    return [channels]


def flops(batch=16, channels=64, size=64):
    """Of the taps inside the image: three a row, two at its ends."""
    return 2 * batch * channels * (3 * size - 2) ** 2


def moved_bytes(batch=16, channels=64, size=64):
    return 4 * (2 * batch * channels * size**2 + 9 * channels)
