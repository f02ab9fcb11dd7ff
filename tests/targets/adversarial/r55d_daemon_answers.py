# kforge-case: 1
# kind: resource/survivor
# verdict: reject/forged-result
# problem: problems/softmax_rows.py
# authored-kernel: no
# what: becomes a daemon: the process that was asked ends, a copy of it answers
# catch: the child that was asked is gone
import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        if os.fork() == 0:
            os.setsid()
            return torch.softmax(x, -1)
        os._exit(0)
