"""The closed vocabulary of optimizations: free text does not group, tags do.

A generator declares its tags; `detect` finds what the source itself shows. Both are stored, and
neither is believed alone.
"""

import ast
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One optimization that can be named, advised and counted."""

    tag: str
    meaning: str
    family: str
    """`parallelism`, `memory`, `arithmetic`, `algorithm` or `launch`."""
    signs: str | None = None
    """Regular expression over code tokens; None where no sign is reliable."""


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
        signs=r"#\s*pragma\s+(GCC\s+)?unroll(?!\s+1\b)",
    ),
    Technique(tag="tile", meaning="work on blocks that fit near memory", family="memory"),
    Technique(
        tag="register_tile",
        meaning="keep a block of results in registers",
        family="memory",
        signs=r"\bacc\[\w+\]\[\w+\]",
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
        signs=r"omp\s+(parallel\s+)?for|blockIdx|get_group_id|threadgroup_position",
    ),
    Technique(
        tag="parallel_inner",
        meaning="let several threads share one row",
        family="parallelism",
    ),
    Technique(
        tag="split_reduction",
        meaning="reduce in parts, then combine the parts",
        family="parallelism",
        signs=r"omp[^\n]*\breduction\s*\(\s*[+*\w]+:",
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
        signs=r"_mm(256|512)?_stream_\w+|__builtin_nontemporal_store|\bst\.global\.cs\b|__stcs",
    ),
    Technique(
        tag="prefetch",
        meaning="ask for data before they are needed",
        family="memory",
        signs=r"__builtin_prefetch|_mm_prefetch|prefetch\.global",
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
        signs=r"__shared__|\bthreadgroup\b|__local\b|local_accessor|work_group_static",
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
        signs=r"\bfloat[24]\b|\bhalf2\b|\buint4\b|\bvload\d+\b|ld\.global\.v\d",
    ),
    Technique(
        tag="warp_reduce",
        meaning="reduce within a sub-group by shuffles",
        family="parallelism",
        signs=r"__shfl\w*|sub_group_reduce\w*|simd_(sum|max|min)\b|reduce_over_group",
    ),
    Technique(
        tag="matrix_unit",
        meaning="use the device's matrix instructions",
        family="arithmetic",
        signs=r"\bwmma\b|\bmma\.sync|\bmfma\b|\bwgmma\b|simdgroup_matrix|\bdpas\b|\btl\.dot\b|_tile_\w+",
    ),
    Technique(
        tag="async_copy",
        meaning="copy into near memory while computing",
        family="memory",
        signs=r"cp\.async|memcpy_async|__pipeline_\w+|async_work_group_copy",
    ),
    Technique(
        tag="persistent",
        meaning="keep work groups resident and let them fetch work",
        family="launch",
    ),
    Technique(
        tag="low_precision",
        meaning="compute or store in a narrower type than declared",
        family="arithmetic",
        signs=r"\b__half\b|\b_Float16\b|bfloat16|\bhalf\b|__bf16",
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
    Technique(tag="lookup", meaning="a table instead of arithmetic", family="arithmetic"),
    Technique(
        tag="dispatch_shape",
        meaning="choose between kernels by the shape in hand",
        family="launch",
    ),
)

TECHNIQUES: dict[str, Technique] = {t.tag: t for t in _ALL}

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def detect(source: str, language: str) -> tuple[str, ...]:
    r"""Tags whose signs stand in the code, in the order of the vocabulary.

    `source` is a candidate's module, whose kernels are string constants, or a bare kernel.

    >>> kernel = "// prefetch: __builtin_prefetch(p)\n_mm512_stream_ps(p, v);"
    >>> detect(f"K = kernels({kernel!r})", "cpp")
    ('vectorize', 'streaming_store')
    """
    code = source if language == "triton" else "\n".join(_kernels(source))
    return tuple(t.tag for t in _ALL if t.signs and re.search(t.signs, code))


def _kernels(source: str) -> list[str]:
    """The kernel texts without comments; a floor division of the module is no comment."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [_COMMENT.sub(" ", source)]
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    kernels = [t for t in texts if isinstance(t, str) and "(" in t]
    # A bare kernel may by chance be Python, too.
    return [_COMMENT.sub(" ", t) for t in kernels or [source]]
