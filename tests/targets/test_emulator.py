"""Kernels of a GPU without a GPU: right answers, and each fault named with its line."""

from pathlib import Path
from typing import Any

import pytest
import torch

from targets.remote.emulation.half import CUDA, HIP, EmulatedHalf
from targets.remote.kforge_launch import HALVES, kernels

RELU = """extern "C" __global__ void relu(const float* __restrict__ x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}"""
SOFTMAX = """extern "C" __global__ void softmax(const float* x, float* y, int n) {
  __shared__ float s[256];
  const float* r = x + (long)blockIdx.x * n;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < n; i += 256) m = fmaxf(m, r[i]);
  s[threadIdx.x] = m;
  __syncthreads();
  for (int d = 128; d > 0; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + d]);
    __syncthreads();
  }
  m = s[0];
  __syncthreads();
  float t = 0;
  for (int i = threadIdx.x; i < n; i += 256) t += __expf(r[i] - m);
  for (int d = 16; d > 0; d >>= 1) t += __shfl_xor_sync(0xffffffff, t, d);
  if ((threadIdx.x & 31) == 0) s[threadIdx.x / 32] = t;
  __syncthreads();
  t = 0;
  for (int i = 0; i < 8; ++i) t += s[i];
  for (int i = threadIdx.x; i < n; i += 256) y[(long)blockIdx.x * n + i] = __expf(r[i] - m) / t;
}"""


@pytest.fixture(autouse=True)
def _emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KFORGE_LAUNCH_CACHE", str(tmp_path))
    for half in (CUDA, HIP):
        monkeypatch.setitem(HALVES, half.languages[0], half)


