"""softmax(q @ k.T / sqrt(dim)) @ v for each head, each query seeing keys up to its own position."""

import torch
from torch import nn
from torch.nn import functional

FAMILY = "attention"
OUTPUT = "float"
SHAPES = {
    "small": {"batch": 2, "heads": 3, "length": 129, "dim": 32},
    "full": {"batch": 2, "heads": 8, "length": 512, "dim": 64},
    "long": {"batch": 1, "heads": 2, "length": 1500, "dim": 64},
}


class Model(nn.Module):
    def forward(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs(batch=2, heads=8, length=512, dim=64):
    return [torch.randn(batch, heads, length, dim) for _ in range(3)]


def get_init_inputs(**_):
    return []


def flops(batch=2, heads=8, length=512, dim=64):
    """Two products over the pairs that the mask leaves, and four operations a score."""
    pairs = length * (length + 1) // 2
    return batch * heads * pairs * (4 * dim + 4)


def moved_bytes(batch=2, heads=8, length=512, dim=64):
    return 16 * batch * heads * length * dim
