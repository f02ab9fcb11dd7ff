"""WGSL on any Vulkan device by wgpu: compiled by naga, run here on Mesa's lavapipe (a processor).

The whole vendor in one file, launcher half included: `docs/new-chip.md` goes through it.
"""

import ctypes
import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from data.errors import MachineError
from data.records import (
    Brief,
    Device,
    Diagnostic,
    Profile,
)
from targets import diagnostics
from targets.base import PROCESSOR, Capabilities, Program, Report
from targets.brief import brief
from targets.closure import alone
from targets.remote.kforge_launch import Half

WGSL = "wgsl"
DRIVER = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
WGSL_INSTALL = "pip install wgpu and apt-get install mesa-vulkan-drivers"
STORAGE, UNIFORM, COPY_SRC, COPY_DST = 0x80, 0x40, 0x4, 0x8
"""WebGPU's bits of what a buffer is for."""
NUMBERS = {"f32": "float", "i32": "int", "u32": "unsigned int"}
_ENTRY = re.compile(r"@compute\b[^{}]*?\bfn\s+(?P<name>\w+)\s*\(")
_BINDING = re.compile(
    r"@group\(0\)\s*@binding\((?P<at>\d+)\)\s*var\s*<\s*(?P<space>storage|uniform)"
    r"(?:\s*,\s*(?P<access>read|read_write))?\s*>\s*(?P<name>\w+)\s*:\s*(?P<kind>[^;]+);"
)
_PLACE = re.compile(r"┌─ \S*?:(?P<line>\d+):(?P<column>\d+)")
_MESSAGE = re.compile(
    r"(?:parsing|validation) error: (?P<text>[^\n]+)|^Shader validation error: *$"
)


# --- the launcher's half: standard library, torch's tensors, wgpu ---------------------------------


def wgpu() -> Any:
    """The vendor's package, which only a machine with such a device needs."""
    return importlib.import_module("wgpu")


@functools.cache
def gpu() -> Any:
    """The first device that wgpu names. RuntimeError without one."""
    os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")  # noqa: S108  (Mesa complains without)
    adapters = wgpu().gpu.enumerate_adapters_sync()
    if not adapters:
        raise RuntimeError(f"no Vulkan device on this machine: {WGSL_INSTALL}")
    return adapters[0].request_device_sync()


def bindings(source: str) -> list[re.Match[str]]:
    """The variables of group 0 in the order of their numbers."""
    return sorted(_BINDING.finditer(source), key=lambda m: int(m["at"]))


def complaint(source: str, name: str = "kernel.wgsl") -> str:
    """The compiler's text as clang would print it; empty when it takes the source."""
    try:
        gpu().create_shader_module(code=source)
    except wgpu().GPUValidationError as error:
        text = str(error)
        place, said = _PLACE.search(text), _MESSAGE.search(text)
        where = f"{name}:{place['line']}:{place['column']}" if place else f"{name}:1:1"
        message = (said and said["text"]) or text.strip().splitlines()[-1]
        return f"{where}: error: {message}\n{text}"
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Shader:
    """A source with its compiled entry points."""

    source: str
    pipelines: dict[str, Any] = field(default_factory=dict)

    def pipeline(self, name: str) -> Any:
        """Compiled when it is first launched."""
        if name not in self.pipelines:
            stage = {"module": gpu().create_shader_module(code=self.source), "entry_point": name}
            made = gpu().create_compute_pipeline(layout=self._layout(), compute=stage)
            self.pipelines[name] = made
        return self.pipelines[name]

    def _layout(self) -> Any:
        """One group of all variables, whether or not this entry point uses them."""
        entries = [
            {"binding": int(m["at"]), "visibility": 4, "buffer": {"type": _role(m)}}
            for m in bindings(self.source)
        ]
        group = gpu().create_bind_group_layout(entries=entries)
        return gpu().create_pipeline_layout(bind_group_layouts=[group])


def _role(variable: re.Match[str]) -> str:
    if variable["space"] == "uniform":
        return "uniform"
    return "storage" if variable["access"] == "read_write" else "read-only-storage"