def relu(source: str, n: int = 1003) -> torch.Tensor:
    x = torch.linspace(-1, 1, n)
    y = torch.empty_like(x)
    kernels(source, language="cuda").relu(grid=(-(-n // 256),), block=(256,), args=(x, y, n))
    return y


def softmax(source: str) -> torch.Tensor:
    x = torch.arange(3 * 700).remainder(97).float().view(3, 700) / 7
    y = torch.empty_like(x)
    kernels(source, language="cuda").softmax(grid=(3,), block=(256,), args=(x, y, 700))
    assert torch.allclose(y, torch.softmax(x, -1), atol=1e-7)
    return y


def test_map_and_reduction_are_right_in_every_order_of_threads() -> None:
    """Checked and plain launches agree with torch, whatever the order."""
    for _ in range(5):
        assert torch.equal(relu(RELU), torch.linspace(-1, 1, 1003).relu())
        softmax(SOFTMAX)


FAULTS: dict[str, tuple[Any, str, str, str, str]] = {
    "one past the end": (relu, RELU, "i < n", "i <= n", "line 3: out of bounds"),
    "before the begin": (relu, RELU, "x[i] : 0", "x[i - 1004] : 0", "line 3: out of bounds"),
    "behind a shared array": (softmax, SOFTMAX, "s[256]", "s[250]", "line 6: out of bounds"),
    "barrier left out in a loop": (
        softmax, SOFTMAX, "    __syncthreads();\n  }", "  }", "line 9: race in shared memory",
    ),
    "barrier left out before reuse": (
        softmax, SOFTMAX, "m = s[0];\n  __syncthreads();", "m = s[0];\n",
        "line 17: race in shared memory",
    ),
    "barrier for some": (
        softmax, SOFTMAX, "+ d]);\n    __syncthreads();", "+ d]), __syncthreads();\n",
        "line 9: divergent barrier",
    ),
    "barrier that others pass": (
        relu, RELU, "  if (i < n)", "  if (threadIdx.x < 16) __syncthreads();\n  if (i < n)",
        "line 3: divergent barrier",
    ),
    "all write one place": (
        relu, RELU, "y[i] =", "y[i % 2] =", "line 3: race in device memory",
    ),
    "too much shared memory": (softmax, SOFTMAX, "s[256]", "s[60000]", "bytes of shared memory"),
    "misaligned vector": (
        relu, RELU, "y[i] = x[i] > 0 ? x[i] : 0", "*(float4*)(y + 1) = make_float4(0, 0, 0, 0)",
        "line 3: misaligned address",
    ),
    "behind an array of the thread": (
        relu, RELU, "if (i < n) y[i] = x[i]", "float r[4] = {0};\n  if (i < n) y[i] = r[i]",
        "line 4: out of bounds",
    ),
    "division by zero": (relu, RELU, "x[i] : 0", "x[i] : (int)i / (int)(n - n)", "line 3: divi"),
    "lane outside its mask": (
        relu, RELU, "if (i < n)", "__syncwarp(0x1);\n  if (i < n)", "line 3: lane 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_named_with_its_line(name: str) -> None:
    """A planted fault is reported as what it is, at the line where it stands."""
    judge, source, old, new, expected = FAULTS[name]
    assert old in source
    with pytest.raises(RuntimeError, match=expected):
        judge(source.replace(old, new))


@pytest.mark.parametrize("language", ["cuda", "hip"])
def test_barrier_in_a_branch_on_data_explains_its_race(language: str) -> None:
    """Who skips a barrier and returns leaves a race behind; the barrier is what is to be mended."""
    source = """extern "C" __global__ void swap(const float* x, float* y) {
  __shared__ float s[256];
  s[threadIdx.x] = x[threadIdx.x];
  if (x[threadIdx.x] > 0)
    __syncthreads();
  y[threadIdx.x] = s[255 - threadIdx.x];
}"""
    x = torch.linspace(-1, 1, 256)
    said = "line 5: divergent barrier: 128 of 256 .* returned; before it line 3: race in shared"
    with pytest.raises(RuntimeError, match=said):
        kernels(source, language=language).swap(grid=(1,), block=(256,), args=(x, x.clone()))


def test_a_thread_that_waits_after_a_race_ends() -> None:
    """What cannot end because of the race is still told as the race, at once."""
    source = """extern "C" __global__ void spin(float* y) {
  __shared__ volatile int s[256];
  s[threadIdx.x] = 1;
  while (threadIdx.x > 127 && s[255 - threadIdx.x] == 1) {}
  y[threadIdx.x] = 1;
}"""
    with pytest.raises(RuntimeError, match="line 4: race in shared memory"):
        kernels(source, language="cuda").spin(grid=(1,), block=(256,), args=(torch.zeros(256),))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ('asm volatile("");', "inline assembly"),
        ("namespace cg = cooperative_groups;", "cooperative groups"),
        ("nvcuda::wmma::fragment<int> f;", "tensor-core fragments"),
        ("__builtin_amdgcn_s_barrier();", "vendor instructions"),
    ],
)
def test_what_the_emulator_lacks_is_named_not_guessed(code: str, name: str) -> None:
    """A source that needs more is refused with the feature and its line."""
    with pytest.raises(
        RuntimeError, match=rf"UNSUPPORTED: kernel.cu:2: the emulator has no {name}"
    ):
        relu(RELU.replace("{\n", "{" + "\n" + code, 1))


def test_words_in_comments_are_no_features() -> None:
    """Only code counts."""
    relu(
        RELU.replace("{\n", '{ // asm wmma\n  const char* s = "cooperative_groups"; (void)s;\n', 1)
    )


def test_syntax_error_has_the_line_of_the_kernel() -> None:
    """The compiler speaks of the candidate's file and line."""
    with pytest.raises(RuntimeError, match=r"kernel\.cu:3:"):
        relu(RELU.replace("y[i] =", "y[i] = ="))


def test_early_return_before_a_barrier_is_legal() -> None:
    """Threads that returned do not count at a barrier, as on the devices."""
    source = RELU.replace("  if (i < n)", "  if (i >= n) return;\n  __syncthreads();\n ")
    assert torch.equal(relu(source), torch.linspace(-1, 1, 1003).relu())


def test_same_value_from_all_threads_is_no_race() -> None:
    """A flag that everybody sets alike is harmless."""
    source = RELU.replace(
        "  if (i < n)", "  __shared__ int f;\n  f = 1;\n  __syncthreads();\n  if (i < n && f)"
    )
    relu(source)


def test_shared_memory_holds_nothing_of_the_block_before() -> None:
    """What a block leaves in shared memory is poison for the next."""
    source = RELU.replace(
        "  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;",
        "  __shared__ float s[256];\n  if (i < 256) s[threadIdx.x] = 1;\n"
        "  if (i < n) y[i] = s[threadIdx.x];",
    )
    assert relu(source)[256:].isnan().all()


@pytest.mark.parametrize(("half", "width"), [(CUDA, 32), (HIP, 64)])
def test_width_of_a_warp_is_the_devices(half: EmulatedHalf, width: int) -> None:
    """Shuffles and votes go over 32 threads on one vendor's chips and 64 on another's."""
    source = """extern "C" __global__ void sums(const int* x, int* y) {
  int v = x[threadIdx.x];
  for (int d = warpSize / 2; d > 0; d >>= 1) v += __shfl_down(v, d);
  y[threadIdx.x] = __shfl(v, 0) + 1000 * __popcll(__ballot(x[threadIdx.x] > 0));
}"""
    x = torch.arange(128, dtype=torch.int32)
    y = torch.empty_like(x)
    kernels(source, language=half.languages[0]).sums(grid=(1,), block=(128,), args=(x, y))
    sums = x.view(-1, width).sum(-1) + 1000 * (x.view(-1, width) > 0).sum(-1)
    assert torch.equal(y, sums.repeat_interleave(width).int())


def test_atomics_dynamic_memory_and_half_types() -> None:
    """A histogram in dynamic shared memory, flushed by atomics; halves convert as hardware does."""
    source = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void histogram(const __half* x, int* y, __nv_bfloat16* z, int n) {
  extern __shared__ int bins[];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    atomicAdd(&bins[(int)__half2float(x[i]) & 7], 1);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&y[threadIdx.x], bins[threadIdx.x]);
  if (threadIdx.x == 0) z[blockIdx.x] = __float2bfloat16(1.0f / 3.0f);
}"""
    x = torch.arange(100).half()
    y, z = torch.zeros(8, dtype=torch.int32), torch.zeros(2, dtype=torch.bfloat16)
    made = kernels(source, language="cuda")
    made.histogram(grid=(2,), block=(64,), args=(x, y, z, 100), shared=32)
    assert torch.equal(y, 2 * torch.bincount(torch.arange(100) % 8).int())
    assert torch.equal(z, torch.full((2,), 1 / 3).bfloat16())
