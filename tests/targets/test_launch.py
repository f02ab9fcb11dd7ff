import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from targets.remote import kforge_launch
from targets.remote.kforge_launch import Kernels, kernels, signatures

SOURCE = r"""
#include <cstdint>
template <class T> static T twice(T x) { return 2 * x; }
extern "C" void scale(const float* x, float* y, long n, float by) {
  for (long i = 0; i < n; ++i) y[i] = twice(x[i]) * by / 2;
}
extern "C" {
void count(const int64_t* __restrict x, int32_t* y, int n, bool negate) {
  y[0] = 0;
  for (int i = 0; i < n; ++i) y[0] += negate ? -x[i] : x[i];
}
}
"""


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Standalone mode compiles into a folder of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KFORGE_LAUNCH_CACHE", str(tmp_path_factory.mktemp("launch")))
        yield


@pytest.fixture(scope="module")
def kernel(own_cache: None) -> Kernels:
    return kernels(SOURCE)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('extern "C" void f(float *x) {}', {"f": ("float *x",)}),
        ('extern "C"\nvoid f(\n  const float* x, // "C" {\n  long n) {}', None),
        ('extern "C" { void f(const float* x, long n) { if (n) { } } void g() {} }', None),
        ('extern "C" { struct S { int a; }; static void h(int a) {} void f(int n) {} }', None),
        ('extern "C" void f(void) {}', {"f": ()}),
        ('// extern "C" void no(int n) {}\n/* extern "C" void no(int n) {} */', {}),
        ('const char* s = "extern \\"C\\" void no(int n) {}";', {}),
        ('const char* s = R"x(extern "C" void no(int n) {})x";', {}),
        ('#define F(x) \\\n  extern "C" void no(int n) {}\nextern "C" void f(int n) {}', None),
        ('extern "C" int no(int n) { return n; }', {}),
        ('extern "C" void f(float x[4], double y = 1.0) {}', {"f": ("float x[4]", "double y")}),
        ('extern "C" __attribute__((visibility("default"))) void f(int n) {}', {"f": ("int n",)}),
        ('extern "C" void f(int n) noexcept {}', {"f": ("int n",)}),
        ('extern "C" void f(int);\nvoid f(int n) {}', {"f": ("int",)}),
        ('extern "C" void f(char c) { c = \'{\'; }\nextern "C" void g() {}', None),
    ],
)
def test_signature_is_read_from_real_c(
    source: str, expected: dict[str, tuple[str, ...]] | None
) -> None:
    """Comments, strings, blocks, attributes and line breaks do not hide or invent a kernel."""
    found = signatures(source)
    if expected is None:
        assert "no" not in found
        assert "f" in found
        assert not any('"' in p or "//" in p for ps in found.values() for p in ps)
    else:
        assert found == expected


@pytest.mark.parametrize("source", ['extern "C" {', 'extern "C" void f(', 'extern "C"', "((((", ""])
def test_broken_source_has_no_kernels(source: str) -> None:
    """Text that is no C is no fault of the parser: the compiler will say what is wrong."""
    assert signatures(source) == {}


def test_kernels_compute_what_they_say(kernel: Kernels) -> None:
    """Pointers, all kinds of scalars and a block of functions arrive as declared."""
    x, y = torch.randn(100), torch.empty(100)
    kernel.scale(args=(x, y, x.numel(), 3))
    torch.testing.assert_close(y, 3 * x)
    total = torch.empty(1, dtype=torch.int32)
    kernel.count(args=(torch.arange(5), total, 5, True))
    assert total.item() == -10


