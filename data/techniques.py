"""The closed vocabulary of optimizations: free text does not group, tags do.

A generator declares its tags; `detect` finds what the source itself shows. Both are stored, and
neither is believed alone.
"""

import re
from dataclasses import dataclass, field

from data.tokens import c_code, kernel_texts, python_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One optimization that can be named, advised and counted."""

    tag: str
    meaning: str
    family: str
    """`parallelism`, `memory`, `arithmetic`, `algorithm` or `launch`."""
    signs: str | None = None
    """Regular expression over code tokens; None where no sign is reliable."""
    names: dict[str, str] = field(default_factory=dict)
    """By vendor, where the vendor has a word of its own for it."""


def _named(nvidia: str, amd: str, intel: str, apple: str, **more: str) -> dict[str, str]:
    return {"nvidia": nvidia, "amd": amd, "intel": intel, "apple": apple, **more}


_ALL = (
    Technique(
        tag="vectorize",
        meaning="process several elements with one SIMD instruction",
        family="parallelism",
        signs=r"omp[^\n]*\bsimd\b|\b_mm(256|512)?_\w+|vector_size|GCC ivdep",
    ),
    Technique(
        tag="unroll",
        meaning="repeat the loop body to hide latency",
        family="parallelism",
        signs=r"#\s*pragma\s+(GCC\s+)?unroll(?!\s*\(?\s*1\b)|\bopencl_unroll_hint\b|\btl\.static_range\b",
    ),
    Technique(tag="tile", meaning="work on blocks that fit near memory", family="memory"),
    Technique(
        tag="register_tile",
        meaning="keep a block of results in registers",
        family="memory",
        signs=r"\bacc\[\w+\]\[\w+\]|[;{}]\s*(float4?|half2?|double)\s+\w+\s*\[\w+\]\s*\[\w+\]",
    ),
    Technique(
        tag="cache_block", meaning="split loops so that data stay in a cache", family="memory"
    ),
    Technique(
        tag="loop_interchange",
        meaning="reorder loops so that the inner one reads contiguous memory",
        family="memory",
    ),
    Technique(
        tag="parallel_outer",
        meaning="give rows or blocks to threads",
        family="parallelism",
        signs=r"omp\s+(parallel\s+)?for|\bblockIdx\b|\bget_group(_id|_linear_id)?\s*\("
        r"|\bget_global_id\s*\(|\bthreadgroup_position_in_grid\b|\bthread_position_in_grid\b"
        r"|\btl\.program_id\b",
        names=_named("blocks", "workgroups", "work-groups", "threadgroups", cpu="OpenMP threads"),
    ),
    Technique(
        tag="parallel_inner",
        meaning="let several threads share one row",
        family="parallelism",
        signs=r"\+=\s*(blockDim\.x\b(?!\s*\*)|get_local_size\s*\(|threads_per_threadgroup)",
    ),
    Technique(
        tag="split_reduction",
        meaning="reduce in parts, then combine the parts",
        family="parallelism",
        signs=r"omp[^\n]*\breduction\s*\(\s*[+*\w]+:|\batomic(Add|Max|Min)\s*\(|\btl\.atomic_\w+"
        r"|\batomic_fetch_\w+|\batomic_(add|max|min)\s*\(|\batomic_ref\b",
        names=_named("split-K, atomicAdd", "split-K, atomicAdd", "atomic_ref", "atomic_fetch_add"),
    ),
    Technique(
        tag="multi_accumulator",
        meaning="independent partial sums to break the dependency chain",
        family="arithmetic",
        signs=r"\b(\w+)\[u\] = [^;]*\b\1\[u\]|\bacc1\b",
    ),
    Technique(
        tag="fuse_epilogue",
        meaning="apply what follows while the result is in registers",
        family="memory",
    ),
    Technique(
        tag="fuse_prologue",
        meaning="compute the operand while it is loaded",
        family="memory",
    ),
    Technique(
        tag="online_softmax",
        meaning="keep running maximum and rescaled sum",
        family="algorithm",
    ),
    Technique(
        tag="single_pass",
        meaning="read the input once instead of several times",
        family="memory",
    ),
    Technique(
        tag="streaming_store",
        meaning="write results past the caches",
        family="memory",
        signs=r"_mm(256|512)?_stream_\w+|__builtin_nontemporal_store|\bst\.global\.cs\b|\b__stcs\b"
        r"|\b__stwt\b|\bL1::no_allocate\b",
        names=_named("st.global.cs", "nontemporal store, slc", "nontemporal", "none"),
    ),
    Technique(
        tag="prefetch",
        meaning="ask for data before they are needed",
        family="memory",
        signs=r"__builtin_prefetch|_mm_prefetch|\bprefetch\.global|\bprefetch(u)?\.L[12]\b"
        r"|\bjoint_prefetch\b",
    ),
    Technique(
        tag="fast_math_poly",
        meaning="polynomial exp, log, erf or tanh instead of the library's",
        family="arithmetic",
        signs=r"1\.44269\d|0\.69314\d|1\.12819\d|2\.7607\d+e-16|2\.7261\d+e-10",
    ),
    Technique(
        tag="layout_transpose",
        meaning="change the order of data for contiguous access",
        family="memory",
    ),
    Technique(
        tag="pack",
        meaning="copy operands into the order of use",
        family="memory",
        signs=r"\bpack\w*\s*\(",
    ),
    Technique(
        tag="shared_memory",
        meaning="stage data in memory that a work group shares",
        family="memory",
        signs=r"__shared__|\bthreadgroup\s+\w+|\b__local\b|\blocal\s+(float|half|int|uint)\d*\b"
        r"|\blocal_accessor\b|\bwork_group_static\b|\bgroup_local_memory\w*",
        names=_named("shared memory", "LDS", "local memory (SLM)", "threadgroup memory"),
    ),
    Technique(
        tag="coalesce",
        meaning="let neighbouring threads read neighbouring addresses",
        family="memory",
    ),
    Technique(
        tag="vector_load",
        meaning="load several elements with one instruction a thread",
        family="memory",
        signs=r"\b(packed_)?(float|uint|int|ushort|short)[248]\b|\bhalf[248]\b|\b__half2\b"
        r"|\b__nv_bfloat162\b|\bvload\d+\b|\bld\.global(\.\w+)*\.v\d|\bvec\s*<\s*\w+\s*,\s*[248]\b"
        r"|\bintel_sub_group_block_read\w*",
        names=_named("128-bit loads (float4)", "dwordx4 loads", "block reads, vload", "float4"),
    ),
    Technique(
        tag="warp_reduce",
        meaning="reduce within a sub-group by shuffles",
        family="parallelism",
        signs=r"\b__shfl\w*|\b__reduce_\w+_sync\b|\bsub_group_(reduce|shuffle|scan)\w*"
        r"|\bsimd_(sum|max|min|product|shuffle\w*|prefix\w*)\b|\breduce_over_group\b"
        r"|\b(shift_group_\w+|permute_group_by_xor|select_from_group)\b|\bupdate_dpp\b|\bds_swizzle\b",
        names=_named("warp shuffles", "wave DPP, shuffles", "sub-group reduce", "simd_sum"),
    ),
    Technique(
        tag="matrix_unit",
        meaning="use the device's matrix instructions",
        family="arithmetic",
        signs=r"\b(roc)?wmma\b|\bmma\.sync|\bwgmma\b|\btcgen05\b|\b__builtin_amdgcn_(mfma|wmma|smfmac)\w*"
        r"|\bsimdgroup_(matrix|multiply\w*|float8x8|half8x8)\b|\bdpas\w*|\bjoint_matrix\w*|\bmatrix_mad\w*"
        r"|\btl\.dot(_scaled)?\b|\b_tile_\w+",
        names=_named("tensor cores (mma, wgmma)", "MFMA, WMMA", "XMX (dpas)", "simdgroup_matrix"),
    ),
    Technique(
        tag="async_copy",
        meaning="copy into near memory while computing",
        family="memory",
        signs=r"\bcp\.async|\bmemcpy_async\b|\b__pipeline_\w+|\basync_work_group_\w*copy\w*"
        r"|\bsimdgroup_async_copy\w*|\w+_load_lds\b|\bnum_stages\s*=\s*[2-9]|\btensor_descriptor\b",
        names=_named("cp.async, TMA", "buffer_load to LDS", "async_work_group_copy", "none"),
    ),
    Technique(
        tag="persistent",
        meaning="keep work groups resident and let them fetch work",
        family="launch",
        signs=r"\+=\s*(gridDim\.x\b(?!\s*\*)|get_num_groups\s*\(|threadgroups_per_grid)"
        r"|\btl\.num_programs\b",
    ),
    Technique(
        tag="low_precision",
        meaning="compute or store in a narrower type than declared",
        family="arithmetic",
        signs=r"\b__half2?\b|\b_Float16\b|\b(__nv_|nv_)?bfloat16\w*|\b__bf16\b"
        r"|\b__nv_fp8_\w+|\btl\.(float16|bfloat16|float8\w+)\b|\bhalf[248]\b|\(half\)"
        r"|(?<![^;{}(,])\s*(?:(?:const|device|constant|thread|threadgroup|__\w+)\s+)*"
        r"half\b(?:\s+|\s*\*\s*)\w+\s*(?:\[|[=;,)](?!=))",
    ),
    Technique(tag="algebra", meaning="an equal formula that needs less work", family="algorithm"),
    Technique(
        tag="recompute",
        meaning="compute again instead of storing and loading",
        family="memory",
    ),
    Technique(
        tag="buffer_reuse",
        meaning="keep an output or scratch buffer between calls",
        family="memory",
    ),
    Technique(
        tag="fast_intrinsic",
        meaning="the hardware's approximate function instead of the accurate one",
        family="arithmetic",
        signs=r"\b__(exp|log|sin|cos|pow|tan|exp10|log2)f\s*\(|\b__fdividef\b|\bnative_\w+\s*\("
        r"|\bnative::\w+|\bfast::\w+|\bex2\.approx|\btanh\.approx",
        names=_named("__expf, ex2.approx", "__expf, v_exp_f32", "native_exp", "fast::exp"),
    ),
    Technique(
        tag="launch_bound",
        meaning="tell the compiler the group size, to trade registers for occupancy",
        family="launch",
        signs=r"\b__launch_bounds__\b|\b__maxnreg__\b|\bamdgpu_(waves_per_eu|flat_work_group_size)\b"
        r"|\breqd_work_group_size\b|\bmax_total_threads_per_threadgroup\b",
    ),
    Technique(
        tag="bank_padding",
        meaning="pad or swizzle near memory so that its banks do not collide",
        family="memory",
        signs=r"(__shared__|__local|threadgroup)[^;{}]*\[\s*\w+\s*\+\s*\d+\s*\]",
    ),
    Technique(tag="lookup", meaning="a table instead of arithmetic", family="arithmetic"),
    Technique(
        tag="dispatch_shape",
        meaning="choose between kernels by the shape in hand",
        family="launch",
    ),
)

TECHNIQUES: dict[str, Technique] = {t.tag: t for t in _ALL}


def detect(source: str, language: str) -> tuple[str, ...]:
    r"""Tags whose signs stand in the code, in the order of the vocabulary.

    `source` is a candidate's module, whose kernels are string constants, or a bare kernel.

    >>> kernel = "// prefetch: __builtin_prefetch(p)\n_mm512_stream_ps(p, v);"
    >>> detect(f"K = kernels({kernel!r})", "cpp")
    ('vectorize', 'streaming_store')
    """
    texts = [python_code(source)] if language == "triton" else map(c_code, kernel_texts(source))
    code = "\n".join(texts)
    return tuple(t.tag for t in _ALL if t.signs and re.search(t.signs, code))
