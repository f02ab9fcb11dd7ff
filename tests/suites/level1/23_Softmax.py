import torch
import torch.nn as nn


class Model(nn.Module):
    """Softmax of each row."""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


batch_size = 512
dim = 3001


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
