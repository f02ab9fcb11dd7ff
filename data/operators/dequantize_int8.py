"""(q - zero_point) * scale for int8 q, one zero point and one scale for each row."""

import torch
from torch import nn

FAMILY = "quantize"
OUTPUT = "float"
DOMAINS = ["fixed", "positive", "fixed"]
SHAPES = {
    "small": {"rows": 61, "cols": 1003},
    "full": {"rows": 4096, "cols": 2048},
    "short": {"rows": 65536, "cols": 48},
}


class Model(nn.Module):
    def forward(self, q, scale, zero_point):
        return (q.to(scale.dtype) - zero_point) * scale


def get_inputs(rows=4096, cols=2048):
    q = torch.randint(-128, 128, (rows, cols), dtype=torch.int8)
    zero_point = torch.randint(-16, 17, (rows, 1), dtype=torch.int32)
    return [q, 0.01 + torch.rand(rows, 1), zero_point]


def get_init_inputs(**_):
    return []


def flops(rows=4096, cols=2048):
    return 2 * rows * cols


def moved_bytes(rows=4096, cols=2048):
    return 5 * rows * cols + 8 * rows
