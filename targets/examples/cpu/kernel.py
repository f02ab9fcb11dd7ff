import torch
from kforge_launch import kernels
from torch import nn

K = kernels(r"""
#include <cmath>

// One thread takes whole rows: the row is read from memory once and from the cache again.
extern "C" void squared_relu_unit(const float* x, const float* weight, float* y,
                                  long rows, long columns, float eps) {
  #pragma omp parallel for schedule(static)
  for (long r = 0; r < rows; ++r) {
    const float* in = x + r * columns;
    float* out = y + r * columns;
    float sum = 0.0f;
    #pragma omp simd reduction(+ : sum)
    for (long c = 0; c < columns; ++c) {
      const float positive = in[c] > 0.0f ? in[c] : 0.0f;
      const float squared = positive * positive;
      out[c] = squared;
      sum += squared * squared;
    }
    const float scale = 1.0f / (std::sqrt(sum) + eps);
    #pragma omp simd
    for (long c = 0; c < columns; ++c) out[c] *= scale * weight[c];
  }
}
""")


class ModelNew(nn.Module):
    def __init__(self, features: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        columns = x.shape[-1]
        K.squared_relu_unit(
            args=(x, self.weight, y, x.numel() // columns, columns, self.eps),
        )
        return y
