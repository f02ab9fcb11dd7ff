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
