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
    """Words before an array that the threads of a block share."""
    prelude: str
    """What the pieces of `simt.h` and the bodies rest on."""
    shuffles: int = 0
    """Threads that can read each other's registers; 0 where the language has no such word."""
    types: dict[str, str] = field(default_factory=dict)
    """C types that are spelt otherwise."""

    def address(self, kind: str, name: str, *, written: bool) -> str:
        """The declaration of a pointer parameter."""
        kind = self.types.get(kind, kind)
        return f"{self.pointer.replace('@TYPE@', kind if written else f'const {kind}')} {name}"

    def head(self, name: str, parameters: Sequence[str], threads: int) -> str:
        """The first line of a kernel."""
        words = self.kernel.replace("@THREADS@", str(threads))
        return f"{words} {name}({', '.join(parameters)}) {{"


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
    shared="__shared__",
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
    kernel="__kernel __attribute__((reqd_work_group_size(@THREADS@, 1, 1))) void",
    pointer="__global @TYPE@* restrict",
    shared="__local",
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
FN void load4(float* to, GLOBAL const float* p) {
  const float4 v = vload4(0, p);
  to[0] = v.x; to[1] = v.y; to[2] = v.z; to[3] = v.w;
}
FN void store4(GLOBAL float* p, const float* v) {
  vstore4((float4)(v[0], v[1], v[2], v[3]), 0, p);
}
""",
    types={"int8_t": "char", "uint8_t": "uchar", "int16_t": "short", "int32_t": "int",
           "int64_t": "long"},
)  # fmt: skip
DIALECTS = {d.language: d for d in (CUDA, HIP, OPENCL)}
