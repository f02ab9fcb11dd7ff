"""A launcher of OpenCL kernels on tensors of the CPU, for tests: `pyopencl` and a CPU runtime."""

import ctypes
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch


def kernels() -> Callable[..., Any]:
    """Stands for the launcher's `kernels`; skips the test where OpenCL is not there."""
    cl = pytest.importorskip("pyopencl")
    try:
        devices = cl.get_platforms()[0].get_devices()
    except cl.LogicError:
        pytest.skip("no OpenCL platform")
    context = cl.Context(devices[:1])
    return lambda source, language: Launcher(cl, context, source)


class Launcher:
    """The kernels of one source by name."""

    def __init__(self, cl: Any, context: Any, source: str) -> None:
        self._cl, self._context, self._source = cl, context, source
        self._program = cl.Program(context, source).build()
        self._queue = cl.CommandQueue(context)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda grid, block, args: self._launch(name, grid[0] * block[0], block[0], args)

    def _launch(self, name: str, whole: int, block: int, args: tuple[Any, ...]) -> None:
        cl, buffers = self._cl, []
        kernel = cl.Kernel(self._program, name)
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                memory = _memory(value)
                flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
                buffer = cl.Buffer(self._context, flags, hostbuf=memory)
                buffers.append((buffer, memory))
                kernel.set_arg(number, buffer)
            else:
                kernel.set_arg(number, ctypes.c_long(value))
        cl.enqueue_nd_range_kernel(self._queue, kernel, (whole,), (block,))
        for (buffer, memory), written in zip(buffers, self._written(name), strict=True):
            if written:
                cl.enqueue_copy(self._queue, memory, buffer)
        self._queue.finish()

    def _written(self, name: str) -> list[bool]:
        """For each pointer parameter whether it is not const."""
        found = re.search(rf"\b{name}\(([^)]*)\)", self._source)
        assert found is not None
        return ["const" not in p for p in found.group(1).split(",") if "*" in p]


def _memory(tensor: torch.Tensor) -> Any:
    storage = tensor.untyped_storage()
    size = storage.nbytes() - tensor.storage_offset() * tensor.element_size()
    return (ctypes.c_char * max(size, 1)).from_address(tensor.data_ptr())
