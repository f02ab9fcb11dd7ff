"""The transposed matrix, written out row by row in memory."""

import torch
from torch import nn

FAMILY = "layout"
OUTPUT = "float"
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 2048, "cols": 3072},
    "tall": {"rows": 100003, "cols": 24},
}


class Model(nn.Module):
    def forward(self, x):
        return x.t().contiguous()


def get_inputs(rows=2048, cols=3072):
    return [torch.randn(rows, cols)]


def get_init_inputs(**_):
    return []


def flops(**_):
    return 0


def moved_bytes(rows=2048, cols=3072):
    return 8 * rows * cols
