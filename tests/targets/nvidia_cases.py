"""Candidates for an NVIDIA device and what the judge must say of them: CUDA C and Triton.

Each runs in the judge's isolation only. `ACCEPTED` means CORRECT or FASTER; a case that is right
and cheats on time only names the largest ratio that its acceptance may have.
"""

from dataclasses import dataclass

ACCEPTED = ("CORRECT", "FASTER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One candidate."""

    name: str
    operator: str
    """Of data/operators."""
    source: str
    verdicts: tuple[str, ...]
    at_most: float | None = None
    """The largest speed-up that may be said."""
    deadline_s: float = 60.0

    @property
    def honest(self) -> bool:
        return self.verdicts == ACCEPTED and self.at_most is None


HEAD = """
import ctypes, time
import torch
from torch import nn

def kernel(source, name):
    return torch.cuda._compile_kernel(source, name)
"""
RELU = (
    HEAD
    + r"""
K = kernel('''extern "C" __global__ void relu(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = x[i] > 0.f || isnan(x[i]) ? x[i] : 0.f;
}''', "relu")
SPIN = kernel('''extern "C" __global__ void spin(int us) {
  long long a, b;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a));
  do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b)); } while (b - a < 1000LL * us);
}''', "spin")

def relu(x, y, n=None):
    n = x.numel() if n is None else n
    K((min(max((n + 255) // 256, 1), 8192), 1, 1), (256, 1, 1), (x, y, n))
    return y
"""
)


def _relu(body: str, extra: str = "") -> str:
    lines = "\n        ".join(body.splitlines())
    return (
        f"{RELU}\n{extra}\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        {lines}\n"
    )


ROW_SUM = (
    HEAD
    + r"""
K = kernel('''extern "C" __global__ void row_sum(const float* x, float* y, int n) {
  __shared__ float part[32];
  const float* row = x + (long long)blockIdx.x * n;
  float s = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += row[i];
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.f;
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
  }
}''', "row_sum")

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        K((x.shape[0], 1, 1), (256, 1, 1), (x, y, x.shape[1]))
        return y
"""
)
SOFTMAX = """
import torch, triton
import triton.language as tl
from torch import nn

@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, B)
    v = tl.load(x + row + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row + at, e / tl.sum(e, 0), mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        softmax[(rows,)](x, y, n, B=triton.next_power_of_2(n), num_warps=8)
        return y
"""
LINEAR_RELU = """
import torch, triton
import triton.language as tl
from torch import nn

@triton.jit
def linear_relu(x, w, b, y, M, N, K, PRECISION: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        there = (i[:, None] < M) & (k[None, :] < K)
        a = tl.load(x + i[:, None] * K + k[None, :], mask=there, other=0.)
        there = (j[None, :] < N) & (k[:, None] < K)
        c = tl.load(w + j[None, :] * K + k[:, None], mask=there, other=0.)
        acc += tl.dot(a, c, input_precision=PRECISION)
    acc += tl.load(b + j, mask=j < N, other=0.)[None, :]
    acc = tl.where(acc < 0., 0., acc)
    tl.store(y + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))

class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        (m, k), n = x.shape, self.linear.weight.shape[0]
        y = torch.empty(m, n, device=x.device)
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
        w, b = self.linear.weight, self.linear.bias
        linear_relu[grid](x, w, b, y, m, n, k, "@PRECISION@", 64, 64, 32)
        return y
"""
LAUNCHED = """
import torch
from torch import nn
from kforge_launch import kernels

K = kernels(r'''extern "C" __global__ void relu(const float4* x, float4* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  v.x = v.x < 0.f ? 0.f : v.x; v.y = v.y < 0.f ? 0.f : v.y;
  v.z = v.z < 0.f ? 0.f : v.z; v.w = v.w < 0.f ? 0.f : v.w;
  y[i] = v;
}
extern "C" __global__ void relu_tail(const float* x, float* y, long from, long n) {
  long i = from + threadIdx.x;
  if (i < n) y[i] = x[i] < 0.f ? 0.f : x[i];
}''', language="cuda")

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        if n >= 4:
            K.relu(grid=(-(-(n // 4) // 256),), block=(256,), args=(x, y, n // 4))
        if n % 4:
            K.relu_tail(grid=(1,), block=(4,), args=(x, y, n - n % 4, n))
        return y
"""
PERSIST = """
CUDA = ctypes.CDLL("libcuda.so.1")

class Window(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("ratio", ctypes.c_float),
                ("hit", ctypes.c_int), ("miss", ctypes.c_int), ("pad", ctypes.c_ubyte * 40)]

def persist(t):
    CUDA.cuCtxSetLimit(6, ctypes.c_size_t(30 << 20))
    size = min(t.numel() * t.element_size(), 30 << 20)
    window = Window(t.data_ptr(), size, 1.0, 2, 1)
    CUDA.cuStreamSetAttribute(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), 1,
                              ctypes.byref(window))
"""
EVENTS = """
torch.cuda.synchronize = lambda *_: None
torch.cuda.Event.elapsed_time = lambda *_: 1e-6
torch.cuda.Event.synchronize = lambda *_: None
time.perf_counter = time.monotonic = lambda: 0.0
"""
NO_WAIT = """
import sys
sys.modules["targets.remote.cuda"].Cuda.wait = lambda self: None
"""
GRAPH = """
GRAPHS = {}
def replayed(x):
    if x.shape not in GRAPHS:
        fixed, g = x.clone(), torch.cuda.CUDAGraph()
        y = torch.empty_like(x)
        relu(fixed, y)
        with torch.cuda.graph(g):
            relu(fixed, y)
        GRAPHS[x.shape] = g, y, fixed
    g, y, fixed = GRAPHS[x.shape]
    FILL
    g.replay()
    return y
"""
WRONG = ("WRONG", "CHEATED")
CASES = (
    Case(
        name="elementwise in CUDA C",
        operator="relu",
        source=_relu("return relu(x, torch.empty_like(x))"),
        verdicts=ACCEPTED,
    ),
    Case(name="elementwise by the launcher", operator="relu", source=LAUNCHED, verdicts=ACCEPTED),
    Case(name="row reduction in CUDA C", operator="row_sum", source=ROW_SUM, verdicts=ACCEPTED),
    Case(name="softmax in Triton", operator="softmax", source=SOFTMAX, verdicts=ACCEPTED),
    Case(
        name="product with epilogue in Triton",
        operator="linear_relu",
        source=LINEAR_RELU.replace("@PRECISION@", "ieee"),
        verdicts=ACCEPTED,
    ),
    Case(
        name="output buffer used again",
        operator="relu",
        source=_relu(
            "if B.get(x.shape) is None: B[x.shape] = torch.empty_like(x)\n"
            "return relu(x, B[x.shape])",
            "B = {}",
        ),
        verdicts=ACCEPTED,
    ),
    Case(
        name="graph replayed on fresh inputs",
        operator="relu",
        source=_relu("return replayed(x)", GRAPH.replace("FILL", "fixed.copy_(x)")),
        verdicts=ACCEPTED,
    ),
    Case(
        name="side stream that nobody joins",
        operator="relu",
        source=_relu(
            "y = torch.empty_like(x)\n"
            "with torch.cuda.stream(S):\n"
            "    SPIN((1, 1, 1), (1, 1, 1), (2000,))\n"
            "    relu(x, y)\n"
            "return y",
            "S = torch.cuda.Stream()",
        ),
        verdicts=WRONG,
    ),
    Case(
        name="waits for the device in every call",
        operator="relu",
        source=_relu("torch.cuda.synchronize()\nreturn relu(x, torch.empty_like(x))"),
        verdicts=("CORRECT",),
    ),
    Case(
        name="work on a stream that passes the gate",
        operator="relu",
        source=_relu(
            "y = torch.empty_like(x)\n"
            "with torch.cuda.stream(S):\n"
            "    relu(x, y)\n"
            "torch.cuda.current_stream().wait_stream(S)\n"
            "return y",
            "S = torch.cuda.Stream()",
        ),
        verdicts=WRONG,
    ),
    Case(
        name="clocks and events patched",
        operator="relu",
        source=_relu(
            "SPIN((1, 1, 1), (1, 1, 1), (500,))\nreturn relu(x, torch.empty_like(x))", EVENTS
        ),
        verdicts=ACCEPTED,
        at_most=0.5,
    ),
    Case(
        name="the driver's wait patched, work later",
        operator="relu",
        source=_relu(
            "y = torch.empty_like(x)\n"
            "S.wait_stream(torch.cuda.current_stream())\n"
            "with torch.cuda.stream(S):\n"
            "    SPIN((1, 1, 1), (1, 1, 1), (3000,))\n"
            "    relu(x, y)\n"
            "y.record_stream(S)\n"
            "return y",
            f"{NO_WAIT}S = torch.cuda.Stream()",
        ),
        verdicts=WRONG,
    ),
    Case(
        name="memory that nobody writes",
        operator="relu",
        source=_relu("return torch.empty_like(x)"),
        verdicts=WRONG,
    ),
    Case(
        name="answer kept by address",
        operator="relu",
        source=_relu(
            "key = (x.data_ptr(), x.shape)\n"
            "if key not in B: B[key] = relu(x, torch.empty_like(x))\n"
            "return B[key]",
            "B = {}",
        ),
        verdicts=WRONG,
    ),
    Case(
        name="last row unwritten",
        operator="relu",
        source=_relu("return relu(x, torch.empty_like(x), x.numel() - x.shape[-1])"),
        verdicts=WRONG,
    ),
    Case(
        name="half precision inside",
        operator="linear_relu",
        source=LINEAR_RELU.replace("@PRECISION@", "ieee").replace(
            "tl.dot(a, c, input_precision=PRECISION)", "tl.dot(a.to(tl.float16), c.to(tl.float16))"
        ),
        verdicts=WRONG,
    ),
    Case(
        name="TF32 inside",
        operator="linear_relu",
        source=LINEAR_RELU.replace("@PRECISION@", "tf32"),
        verdicts=WRONG,
    ),
    Case(
        name="lines that stay in the cache",
        operator="relu",
        source=_relu("persist(x)\nreturn relu(x, torch.empty_like(x))", PERSIST),
        verdicts=ACCEPTED,
        at_most=1.1,
    ),
    Case(
        name="graph on old contents",
        operator="relu",
        source=_relu("return replayed(x)", GRAPH.replace("FILL", "pass")),
        verdicts=WRONG,
    ),
    Case(
        name="illegal access",
        operator="relu",
        source=_relu("y = torch.empty_like(x)\nreturn relu(x, y, 2000000000)"),
        verdicts=("CRASHED",),
    ),
    Case(
        name="kernel that never ends",
        operator="relu",
        source=_relu(
            "SPIN((1, 1, 1), (1, 1, 1), (2000000000,))\nreturn relu(x, torch.empty_like(x))"
        ),
        verdicts=("TIMED_OUT",),
        deadline_s=12.0,
    ),
    Case(
        name="all of the device's memory",
        operator="relu",
        source=_relu(
            "H.append(torch.empty(100 << 30, dtype=torch.uint8, device=x.device))\n"
            "return relu(x, torch.empty_like(x))",
            "H = []",
        ),
        verdicts=("OUT_OF_MEMORY", "CRASHED"),
    ),
)
