"""Mean of max(0, 1 - prediction * target) over all elements, targets -1 and 1: one number."""

import torch
from torch import nn

FAMILY = "loss"
OUTPUT = "float"
DOMAINS = ["real", "fixed"]
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 4096, "cols": 2048},
    "flat": {"rows": 3, "cols": 400009},
}


class Model(nn.Module):
    def forward(self, prediction, target):
        return torch.clamp(1 - prediction * target, min=0).mean()


def get_inputs(rows=4096, cols=2048):
    # A random scale: at a fixed one the mean of millions is nearly the same for all inputs.
    scale = 0.5 + 2 * torch.rand(1)
    return [scale * torch.randn(rows, cols), torch.randint(0, 2, (rows, cols)).float() * 2 - 1]


def get_init_inputs(**_):
    return []


def flops(rows=4096, cols=2048):
    return 4 * rows * cols


def moved_bytes(rows=4096, cols=2048):
    return 8 * rows * cols + 4
