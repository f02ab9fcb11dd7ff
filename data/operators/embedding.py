"""Rows of a table (vocabulary, dim) picked by token number."""

import torch
from torch import nn

FAMILY = "gather"
OUTPUT = "float"
DOMAINS = ["index:vocabulary"]
SHAPES = {
    "small": {"tokens": 257, "vocabulary": 1009, "dim": 65},
    "full": {"tokens": 16384, "vocabulary": 16384, "dim": 512},
    "narrow": {"tokens": 200003, "vocabulary": 5003, "dim": 16},
}


class Model(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, tokens):
        return self.table(tokens)


def get_inputs(tokens=16384, vocabulary=16384, **_):
    return [torch.randint(0, vocabulary, (tokens,))]


def get_init_inputs(vocabulary=16384, dim=512, **_):
    return [vocabulary, dim]


def flops(**_):
    return 0


def moved_bytes(tokens=16384, vocabulary=16384, dim=512):
    """Output, numbers, and each picked row once: so many of random numbers differ on average."""
    rows = vocabulary * (1 - (1 - 1 / vocabulary) ** tokens)
    return 4 * dim * (tokens + rows) + 8 * tokens
