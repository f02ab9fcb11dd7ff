"""CUDA C in the launcher and in the compile phase; what needs a device is marked `gpu`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from data.records import BuildResult, Device, Operator
from targets import TARGETS
from targets.brief import EXAMPLES
from targets.nvidia import TARGET as NVIDIA
from targets.nvidia_launch import CUDA
from targets.nvrtc import Nvrtc, command
from targets.remote.build import build
from targets.remote.compiler import installed, library_folder
from targets.remote.kforge_launch import Kernels, kernels, signatures, source_hash

H200 = Device(name="h200", target="nvidia", vendor="nvidia", arch="sm_90a")
OPERATOR = Operator(name="any", source="")
SCALE = r"""
#include <cuda_fp16.h>
#include <cstdint>
extern "C" __global__ void __launch_bounds__(256) scale(const float* __restrict__ x, float* y,
                                                        int64_t n, float by) {
  extern __shared__ float held[];
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  held[threadIdx.x] = i < n ? x[i] : INFINITY;
  __syncthreads();
  if (i < n) y[i] = held[threadIdx.x] * by;
}
extern "C" __device__ void no(int n) {}
extern "C" __global__ void wide(const float4* x, __half* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = __float2half(x[threadIdx.x].y);
}
"""
needs_nvrtc = pytest.mark.skipif(
    Nvrtc.where() is None, reason="needs NVRTC: pip install nvidia-cuda-nvrtc"
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def _candidate(code: str) -> str:
    return f"from kforge_launch import kernels\nK = kernels(r'''{code}''', language='cuda')\n"


def _build(cache: Path, source: str, device: Device = H200) -> BuildResult:
    return build(OPERATOR, source, device, zygote=None, cache=cache)


def test_kernels_are_told_from_device_functions() -> None:
    """Words of the device compiler do not hide a kernel; a device function is none."""
    assert signatures(CUDA.as_c(SCALE)) == {
        "scale": ("const float* x", "float* y", "int64_t n", "float by"),
        "wide": ("const float4* x", "__half* y", "int n"),
    }


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"])
def test_every_architecture_compiles_without_a_device(cache: Path, arch: str) -> None:
    """The compile phase needs no GPU; the figures of ptxas are there for each architecture."""
    result = _build(cache, _candidate(SCALE), Device(**_fields(arch)))
    assert result.ok, result.detail
    assert f"--gpu-architecture={arch}" in result.command
    values = {m.name: m.value for m in result.metrics}
    assert 4 <= values["registers_per_thread"] <= 64
    assert values["spill_load_bytes"] == values["stack_bytes"] == 0
    assert [r.partition(":")[0] for r in result.remarks] == ["wide", "scale"]


def _fields(arch: str) -> dict[str, Any]:
    return {"name": arch, "target": "nvidia", "vendor": "nvidia", "arch": arch}


@needs_nvrtc
def test_cubin_is_found_by_the_hash_of_its_source(cache: Path) -> None:
    """The run phase finds what was compiled by content; another architecture is another folder."""
    assert _build(cache, _candidate(SCALE)).ok
    folder = library_folder(cache, H200)
    product = folder / f"{source_hash('cuda', SCALE)}.cubin"
    assert product.read_bytes().startswith(b"\x7fELF")
    assert library_folder(cache, Device(**_fields("sm_100a"))) != folder


@needs_nvrtc
def test_example_of_the_prompt_compiles(cache: Path) -> None:
    """What a generator is shown is accepted by the compiler, without a spill."""
    result = _build(cache, (EXAMPLES / "cuda" / "kernel.py").read_text())
    assert result.ok, result.detail
    assert result.diagnostics == ()
    assert {m.name: m.value for m in result.metrics}["spill_store_bytes"] == 0


@needs_nvrtc
@pytest.mark.parametrize(
    ("code", "line", "message", "quoted"),
    [
        (SCALE.replace("* by;", "* bye;"), 10, 'identifier "bye" is undefined', "if (i < n)"),
        ("\n#include <absent.h>\n", 2, "cannot open source file", "#include <absent.h>"),
        (SCALE.replace("held[];", "held[];\n static_assert(sizeof(int) == 2);"), 7, "assert", ""),
    ],
)
def test_errors_of_nvrtc_are_located(
    cache: Path, code: str, line: int, message: str, quoted: str
) -> None:
    """A source that does not compile gives its own line, the message and the source line."""
    result = _build(cache, _candidate(code))
    assert not result.ok
    first = result.diagnostics[0]
    assert (first.file, first.line, first.severity) == ("kernel.cu", line, "error")
    assert message in first.message
    assert first.source_line.startswith(quoted)
    assert result.detail == f"kernel.cu:{line}: {first.message}"


@needs_nvrtc
def test_error_of_the_assembler_is_an_error(cache: Path) -> None:
    """What only ptxas finds, such as too much shared memory, is told although it has no line."""
    code = (
        'extern "C" __global__ void f(float* y) { __shared__ float s[99999]; y[0] = s[*(int*)y]; }'
    )
    result = _build(cache, _candidate(code))
    assert not result.ok
    assert "uses too much shared data" in result.detail


@needs_nvrtc
@pytest.mark.parametrize(
    "code",
    ['#include "{file}"', '#line 1 "{file}"\nnonsense;', '#include "/proc/self/environ"\n'],
)
def test_source_cannot_read_files_of_the_machine(
    cache: Path, tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No text of a private file or of the environment reaches the result."""
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    secret = tmp_path / "private.txt"
    secret.write_text("hunter2 = password\n" * 3)
    result = _build(cache, _candidate(code.format(file=secret)))
    assert not result.ok
    assert "hunter2" not in repr(result)


