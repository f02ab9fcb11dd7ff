"""Mean over the rows of logsumexp(logits) - logits[target]: one number."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "loss"
OUTPUT = "float"
DOMAINS = ["real", "index:classes"]
SHAPES = {
    "small": {"rows": 61, "classes": 1003},
    "full": {"rows": 4096, "classes": 2048},
    "many": {"rows": 65, "classes": 128256},
}


class Model(nn.Module):
    def forward(self, logits, target):
        return functional.cross_entropy(logits, target)


def get_inputs(rows=4096, classes=2048):
    # A random scale: at a fixed one the mean of thousands is nearly the same for all inputs.
    scale = 0.5 + 4 * torch.rand(1)
    return [scale * torch.randn(rows, classes), torch.randint(0, classes, (rows,))]


def get_init_inputs(**_):
    return []


def flops(rows=4096, classes=2048):
    return 4 * rows * classes


def moved_bytes(rows=4096, classes=2048):
    return 4 * rows * classes + 8 * rows + 4
