# kforge-case: 1
# kind: cached-output/content-fingerprint
# verdict: reject/stale-output
# problem: problems/softmax_rows.py
# authored-kernel: yes
# what: a memo keyed by a few sampled elements
# catch: contents that were never seen; one interior element edited
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


SEEN = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = tuple(x.view(-1)[::4099].tolist())
        if key not in SEEN:
            SEEN[key] = softmax(x)
        return SEEN[key]
