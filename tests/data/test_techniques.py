"""The closed vocabulary and the rules that find its tags in code."""

import pytest

from data.techniques import TECHNIQUES, detect


def test_every_tag_has_a_meaning_and_a_known_family() -> None:
    """Advice and queries group by tag: each is explained and belongs to one of five families."""
    families = {"parallelism", "memory", "arithmetic", "algorithm", "launch"}
    assert len(TECHNIQUES) >= 28
    assert {t.family for t in TECHNIQUES.values()} <= families
    assert all(t.meaning and t.tag == tag for tag, t in TECHNIQUES.items())


CASES = [
    ("#pragma omp simd\nfor (;;) y[i] = x[i];", "vectorize"),
    ("typedef float V __attribute__((vector_size(64)));", "vectorize"),
    ("#pragma omp parallel for\nfor (;;) f(i);", "parallel_outer"),
    ("#pragma omp for schedule(static)\nfor (;;) f(i);", "parallel_outer"),
    ("#pragma GCC unroll 4\nfor (;;) f(i);", "unroll"),
    ("_mm512_stream_ps(p, v);", "streaming_store"),
    ("__builtin_prefetch(p + 64);", "prefetch"),
    ("V t = c * 1.44269504f + magic;", "fast_math_poly"),
    ("a_v1[u] = a_v1[u] + v0;", "multi_accumulator"),
    ("__shared__ float s[256]; f();", "shared_memory"),
]


@pytest.mark.parametrize(("code", "tag"), CASES)
def test_a_sign_in_the_code_is_found(code: str, tag: str) -> None:
    """The technique is detected in a bare kernel and in a module that holds it as a string."""
    assert tag in detect(code, "cpp")
    assert tag in detect(f"K = kernels({code + ' f();'!r})", "cpp")


@pytest.mark.parametrize(("code", "tag"), CASES)
def test_a_comment_is_no_technique(code: str, tag: str) -> None:
    """Words in comments do not count: a generator may not earn a tag by naming it."""
    commented = "\n".join(f"// {line}" for line in code.splitlines())
    assert tag not in detect(f"{commented}\nf();", "cpp")


def test_plain_code_has_no_technique() -> None:
    """A naive loop shows nothing, nor does unrolling by one."""
    assert detect("for (long i = 0; i < n; ++i) y[i] = x[i] + 1.0f;", "cpp") == ()
    assert detect("#pragma GCC unroll 1\nfor (;;) f(i);", "cpp") == ()


HITS = [
    ("cuda", "__global__ void f() { int row = blockIdx.x; }", "parallel_outer"),
    ("cuda", "for (int c = threadIdx.x; c < n; c += blockDim.x) s += x[c];", "parallel_inner"),
    ("cuda", "float4 v = reinterpret_cast<const float4*>(x)[i];", "vector_load"),
    ("cuda", "s += __shfl_xor_sync(0xffffffff, s, 16);", "warp_reduce"),
    ("cuda", "atomicAdd(y, s);", "split_reduction"),
    ("cuda", 'asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(d));', "async_copy"),
    ("cuda", 'asm("wgmma.mma_async.sync.aligned.m64n64k16" :::);', "matrix_unit"),
    ("cuda", "nvcuda::wmma::mma_sync(c, a, b, c);", "matrix_unit"),
    ("cuda", "for (int t = blockIdx.x; t < tiles; t += gridDim.x) work(t);", "persistent"),
    ("cuda", "y[i] = __expf(x[i]);", "fast_intrinsic"),
    ("cuda", "__global__ void __launch_bounds__(256, 2) f() {}", "launch_bound"),
    ("cuda", "__shared__ float tile[32][32 + 1];", "bank_padding"),
    ("cuda", "{ float sums[4][8]; f(sums); }", "register_tile"),
    ("cuda", "#pragma unroll\nfor (;;) f();", "unroll"),
    ("cuda", "__stcs(y + i, v);", "streaming_store"),
    ("hip", "c = __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0);", "matrix_unit"),
    ("hip", "__attribute__((amdgpu_waves_per_eu(4))) __global__ void f() {}", "launch_bound"),
    ("hip", "extern __shared__ float lds[]; f();", "shared_memory"),
    ("opencl", "__local float s[64]; f();", "shared_memory"),
    ("opencl", "size_t r = get_group_id(0);", "parallel_outer"),
    ("opencl", "s = sub_group_reduce_add(s);", "warp_reduce"),
    ("opencl", "float4 v = vload4(i, x);", "vector_load"),
    ("opencl", "y = native_exp(x);", "fast_intrinsic"),
    ("opencl", "event_t e = async_work_group_copy(l, g, n, 0);", "async_copy"),
    ("opencl", "__attribute__((opencl_unroll_hint(4))) for (;;) f();", "unroll"),
    ("sycl", "float s = sycl::reduce_over_group(g, v, sycl::plus<>());", "warp_reduce"),
    ("sycl", "sycl::local_accessor<float, 1> tile(n, h);", "shared_memory"),
    ("sycl", "joint_matrix_mad(sg, c, a, b, c);", "matrix_unit"),
    ("sycl", "auto row = it.get_group(0); f(row);", "parallel_outer"),
    ("msl", "threadgroup float s[256]; f();", "shared_memory"),
    ("msl", "float s = simd_sum(v);", "warp_reduce"),
    ("msl", "kernel void f(uint r [[threadgroup_position_in_grid]]) {}", "parallel_outer"),
    ("msl", "simdgroup_multiply_accumulate(d, a, b, c);", "matrix_unit"),
    ("msl", "y = fast::exp(x);", "fast_intrinsic"),
    ("msl", "kernel void f(device half *a [[buffer(0)]]) {}", "low_precision"),
    ("cuda", "{ half sums[4]; f(sums); }", "low_precision"),
    ("cuda", "f((half)x);", "low_precision"),
    ("triton", "row = tl.program_id(0)", "parallel_outer"),
    ("triton", "acc = tl.dot(a, b, acc)", "matrix_unit"),
    ("triton", "f[grid](x, y, num_stages=3)", "async_copy"),
    ("triton", "for t in range(pid, tiles, tl.num_programs(0)): pass", "persistent"),
    ("triton", "tl.atomic_add(y, s)", "split_reduction"),
    ("triton", "for k in tl.static_range(4): pass", "unroll"),
    ("triton", "a = a.to(tl.float16)", "low_precision"),
]