def test_c_language_needs_no_linkage() -> None:
    """Plain C has no `extern "C"`; static functions stay private."""
    found = signatures(
        "static void no(int n) {}\nvoid f(float* restrict x, int n) {}", language="c"
    )
    assert found == {"f": ("float* restrict x", "int n")}


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((torch.zeros(4, dtype=torch.int64), torch.zeros(4), 4, 1.0), TypeError, "'x'.*int64"),
        ((torch.zeros(4), torch.zeros(4, dtype=torch.float64), 4, 1.0), TypeError, "'y'.*float64"),
        ((torch.zeros(4, 4).t(), torch.zeros(16), 16, 1.0), ValueError, "'x'.*contiguous"),
        ((torch.zeros(4, device="meta"), torch.zeros(4), 4, 1.0), TypeError, "'x'.*CPU.*meta"),
        (([1.0], torch.zeros(4), 4, 1.0), TypeError, "'x'.*tensor, not list"),
        ((torch.zeros(4), torch.zeros(4), 4.5, 1.0), TypeError, "'n'.*long.*float"),
        ((torch.zeros(4), torch.zeros(4), torch.zeros(4), 1.0), TypeError, "'n'"),
        ((torch.zeros(4), torch.zeros(4), 1 << 80, 1.0), OverflowError, "'n'.*does not fit"),
        ((torch.zeros(4), torch.zeros(4), 4, "x"), (TypeError, ValueError), "by|float"),
        ((torch.zeros(4), torch.zeros(4), 4), TypeError, "takes 4 arguments.*got 3"),
    ],
)
def test_wrong_argument_is_refused_by_name(
    kernel: Kernels, args: tuple[Any, ...], error: type[Exception], words: str
) -> None:
    """An argument that the kernel would misread never reaches it, and the message names it."""
    with pytest.raises(error, match=words):
        kernel.scale(args=args)


def test_int_that_would_be_cut_is_refused(kernel: Kernels) -> None:
    """2**32 for an `int` would silently become 0."""
    with pytest.raises(OverflowError, match="'n': 4294967296 does not fit"):
        kernel.count(args=(torch.arange(5), torch.empty(1, dtype=torch.int32), 1 << 32, False))


def test_unknown_kernel_lists_the_known_ones(kernel: Kernels) -> None:
    """A wrong name says which functions there are."""
    with pytest.raises(AttributeError, match="found: scale, count"):
        kernel.scala  # noqa: B018


@pytest.mark.parametrize("parameter", ["float** x", "const float& x", "std::vector<float> x"])
def test_parameter_that_cannot_be_passed_is_refused(parameter: str) -> None:
    """Pointers to pointers, references and classes have no Python counterpart."""
    source = f'#include <vector>\nextern "C" void f({parameter}) {{ }}'
    with pytest.raises(TypeError, match=r"'x'.*cannot pass"):
        kernels(source).f(args=(1,))


def test_compiler_message_is_the_error() -> None:
    """Standalone, a source that does not compile raises with the compiler's own text."""
    with pytest.raises(RuntimeError, match="nonsense"):
        kernels('extern "C" void f() { nonsense; }')


def test_unknown_language_is_refused() -> None:
    """Only what can be built here is accepted."""
    with pytest.raises(ValueError, match=r"'fortran'.*known: cpp, c\b"):
        kernels("", language="fortran")


RECORD = """
import sys
sys.path.insert(0, sys.argv[1])
import kforge_launch
sources = kforge_launch.record()
K = kforge_launch.kernels('extern "C" void f() { does not compile }')
assert sources == [("cpp", 'extern "C" void f() { does not compile }')]
try:
    K.f(args=())
except RuntimeError as error:
    print(error)
assert "torch" not in sys.modules
kforge_launch._recorded = None
kforge_launch.load_from("/nowhere")
try:
    kforge_launch.kernels("another")
except RuntimeError as error:
    print(error)
"""


def test_record_compiles_nothing_and_load_finds_only_what_was_recorded(tmp_path: Path) -> None:
    """Recorded sources are text; in load mode an unknown source is an error, not a compiler run."""
    shutil.copy(kforge_launch.__file__, tmp_path)  # alone, as an export carries it
    command = [sys.executable, "-I", "-c", RECORD, str(tmp_path)]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "f: kernels do not run while the module is recorded",
        "this kernel source was not there when the module was recorded",
    ], done.stderr
