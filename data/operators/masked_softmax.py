"""Softmax of x * 0.125 over the keys up to `last` of each batch entry; zero after it."""

import torch
from torch import nn

FAMILY = "softmax"
OUTPUT = "float"
DOMAINS = ["real", "index:keys"]
SHAPES = {
    "small": {"batch": 5, "queries": 19, "keys": 251},
    "full": {"batch": 8, "queries": 512, "keys": 1024},
    "short": {"batch": 64, "queries": 512, "keys": 77},
}


class Model(nn.Module):
    def forward(self, x, last):
        allowed = torch.arange(x.shape[-1], device=x.device) <= last[:, None, None]
        return torch.softmax((x * 0.125).masked_fill(~allowed, float("-inf")), dim=-1)


def get_inputs(batch=8, queries=512, keys=1024):
    last = torch.randint(keys // 2, keys, (batch,))
    return [8 * torch.randn(batch, queries, keys), last]


def get_init_inputs(**_):
    return []


def flops(batch=8, queries=512, keys=1024):
    """Of the half of the keys that is never masked."""
    return 6 * batch * queries * keys // 2


def moved_bytes(batch=8, queries=512, keys=1024):
    """All outputs, and the half of the inputs that is never masked."""
    return 4 * batch * queries * (keys + keys // 2) + 8 * batch
