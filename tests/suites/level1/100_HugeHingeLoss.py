import torch
import torch.nn as nn


class Model(nn.Module):
    """Hinge loss over 8 GiB of predictions: too large for a small machine."""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


batch_size = 65536
input_shape = (32768,)


def get_inputs():
    targets = torch.randint(0, 2, (batch_size, 1)).float() * 2 - 1
    return [torch.rand(batch_size, *input_shape), targets]


def get_init_inputs():
    return []
