"""A small transformer with what can and what cannot be an operator file."""

import torch
from torch import nn


class Layer(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, w))
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm2(x)))))


class Model(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(2))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.embed.weight.T
        probs = torch.softmax(logits, dim=-1)
        return (
            torch.argsort(probs[:, -1], dim=-1)[:, :5],
            torch.multinomial(probs[:, -1], 1),
            probs.log(),
        )


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 1000, (2, 64))]


def get_init_inputs() -> list[int]:
    return [128, 4]