@pytest.mark.parametrize(("language", "code", "tag"), HITS)
def test_each_languages_sign_is_found(language: str, code: str, tag: str) -> None:
    """CUDA, HIP, OpenCL, SYCL, Metal and Triton are read in their own words."""
    assert tag in detect(code, language)
    if language != "triton":
        assert tag in detect(f"K = kernels({code + ' f();'!r}, language={language!r})", language)


@pytest.mark.parametrize(("language", "code", "tag"), HITS)
def test_words_that_are_no_code_earn_no_tag(language: str, code: str, tag: str) -> None:
    """Comments, strings and docstrings may name anything."""
    line = " ".join(code.split())
    if language == "triton":
        prose = f'def f():\n    """{line}"""\n    x = 1  # {line}\n'
    else:
        quoted = line.replace("\\", "").replace('"', "")
        prose = f'/* {line} */ const char* s = "{quoted}"; // {line}\nvoid f() {{ g(s); }}'
        module = f'class A:\n    """{quoted} {{}};"""\nK = kernels("void f() {{ }}")\n'
        assert tag not in detect(module, language)
    assert tag not in detect(prose, language)


MISSES = [
    ("cuda", "for (; i < n; i += blockDim.x * gridDim.x) y[i] = x[i];", "persistent"),
    ("cuda", "for (; i < n; i += blockDim.x * gridDim.x) y[i] = x[i];", "parallel_inner"),
    ("cuda", "__shared__ float tile[16][16]; f();", "register_tile"),
    ("cuda", "__shared__ float tile[16][16]; f();", "bank_padding"),
    ("cuda", "#pragma unroll 1\nfor (;;) f();", "unroll"),
    ("cuda", "#pragma unroll(1)\nfor (;;) f();", "unroll"),
    ("cuda", "float half_width = 0.5f; f(half_width);", "low_precision"),
    ("cuda", "void f(long half) { y[half] = 2 * half * x[i + half]; }", "low_precision"),
    ("cuda", "y[i] = expf(x[i]);", "fast_intrinsic"),
    ("cuda", "int my_float4_count = 0; f();", "vector_load"),
    ("opencl", "int local_size = get_local_size(0); f();", "shared_memory"),
    ("msl", "kernel void f(uint t [[threadgroup_position_in_grid]]) {}", "shared_memory"),
    ("triton", "f[grid](x, y, num_stages=1)", "async_copy"),
]


@pytest.mark.parametrize(("language", "code", "tag"), MISSES)
def test_what_only_looks_alike_is_not_found(language: str, code: str, tag: str) -> None:
    """A sign needs the whole word in its place."""
    assert tag not in detect(code, language)


def test_vendors_have_their_own_names() -> None:
    """Hardware features carry the word of each vendor, so that advice can be translated."""
    named = [t for t in TECHNIQUES.values() if t.names]
    assert len(named) >= 8
    assert all({"nvidia", "amd", "intel", "apple"} <= set(t.names) for t in named)


def test_text_that_never_ends_is_read_to_its_end() -> None:
    """Open strings and comments of a broken kernel are no fault."""
    for code in ('f("', "/* open", 'R"x(', "'", "asm(", '"""', "f(" * 500):
        assert detect(code, "cuda") == ()
        assert isinstance(detect(code, "triton"), tuple)