def test_kernel_for_another_device_is_refused(cache: Path) -> None:
    """A C++ kernel on a GPU, or a CUDA kernel on the processor, is a build failure that says so."""
    plain = "from kforge_launch import kernels\nkernels('')\n"
    result = _build(cache, plain)
    assert not result.ok
    assert "a kernel in 'cpp' cannot run on h200; known: cuda" in result.detail


@pytest.mark.skipif("nvcc" not in installed(NVIDIA), reason="needs nvcc of the CUDA toolkit")
def test_nvcc_is_the_other_route(tmp_path: Path) -> None:
    """The toolkit makes the same kind of file, and its report reads the same."""
    import subprocess

    (tmp_path / "kernel.cu").write_text(SCALE)
    asked = NVIDIA.compile_command(
        tmp_path / "kernel.cu", tmp_path / "k.cubin", language="cuda", compiler="nvcc", arch="sm_90"
    )
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")
    report = NVIDIA.parse_report(done.stderr)
    assert {m.name for m in report.metrics} >= {"registers_per_thread", "shared_bytes"}


def test_command_names_all_that_the_product_depends_on() -> None:
    """The architecture and the standard stand in the command, fast-math does not."""
    words = command(Path("k.cu"), Path("k.cubin"), "sm_90a")
    assert words[0] == "nvrtc"
    assert {"--gpu-architecture=sm_90a", "--std=c++17"} <= set(words)
    assert not any("fast" in word for word in words)


def test_registry_knows_the_language() -> None:
    """A device of the target takes CUDA C and Triton."""
    assert TARGETS["nvidia"].languages == ("cuda", "triton")


# --- on a device -------------------------------------------------------------------------------

on_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


