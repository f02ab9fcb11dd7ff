# kforge-case: 1
# kind: policy/generated-code
# verdict: reject/no-authored-kernel
# problem: problems/softmax_rows.py
# authored-kernel: no
# accept-if: library == allowed
# what: sells torch.compile as a kernel
# catch: operators are seen below the compiler
import torch
import torch.nn as nn


@torch.compile
def softmax(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x)
