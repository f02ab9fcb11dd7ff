"""Sum of target * (log(target) - log_prediction), over the number of rows: one number."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "loss"
OUTPUT = "float"
DOMAINS = ["log_probability", "probability"]
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 2048, "cols": 2048},
    "many": {"rows": 17, "cols": 128256},
}


class Model(nn.Module):
    def forward(self, log_prediction, target):
        return functional.kl_div(log_prediction, target, reduction="batchmean")


def get_inputs(rows=2048, cols=2048):
    # A random sharpness: at a fixed one the mean is nearly the same for all inputs.
    sharp = 0.5 + 3 * torch.rand(1)
    prediction = torch.log_softmax(sharp * torch.randn(rows, cols), dim=-1)
    return [prediction, torch.softmax(torch.randn(rows, cols), dim=-1)]


def get_init_inputs(**_):
    return []


def flops(rows=2048, cols=2048):
    return 4 * rows * cols


def moved_bytes(rows=2048, cols=2048):
    return 8 * rows * cols + 4
