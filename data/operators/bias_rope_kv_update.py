"""qkv + bias, rotary embedding on q and k, and k and v put into their caches at `slots`.

Returns (q, key cache, value cache); the caches given are read, never changed in place.
"""

import torch
from torch import nn

FAMILY = "rope"
OUTPUT = ["float", "float", "float"]
DOMAINS = ["real", "real", "real", "real", "fixed"]  # two tokens never share a slot
SHAPES = {
    "small": {"tokens": 19, "heads": 6, "kv_heads": 2, "dim": 34, "slots": 53},
    "full": {"tokens": 512, "heads": 16, "kv_heads": 4, "dim": 128, "slots": 2048},
    "few": {"tokens": 3, "heads": 32, "kv_heads": 8, "dim": 64, "slots": 2048},
}


class Model(nn.Module):
    def __init__(self, heads, kv_heads, dim):
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, dim
        self.bias = nn.Parameter(torch.randn((heads + 2 * kv_heads) * dim))

    def forward(self, qkv, angles, key_cache, value_cache, slots):
        parts = (qkv + self.bias).view(qkv.shape[0], -1, self.dim)
        q, k, v = parts.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        cos, sin = angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)
        keys = key_cache.index_copy(0, slots, self.rotate(k, cos, sin))
        return self.rotate(q, cos, sin), keys, value_cache.index_copy(0, slots, v)

    @staticmethod
    def rotate(x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def get_inputs(tokens=512, heads=16, kv_heads=4, dim=128, slots=2048):
    rate = 10000 ** (-2 * torch.arange(dim // 2) / dim)
    angles = torch.randint(0, slots, (tokens, 1)) * rate
    caches = [torch.randn(slots, kv_heads, dim) for _ in range(2)]
    qkv = torch.randn(tokens, (heads + 2 * kv_heads) * dim)
    return [qkv, angles, *caches, torch.randperm(slots)[:tokens]]


def get_init_inputs(heads=16, kv_heads=4, dim=128, **_):
    return [heads, kv_heads, dim]


def flops(tokens=512, heads=16, kv_heads=4, dim=128, **_):
    return tokens * dim * (4 * (heads + kv_heads) + kv_heads + 1)


def moved_bytes(tokens=512, heads=16, kv_heads=4, dim=128, slots=2048):
    """The caches are read but for the replaced rows and written as a whole."""
    fresh = tokens * (heads + 2 * kv_heads) * dim
    caches = 2 * (2 * slots - tokens) * kv_heads * dim
    bias = (heads + 2 * kv_heads) * dim
    return 4 * (fresh + tokens * dim // 2 + bias + tokens * heads * dim + caches) + 8 * tokens
