"""out[t] = sum over k of weight[t, k] * expert_rows[index[t, k]]: expert outputs back to tokens."""

import torch
from torch import nn

FAMILY = "moe"
OUTPUT = "float"
DOMAINS = ["real", "index:rows", "real"]
SHAPES = {
    "small": {"tokens": 37, "top_k": 3, "hidden": 129, "rows": 111},
    "full": {"tokens": 2048, "top_k": 4, "hidden": 1024, "rows": 8192},
    "wide": {"tokens": 129, "top_k": 8, "hidden": 4096, "rows": 1032},
}


class Model(nn.Module):
    def forward(self, expert_rows, index, weight):
        return (expert_rows[index] * weight.unsqueeze(-1)).sum(dim=1)


def get_inputs(tokens=2048, top_k=4, hidden=1024, rows=8192):
    index = torch.randperm(rows)[: tokens * top_k].view(tokens, top_k)
    weight = torch.softmax(torch.randn(tokens, top_k), dim=-1)
    return [torch.randn(rows, hidden), index, weight]


def get_init_inputs(**_):
    return []


def flops(tokens=2048, top_k=4, hidden=1024, **_):
    return 2 * tokens * top_k * hidden


def moved_bytes(tokens=2048, top_k=4, hidden=1024, **_):
    """The rows that are picked, each once, the output, numbers and weights."""
    return 4 * tokens * hidden * (top_k + 1) + 12 * tokens * top_k
