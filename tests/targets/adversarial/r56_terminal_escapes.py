# kforge-case: 1
# kind: output/terminal-escapes
# verdict: isolate/crash
# problem: problems/softmax_rows.py
# authored-kernel: no
# what: clears the screen in its output and in its exception
# catch: control characters are stripped
import sys

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for stream in (sys.stdout, sys.stderr):
            stream.write("\x1b[2J\x1b]0;owned\x07")
            stream.flush()
        raise RuntimeError("\x1b[2J\x1b[31mall is well\r\x9b")