class TestOnDevice:
    """Compile, load and launch for real."""

    pytestmark = on_gpu

    @pytest.fixture(autouse=True)
    def own_cache(self, cache: Path) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KFORGE_LAUNCH_CACHE", str(cache))
            yield

    @pytest.fixture
    def kernel(self) -> Kernels:
        return kernels(SCALE, language="cuda")

    @pytest.mark.parametrize("shared", [1024, 100 << 10])
    def test_kernels_compute_what_they_say(self, kernel: Kernels, shared: int) -> None:
        """Pointers, numbers and dynamic shared memory, also above 48 KiB, arrive as declared."""
        x, y = torch.randn(1000, device="cuda"), torch.empty(1000, device="cuda")
        kernel.scale(grid=(4,), block=256, args=(x, y, x.numel(), 3), shared=shared)
        torch.testing.assert_close(y, 3 * x)

    def test_vector_and_half_pointers_arrive(self, kernel: Kernels) -> None:
        """`float4*` takes float32, `__half*` float16."""
        x = torch.randn(32, device="cuda")
        y = torch.empty(8, device="cuda", dtype=torch.float16)
        kernel.wide(grid=(1,), block=(32,), args=(x, y, 8))
        torch.testing.assert_close(y, x[1::4].half())

    def test_launch_follows_torchs_stream(self, kernel: Kernels) -> None:
        """A kernel runs on the stream that is current, after what is there."""
        x, y = torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)
            x.mul_(2)
            kernel.scale(grid=(4096,), block=256, args=(x, y, x.numel(), 1), shared=1024)
        stream.synchronize()
        assert y.min().item() == y.max().item() == 2.0

    def test_launch_is_captured_by_a_graph(self, kernel: Kernels) -> None:
        """A captured launch runs again at each replay."""
        x, y = torch.ones(256, device="cuda"), torch.empty(256, device="cuda")
        kernel.scale(grid=(1,), block=256, args=(x, y, 256, 1), shared=1024)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernel.scale(grid=(1,), block=256, args=(x, y, 256, 5), shared=1024)
        x.fill_(7)
        graph.replay()
        torch.cuda.synchronize()
        assert y[0].item() == 35.0

    @pytest.mark.parametrize(
        ("launch", "error", "words"),
        [
            ({"grid": (1,), "block": (2048,)}, RuntimeError, "scale grid=.*block=.2048.*INVALID"),
            ({"grid": (0,), "block": (32,)}, ValueError, "grid must be one to three positive"),
            ({"grid": (1,), "block": None}, ValueError, "block must be one to three positive"),
            ({"grid": (1,), "block": 32, "shared": 1 << 30}, RuntimeError, "1073741824 bytes"),
        ],
    )
    def test_bad_launch_says_what_was_asked(
        self, kernel: Kernels, launch: dict[str, Any], error: type[Exception], words: str
    ) -> None:
        """A launch that the driver refuses raises with its sizes and the driver's word."""
        x, y = torch.ones(32, device="cuda"), torch.empty(32, device="cuda")
        with pytest.raises(error, match=words):
            kernel.scale(args=(x, y, 32, 1), **launch)
        kernel.scale(grid=1, block=32, args=(x, y, 32, 2), shared=128)
        assert y[0].item() == 2.0

    def test_tensor_elsewhere_is_refused(self, kernel: Kernels) -> None:
        """A CPU tensor is no address for a device."""
        with pytest.raises(TypeError, match=r"'x'.*must be a CUDA tensor, not one on cpu"):
            kernel.scale(grid=1, block=32, args=(torch.ones(32), None, 32, 1))

    def test_compiler_message_is_the_error(self) -> None:
        """Standalone, a source that does not compile raises with the compiler's own text."""
        with pytest.raises(RuntimeError, match="nonsense"):
            kernels('extern "C" __global__ void f() { nonsense; }', language="cuda")

    def test_example_is_right(self) -> None:
        """The one-shot example that generators see computes its operator."""
        space: dict[str, Any] = {}
        for path in (EXAMPLES / "cpu" / "operator.py", EXAMPLES / "cuda" / "kernel.py"):
            text = path.read_text().replace(
                "from kforge_launch", "from targets.remote.kforge_launch"
            )
            exec(compile(text, str(path), "exec"), space)
        for rows, columns in ((7, 1000), (64, 33), (1, 1)):
            reference = space["Model"](columns).cuda()
            candidate = space["ModelNew"](columns).cuda()
            state = {k: torch.randn_like(v) for k, v in reference.state_dict().items()}
            reference.load_state_dict(state)
            candidate.load_state_dict(state)
            x = torch.randn(rows, columns, device="cuda")
            expected = reference.double()(x.double())
            torch.testing.assert_close(candidate(x).double(), expected, rtol=1e-5, atol=1e-6)
