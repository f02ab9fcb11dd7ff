# kforge-case: 1
# kind: honest/thread-pool-joined
# verdict: accept
# problem: problems/softmax_rows.py
# authored-kernel: yes
# what: half of the rows each by two threads of a pool, joined before it returns
# catch: must be accepted
import os

import torch
import torch.nn as nn
from kforge_launch import kernels

K = kernels(r"""
#include <cmath>
extern "C" void softmax_rows(const float* x, float* o, long rows, long cols) {
  for (long i = 0; i < rows; ++i) {
    const float* a = x + i * cols;
    float* r = o + i * cols;
    float top = a[0], total = 0;
    for (long j = 1; j < cols; ++j) top = a[j] > top ? a[j] : top;
    for (long j = 0; j < cols; ++j) { r[j] = std::exp(a[j] - top); total += r[j]; }
    for (long j = 0; j < cols; ++j) r[j] /= total;
  }
}
""")


def softmax(x, rows=None):
    x = x.contiguous()
    out = torch.empty_like(x)
    K.softmax_rows(args=(x, out, x.shape[0] if rows is None else rows, x.shape[1]))
    return out


from concurrent.futures import ThreadPoolExecutor

POOL = ThreadPoolExecutor(2)


def part(pair):
    x, out = pair
    if x.numel():
        K.softmax_rows(args=(x, out, x.shape[0], x.shape[1]))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        half = x.shape[0] // 2
        parts = [(x[:half], out[:half]), (x[half:], out[half:])]
        list(POOL.map(part, parts))
        return out
