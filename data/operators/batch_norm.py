"""Batch normalisation in training mode: statistics of the batch, weight, bias, eps 1e-5."""

import torch
from torch import nn

FAMILY = "norm"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 3, "channels": 13, "size": 19},
    "full": {"batch": 16, "channels": 64, "size": 56},
    "deep": {"batch": 32, "channels": 512, "size": 7},
}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        # Without running statistics: they would be state that no output shows.
        self.norm = nn.BatchNorm2d(channels, track_running_stats=False)

    def forward(self, x):
        return self.norm(x)


def get_inputs(batch=16, channels=64, size=56):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(channels=64, **_):
    return [channels]


def flops(batch=16, channels=64, size=56):
    return 8 * batch * channels * size * size


def moved_bytes(batch=16, channels=64, size=56):
    return 4 * (2 * batch * channels * size * size + 2 * channels)
