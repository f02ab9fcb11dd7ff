"""One warm process for all tests of the judge, and jobs for it."""

from pathlib import Path

from data.records import Contract, Device, MeasureJob, Operator, RunResult
from targets.remote.allowance import Allowance
from targets.remote.ladder import Rung
from targets.remote.measure import measure
from targets.remote.sandbox import Limits
from targets.remote.side import Side
from targets.remote.zygote import Zygote

CPU = Device(name="cpu", target="cpu", vendor="any", arch="x86_64")
SECONDS = 60.0
ADD = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, y):
        return x + 2.0 * y

def get_inputs():
    return [torch.randn(64, 96), torch.randn(64, 96)]

def get_init_inputs():
    return []
"""
LINEAR = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 8)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(32, 48)]

def get_init_inputs():
    return [48]
"""
KERNEL = '''
import torch
from torch import nn
from kforge_launch import kernels

K = kernels(r"""extern "C" void add(const float* x, const float* y, float* o, long n) {
  for (long i = 0; i < n; ++i) o[i] = x[i] + 2.0f * y[i];
}""")
'''
HONEST = (
    KERNEL
    + """
class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        K.add(args=(x, y, o, x.numel()))
        return o
"""
)


class Rig:
    """A judge's warm process with its cache."""

    def __init__(self, folder: Path, *, rungs: tuple[Rung, ...] = ()) -> None:
        self.folder = folder
        self.zygote = Zygote(folder, rungs=rungs)

    def side(self, *, memory_mib: int = 1024, tmpfs_mib: int = 64, call_s: float = 30.0) -> Side:
        limits = Limits(memory_bytes=memory_mib << 20, tmpfs_bytes=tmpfs_mib << 20, seconds=SECONDS)
        child = self.zygote.child(limits)
        return Side(child, name="candidate", allowance=Allowance(SECONDS), call_s=call_s)

    def measure(self, source: str, operator: str = ADD, **options: object) -> RunResult:
        settings: dict[str, object] = {
            "device": CPU,
            "pairs": 0,
            "deadline_s": 60.0,
            "contract": Contract(),
        }
        job = MeasureJob(
            operator=Operator(name="op", source=operator),
            source=source,
            **{**settings, **options},  # type: ignore[arg-type]
        )
        return measure(job, zygote=self.zygote, cache=self.folder)
