import torch
import torch.nn as nn


class Model(nn.Module):
    """Transposed convolution in three dimensions: no template covers it."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1):
        super(Model, self).__init__()
        self.conv = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


batch_size, in_channels, out_channels, kernel_size, stride = 2, 4, 8, 3, 2
depth = height = width = 12


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride]
