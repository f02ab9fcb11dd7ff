"""How one kernel language spells what the others have as well: a row a language."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One language of kernels in which a thread does one element."""

    language: str
    kernel: str
    """Words before a kernel's name; `@THREADS@` is the size of its blocks."""
    pointer: str
    """An address in device memory; `@TYPE@` is what lies there."""
    shared: str
    """An array that the threads of a block share: `@TYPE@`, `@NAME@`, `@SIZE@`."""
    prelude: str
    """What the pieces of `simt.h` and the bodies rest on."""
    shuffles: int = 0
    """Threads that can read each other's registers; 0 where the language has no such word."""
    types: dict[str, str] = field(default_factory=dict)
    """C types that are spelt otherwise."""
    number: str = "@TYPE@"
    """A parameter that is a number."""
    built_in: Sequence[str] = ()
    """Parameters that a kernel has beside its own: where its thread lies."""
    exchange: str = ""
    """Declared in a kernel that shuffles; `@SIZE@` is the number of its threads."""
    processor: bool = False
    """Whether processors run it as well, which turn a sub-group into one vector."""

    def address(self, kind: str, name: str, *, written: bool) -> str:
        """The declaration of a pointer parameter."""
        kind = self.types.get(kind, kind)
        return f"{self.pointer.replace('@TYPE@', kind if written else f'const {kind}')} {name}"

    def array(self, kind: str, name: str, size: int) -> str:
        """The declaration of shared memory."""
        text = self.shared.replace("@TYPE@", kind).replace("@NAME@", name)
        return text.replace("@SIZE@", str(size))

    def head(self, name: str, parameters: Sequence[str], threads: int) -> str:
        """The first line of a kernel; numbers are declared as in C, `long n`."""
        words = self.kernel.replace("@THREADS@", str(threads))
        declared = [self._number(p) for p in parameters] + list(self.built_in)
        return f"{words} {name}({', '.join(declared)}) {{"

    def _number(self, parameter: str) -> str:
        kind, _, name = parameter.partition(" ")
        if "*" in parameter:
            return parameter
        return f"{self.number.replace('@TYPE@', kind)} {name}"


