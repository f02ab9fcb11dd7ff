import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def squared_relu_unit(x, weight, y, columns, eps, BLOCK: tl.constexpr):
    # One program takes one row: a first pass sums, a second one scales what the cache still holds.
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + lanes
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        positive = tl.maximum(value, 0.0)
        squared = positive * positive
        total += squared * squared
    scale = 1.0 / (tl.sqrt_rn(tl.sum(total, axis=0)) + eps)
    for start in range(0, columns, BLOCK):
        at = start + lanes
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        positive = tl.maximum(value, 0.0)
        factor = tl.load(weight + at, mask=at < columns, other=0.0)
        tl.store(y + row * columns + at, positive * positive * scale * factor, mask=at < columns)


class ModelNew(nn.Module):
    def __init__(self, features: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        columns = x.shape[-1]
        block = min(triton.next_power_of_2(columns), 4096)
        grid = (x.numel() // columns,)
        squared_relu_unit[grid](x, self.weight, y, columns, self.eps, BLOCK=block, num_warps=8)
        return y
