"""The same kernels twice: in launcher form and as an inline extension of torch; half are faulty."""

from dataclasses import dataclass

ROWS, COLUMNS = 1024, 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One kernel in both forms, with the operator that it is for."""

    name: str
    operator: str
    launcher: str
    inline: str
    draws_wanted: bool
    """Whether it is right and therefore timed."""


FORWARDS = {
    "relu": "torch.relu(x)",
    "scale": "x * 1.5 + 0.25",
    "square": "x * x + x",
    "rows": "x.sum(1)",
}
CPU = {
    "relu": "for (long j = 0; j < c; ++j) y[i * c + j] = x[i * c + j] > 0 ? x[i * c + j] : 0;",
    "scale": "for (long j = 0; j < c; ++j) y[i * c + j] = x[i * c + j] * 1.5f + 0.25f;",
    "square": "for (long j = 0; j < c; ++j) y[i * c + j] = x[i * c + j] * x[i * c + j] + x[i * c + j];",  # noqa: E501
    "rows": "double s = 0; for (long j = 0; j < c; ++j) s += x[i * c + j]; y[i] = s;",
}
CUDA = {
    "relu": "for (long j = threadIdx.x; j < c; j += blockDim.x) y[i * c + j] = x[i * c + j] > 0 ? x[i * c + j] : 0;",  # noqa: E501
    "scale": "for (long j = threadIdx.x; j < c; j += blockDim.x) y[i * c + j] = x[i * c + j] * 1.5f + 0.25f;",  # noqa: E501
    "square": "for (long j = threadIdx.x; j < c; j += blockDim.x) y[i * c + j] = x[i * c + j] * x[i * c + j] + x[i * c + j];",  # noqa: E501
    "rows": "if (threadIdx.x == 0) { double s = 0; for (long j = 0; j < c; ++j) s += x[i * c + j]; y[i] = s; }",  # noqa: E501
}
FAULTS = {
    "tail": ("relu", "j < c", "j < c - 1"),
    "factor": ("scale", "1.5f", "1.4f"),
    "crash": ("square", "for (long j", "*(volatile float*)0 = 1; for (long j"),
    "syntax": ("rows", "s += x", "s + = x"),
}
OPERATOR = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {forward}


def get_inputs():
    return [torch.randn({rows}, {columns})]


def get_init_inputs():
    return []
"""
LAUNCHER = """import torch
from torch import nn
from kforge_launch import kernels

K = kernels(r'''
{source}
'''{language})


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty({shape}, device=x.device)
        K.k({grid}args=(x, y, x.shape[0], x.shape[1]))
        return y
"""
INLINE = """import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
{include}
{source}
torch::Tensor run(torch::Tensor x) {{
  auto y = torch::empty({shape}, x.options());
  {call}
  return y;
}}
'''
M = load_inline(name="m_{name}", {given}, functions=["run"]{flags})


class ModelNew(nn.Module):
    def forward(self, x):
        return M.run(x)
"""


def pairs(device: str) -> list[Pair]:
    """Four right kernels and four faulty ones for `cpu` or `cuda`."""
    bodies = CUDA if device == "cuda" else CPU
    made = [_pair(device, kind, kind, body, right=True) for kind, body in bodies.items()]
    for name, (kind, old, new) in FAULTS.items():
        made.append(_pair(device, name, kind, bodies[kind].replace(old, new), right=False))
    return made


def _pair(device: str, name: str, kind: str, body: str, *, right: bool) -> Pair:
    one = kind == "rows"
    on_device = device == "cuda"
    source = _source(body, on_device=on_device)
    launcher = LAUNCHER.format(
        source=source,
        language=', language="cuda"' if on_device else "",
        shape="x.shape[0]" if one else "x.shape",
        grid="grid=(x.shape[0],), block=(256,), " if on_device else "",
    )
    pointers = "x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1)"
    inline = INLINE.format(
        name=name,
        include="#include <torch/extension.h>",
        source=source,
        shape="{x.size(0)}" if one else "x.sizes()",
        call=f"k<<<x.size(0), 256>>>({pointers});" if on_device else f"k({pointers});",
        given='cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=SOURCE'
        if on_device
        else "cpp_sources=SOURCE",
        flags="" if on_device else ', extra_cflags=["-O3", "-march=native", "-fopenmp"]',
    )
    operator = OPERATOR.format(forward=FORWARDS[kind], rows=ROWS, columns=COLUMNS)
    return Pair(name=name, operator=operator, launcher=launcher, inline=inline, draws_wanted=right)


def _source(body: str, *, on_device: bool) -> str:
    head = "const float* x, float* y, long r, long c"
    if on_device:
        return (
            f'extern "C" __global__ void k({head}) {{\n'
            f"  long i = blockIdx.x;\n  if (i < r) {{ {body} }}\n}}"
        )
    return (
        f'extern "C" void k({head}) {{\n  #pragma omp parallel for\n'
        f"  for (long i = 0; i < r; ++i) {{ {body} }}\n}}"
    )
