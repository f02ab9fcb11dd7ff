"""Instance normalisation: each channel of each sample by itself, weight, bias, eps 1e-5."""

import torch
from torch import nn

FAMILY = "norm"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 3, "channels": 13, "size": 19},
    "full": {"batch": 16, "channels": 128, "size": 56},
    "large": {"batch": 2, "channels": 16, "size": 256},
}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x):
        return self.norm(x)


def get_inputs(batch=16, channels=128, size=56):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(channels=128, **_):
    return [channels]


def flops(batch=16, channels=128, size=56):
    return 8 * batch * channels * size * size


def moved_bytes(batch=16, channels=128, size=56):
    return 4 * (2 * batch * channels * size * size + 2 * channels)
