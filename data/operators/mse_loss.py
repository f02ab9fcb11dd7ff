"""Mean of (prediction - target) ** 2 over all elements: one number."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "loss"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 4096, "cols": 2048},
    "flat": {"rows": 3, "cols": 400009},
}


class Model(nn.Module):
    def forward(self, prediction, target):
        return functional.mse_loss(prediction, target)


def get_inputs(rows=4096, cols=2048):
    # A random scale: at a fixed one the mean of millions is nearly the same for all inputs.
    scale = 0.5 + 2 * torch.rand(1)
    return [scale * torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(rows=4096, cols=2048):
    return 3 * rows * cols


def moved_bytes(rows=4096, cols=2048):
    return 8 * rows * cols + 4
