import torch
import torch.nn as nn


class Model(nn.Module):
    """Activation of each element."""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


batch_size = 1024
dim = 2048


def get_inputs():
    x = torch.rand(batch_size, dim) - 0.5
    return [x]


def get_init_inputs():
    return []