_C_LIKE = """\
#define FN static __device__ __forceinline__
#define GLOBAL
#define LOCAL
#define SYNC __syncthreads()
#define TID ((int)threadIdx.x)
#define BLOCK ((long)blockIdx.x)
#define BLOCKS ((long)gridDim.x)
#define BITS(x) __float_as_int(x)
#define FLOAT(x) __int_as_float(x)
#ifndef HUGE_VALF
#define HUGE_VALF __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
FN void load4(float* to, const float* p) {
  const float4 v = *(const float4*)p;
  to[0] = v.x; to[1] = v.y; to[2] = v.z; to[3] = v.w;
}
FN void store4(float* p, const float* v) {
  *(float4*)p = make_float4(v[0], v[1], v[2], v[3]);
}
"""
CUDA = Dialect(
    language="cuda",
    kernel='extern "C" __global__ void __launch_bounds__(@THREADS@)',
    pointer="@TYPE@* __restrict__",
    shared="__shared__ @TYPE@ @NAME@[@SIZE@];",
    prelude=_C_LIKE + "#define SHUFFLE(x, d) __shfl_xor_sync(0xffffffffu, x, d)\n",
    shuffles=32,
    types={"int8_t": "signed char", "uint8_t": "unsigned char", "int16_t": "short",
           "int32_t": "int", "int64_t": "long"},
)  # fmt: skip
HIP = Dialect(
    language="hip",
    kernel=CUDA.kernel,
    pointer=CUDA.pointer,
    shared=CUDA.shared,
    prelude=_C_LIKE + "#define SHUFFLE(x, d) __shfl_xor(x, d)\n",
    shuffles=32,
    types=CUDA.types,
)
OPENCL = Dialect(
    language="opencl",
    kernel="__kernel __attribute__((reqd_work_group_size(@THREADS@, 1, 1))) SUB_GROUP void",
    pointer="__global @TYPE@* restrict",
    shared="__local @TYPE@ @NAME@[@SIZE@];",
    prelude="""\
#define FN static inline
#define GLOBAL __global
#define LOCAL __local
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)
#define TID ((int)get_local_id(0))
#define BLOCK ((long)get_group_id(0))
#define BLOCKS ((long)get_num_groups(0))
#define BITS(x) as_int(x)
#define FLOAT(x) as_float(x)
#define expf exp
#define expm1f expm1
#define logf log
#define log1pf log1p
#define sqrtf sqrt
#define tanhf tanh
#define erff erf
#define sinf sin
#define cosf cos
#define powf pow
#define fabsf fabs
#define rintf rint
#define floorf floor
#define ceilf ceil
#define truncf trunc
#if defined(cl_khr_subgroup_shuffle) && defined(cl_intel_required_subgroup_size)
#define SUB_GROUP __attribute__((intel_reqd_sub_group_size(16)))
#define SHUFFLE(x, d) sub_group_shuffle_xor(x, (uint)(d))
#define EXCHANGE(n)
#else
#define SUB_GROUP
#define SHUFFLE(x, d) swapped(kf_exchange, x, d)
#define EXCHANGE(n) LOCAL int kf_exchange[n];
#endif
FN __attribute__((overloadable)) int swapped(LOCAL int* s, int x, int d) {
  s[TID] = x; SYNC;
  const int other = s[TID ^ d]; SYNC;
  return other;
}
FN __attribute__((overloadable)) float swapped(LOCAL int* s, float x, int d) {
  return FLOAT(swapped(s, BITS(x), d));
}
FN void load4(float* to, GLOBAL const float* p) {
  const float4 v = vload4(0, p);
  to[0] = v.x; to[1] = v.y; to[2] = v.z; to[3] = v.w;
}
FN void store4(GLOBAL float* p, const float* v) {
  vstore4((float4)(v[0], v[1], v[2], v[3]), 0, p);
}
""",
    shuffles=16,
    exchange="EXCHANGE(@SIZE@)",
    processor=True,
    types={"int8_t": "char", "uint8_t": "uchar", "int16_t": "short", "int32_t": "int",
           "int64_t": "long"},
)  # fmt: skip
SYCL = Dialect(
    language="sycl",
    kernel="""\
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::work_group_size<@THREADS@>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::sub_group_size<16>)) void""",
    pointer="@TYPE@* __restrict",
    shared="syclex::work_group_static<@TYPE@[@SIZE@]> @NAME@;",
    prelude="""\
#include <sycl/sycl.hpp>
namespace syclex = sycl::ext::oneapi::experimental;
#ifndef HUGE_VALF
#define HUGE_VALF __builtin_huge_valf()
#endif
#ifndef NAN
#define NAN __builtin_nanf("")
#endif
#define FN static inline
#define GLOBAL
#define SYNC sycl::group_barrier(sycl::ext::oneapi::this_work_item::get_work_group<1>())
#define ITEM sycl::ext::oneapi::this_work_item::get_nd_item<1>()
#define TID ((int)ITEM.get_local_linear_id())
#define BLOCK ((long)ITEM.get_group_linear_id())
#define BLOCKS ((long)ITEM.get_group_range(0))
#define BITS(x) sycl::bit_cast<int>(x)
#define FLOAT(x) sycl::bit_cast<float>(x)
#define SHUFFLE(x, d) sycl::permute_group_by_xor(ITEM.get_sub_group(), x, d)
#define expf sycl::exp
#define expm1f sycl::expm1
#define logf sycl::log
#define log1pf sycl::log1p
#define sqrtf sycl::sqrt
#define tanhf sycl::tanh
#define erff sycl::erf
#define sinf sycl::sin
#define cosf sycl::cos
#define powf sycl::pow
#define fabsf sycl::fabs
#define rintf sycl::rint
#define floorf sycl::floor
#define ceilf sycl::ceil
#define truncf sycl::trunc
FN void load4(float* to, const float* p) {
  const sycl::float4 v = *(const sycl::float4*)p;
  to[0] = v[0]; to[1] = v[1]; to[2] = v[2]; to[3] = v[3];
}
FN void store4(float* p, const float* v) {
  *(sycl::float4*)p = sycl::float4(v[0], v[1], v[2], v[3]);
}
""",
    shuffles=16,
    processor=True,
)
METAL = Dialect(
    language="metal",
    kernel="[[max_total_threads_per_threadgroup(@THREADS@)]] kernel void",
    pointer="device @TYPE@*",
    shared="threadgroup @TYPE@ @NAME@[@SIZE@];",
    prelude="""\
#include <metal_stdlib>
using namespace metal;
#define FN static inline
#define GLOBAL device
#define SYNC threadgroup_barrier(mem_flags::mem_threadgroup)
#define TID ((int)kf_thread)
#define BLOCK ((long)kf_group)
#define BLOCKS ((long)kf_groups)
#define BITS(x) as_type<int>(x)
#define FLOAT(x) as_type<float>(x)
#define SHUFFLE(x, d) simd_shuffle_xor(x, (ushort)(d))
#define expf precise::exp
#define logf precise::log
#define sqrtf precise::sqrt
#define tanhf precise::tanh
#define sinf precise::sin
#define cosf precise::cos
#define powf precise::pow
#define fabsf fabs
#define rintf rint
#define floorf floor
#define ceilf ceil
#define truncf trunc
FN float expm1f(float x) {
  const float u = precise::exp(x);
  if (fabs(x) < 1e-2f) return x * (1.0f + x * (0.5f + x * (0.166666667f + x * 0.0416666667f)));
  return u - 1.0f;
}
FN float log1pf(float x) {
  const float u = 1.0f + x;
  return u == 1.0f || isinf(u) ? (u == 1.0f ? x : u) : precise::log(u) * (x / (u - 1.0f));
}
// Two polynomials by N. Juffa (public): the error is below 1 ulp of erf.
FN float erff(float a) {
  const float t = fabs(a), s = a * a;
  float r = fma(-1.72853470e-5f, t, 3.83197126e-4f);
  float u = fma(-3.88396438e-3f, t, 2.42546219e-2f);
  if (t > 0.927734375f) {
    r = fma(r, s, u);
    r = fma(r, t, -1.06777877e-1f);
    r = fma(r, t, -6.34846687e-1f);
    r = fma(r, t, -1.28717512e-1f);
    r = fma(r, t, -t);
    return copysign(1.0f - precise::exp(r), a);
  }
  r = -5.96761703e-4f;
  r = fma(r, s, 4.99119423e-3f);
  r = fma(r, s, -2.67681349e-2f);
  r = fma(r, s, 1.12819925e-1f);
  r = fma(r, s, -3.76125336e-1f);
  r = fma(r, s, 1.28379166e-1f);
  return fma(r, a, a);
}
FN void load4(thread float* to, device const float* p) {
  const float4 v = *(device const float4*)p;
  to[0] = v.x; to[1] = v.y; to[2] = v.z; to[3] = v.w;
}
FN void store4(device float* p, thread const float* v) {
  *(device float4*)p = float4(v[0], v[1], v[2], v[3]);
}
""",
    shuffles=32,
    types={"int8_t": "char", "uint8_t": "uchar", "int16_t": "short", "int32_t": "int",
           "int64_t": "long"},
    number="constant @TYPE@&",
    built_in=(
        "uint kf_thread [[thread_index_in_threadgroup]]",
        "uint kf_group [[threadgroup_position_in_grid]]",
        "uint kf_groups [[threadgroups_per_grid]]",
    ),
)  # fmt: skip
DIALECTS = {d.language: d for d in (CUDA, HIP, OPENCL, SYCL, METAL)}