class WgslHalf:
    """WGSL: tensors are copied to the device and back with each launch."""

    languages, place = (WGSL,), "cpu"
    source, product = "kernel.wgsl", "kernel.wgslbin"
    pointers = dict[str, tuple[str, ...]](float4=("float32",))  # noqa: RUF012 (a constant)

    def as_c(self, source: str) -> str:
        """Each entry point takes the variables of group 0 in the order of their numbers."""
        text = re.sub(r"//[^\n]*", " ", source)
        parameters = ", ".join(map(self._parameter, bindings(text)))
        names = [m["name"] for m in _ENTRY.finditer(text)]
        return "\n".join(f'extern "C" void {name}({parameters});' for name in names)

    def _parameter(self, variable: re.Match[str]) -> str:
        kind = variable["kind"].strip()
        array = re.fullmatch(r"array\s*<\s*(?:vec4\s*<\s*)?(\w+?)(?:\s*>)?\s*>", kind)
        if variable["space"] == "uniform":
            return f"{NUMBERS.get(kind, kind)} {variable['name']}"
        element = array[1] if array else kind
        const = "" if variable["access"] == "read_write" else "const "
        return f"{const}{NUMBERS.get(element, element)}* {variable['name']}"

    def hollow(self, language: str, kernels: Mapping[str, Sequence[str]]) -> str:  # noqa: ARG002
        """Empty: the variables of a kernel are not in its parameters."""
        return ""

    def tag(self) -> str:
        return "-" + version("wgpu")

    def compile(self, language: str, source: Path, product: Path) -> None:  # noqa: ARG002 (one)
        """The source itself, once naga took it. RuntimeError with the compiler's text."""
        if said := complaint(source.read_text()):
            raise RuntimeError(said)
        product.write_text(source.read_text())

    def load(self, product: Path) -> Shader:
        return Shader(product.read_text())

    def bind(self, loaded: Shader, name: str, kinds: Sequence[Any]) -> Callable[..., None]:
        def launch(
            values: Sequence[Any], grid: Any, block: Any, shared: int, args: Sequence[Any]
        ) -> None:
            if shared or block is not None:
                raise ValueError(f"{name}: WGSL says its block and its memory itself")
            variables = bindings(loaded.source)
            given = zip(variables, values, kinds, args, strict=True)
            buffers = [_buffer(*each) for each in given]
            _dispatch(loaded.pipeline(name), variables, buffers, grid)
            for variable, buffer, tensor in zip(variables, buffers, args, strict=True):
                if variable["access"] == "read_write":
                    _fetch(buffer, tensor)

        return launch


def _buffer(variable: re.Match[str], value: Any, kind: Any, given: Any) -> Any:
    """A copy of a tensor or of a number on the device."""
    device = gpu()
    if variable["space"] == "uniform":
        return device.create_buffer_with_data(data=bytes(kind(value)), usage=UNIFORM | COPY_DST)
    data = (ctypes.c_char * (given.numel() * given.element_size())).from_address(value)
    return device.create_buffer_with_data(data=data, usage=STORAGE | COPY_SRC | COPY_DST)


def _dispatch(
    pipeline: Any, variables: Sequence[re.Match[str]], buffers: Sequence[Any], grid: Any
) -> None:
    device = gpu()
    entries = [
        {"binding": int(m["at"]), "resource": {"buffer": b, "offset": 0, "size": b.size}}
        for m, b in zip(variables, buffers, strict=True)
    ]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    x, y, z = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
    work.dispatch_workgroups(x, y, z)
    work.end()
    device.queue.submit([encoder.finish()])


def _fetch(buffer: Any, tensor: Any) -> None:
    """Waits for the device and copies what it wrote to where the tensor lies."""
    data = gpu().queue.read_buffer(buffer)
    ctypes.memmove(tensor.data_ptr(), bytes(data), tensor.numel() * tensor.element_size())


# --- the target: no input, no output ------------------------------------------------------------


def _where() -> Path | None:
    """The Vulkan driver, where wgpu is installed too."""
    found = importlib.util.find_spec("wgpu") is not None and Path(DRIVER).exists()
    return Path(DRIVER) if found else None


def _version() -> str:
    return f"wgpu {version('wgpu')}"


def compile_wgsl(words: Sequence[str]) -> int:
    """Compiles in this process; 0 when the file was written."""
    product, source = words[-2:]
    try:
        WgslHalf().compile(WGSL, Path(source), Path(product))
    except RuntimeError as error:
        sys.stderr.write(str(error))
        return 1
    return 0


run_wgsl = alone(__name__, compile_wgsl.__name__)


@dataclass(frozen=True, slots=True)
class WgslTarget:
    """The target of every device that wgpu reaches."""

    name: str = WGSL
    vendor: str = "khronos"
    languages: tuple[str, ...] = (WGSL,)
    halves: tuple[Half, ...] = (WgslHalf(),)
    tools: tuple[str, ...] = ("naga",)
    programs: dict[str, Program] = field(
        default_factory=lambda: {"naga": Program(where=_where, version=_version, run=run_wgsl)}
    )
    nodes: tuple[str, ...] = (PROCESSOR, DRIVER)
    models: str = ""

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """Naga checks for every device alike; the driver compiles when a kernel is loaded."""
        del language, arch
        return (compiler, "-o", str(output), str(source))

    def parse_diagnostics(self, text: str) -> tuple[Diagnostic, ...]:
        return diagnostics.parse(text, "kernel.wgsl")

    def parse_report(self, text: str) -> Report:  # noqa: ARG002 (the contract's)
        """Nothing: naga counts no registers."""
        return Report()

    def profile_command(self, program: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def parse_profile(self, text: str) -> Profile:
        raise MachineError(f"WGSL has no profiler here; got {len(text)} characters")

    def brief(self, device: Device, language: str = "") -> Brief:
        return brief(device, language or device.language or WGSL)

    def capabilities(self, found: frozenset[str], language: str = "") -> Capabilities:  # noqa: ARG002
        ready = "naga" in found and DRIVER in found
        why = "" if ready else f"no wgpu with a Vulkan driver on this machine: {WGSL_INSTALL}"
        return Capabilities(compile=ready, execute=ready, time=ready, why=why)


TARGET = WgslTarget()
