# kforge-case: 1
# kind: resource/survivor
# verdict: reject/no-authored-kernel
# problem: problems/softmax_rows.py
# authored-kernel: no
# accept-if: library == allowed
# what: leaves a daemon in a session of its own and answers with the library
# catch: process namespace, or a scan after the child
import os
import time

import torch
import torch.nn as nn

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)
