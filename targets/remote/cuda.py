"""An NVIDIA device as the judge and its children use it.

The judge allocates inputs and answers and hands them on as file descriptors; a child maps them.
Nobody but the judge can read them once the child is dead, and no child sees another's.
"""

import os
from collections.abc import Callable
from pathlib import Path

import torch

from data.errors import MachineError
from targets.remote import nvml
from targets.remote.borrowed import CUDA, borrowed
from targets.remote.cuda_driver import Block, Driver
from targets.remote.memory import HostMemory, Memory, TensorMemory

NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
HEALTH = 1 << 20
"""Elements of a sum that every core of a device takes part in, exact in float32."""
FLUSH_FACTOR = 2
"""Times the L2 cache: writing that much leaves nothing of before (JUDGE.md, section 4, item 8)."""


class Cuda:
    """One device by its index; the first use makes the context."""

    name = place = "cuda"
    maps_answers = True

    def __init__(self, index: int) -> None:
        self.index = index
        self._driver: Driver | None = None
        self._sweep: torch.Tensor | None = None

    def begin(self, *, reduced: bool) -> None:
        torch.set_float32_matmul_precision("high" if reduced else "highest")
        torch.backends.cudnn.allow_tf32 = reduced
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.cuda.set_device(self.index)
        torch.zeros(1, device=self.place)
        self._use().synchronise()

    def new(self, size: int) -> Memory:
        driver = self._use()
        block = driver.allocate(size)
        return _Mapped(driver, block, size, fd=driver.export(block))

    def private(self, size: int) -> Memory:
        return TensorMemory(torch.empty(size, dtype=torch.uint8, device=self.place), _wait)

    def attach(self, fd: int, size: int) -> Memory:
        driver = self._use()
        block = driver.attach(fd, size)
        os.close(fd)
        return _Mapped(driver, block, size)

    def gate(self, memory: HostMemory) -> Callable[[int], None] | None:
        driver = self._use()
        try:
            place = driver.register(memory.flat.data_ptr(), memory.size)
        except MachineError:
            return None
        return lambda number: driver.hold(torch.cuda.current_stream().cuda_stream, place, number)

    def wait(self) -> None:
        self._use().synchronise()

    def flush(self) -> None:
        driver = self._use()
        if self._sweep is None:
            size = FLUSH_FACTOR * int(self.cache_bytes())
            self._sweep = torch.empty(size // 4, dtype=torch.int32, device=self.place)
        self._sweep.fill_(1)
        driver.reset_persisting()
        driver.synchronise()

    def nodes(self) -> tuple[str, ...]:
        own = f"/dev/nvidia{self.index}"
        return (own, *NODES) if Path(own).exists() else ()

    def cache_bytes(self) -> float:
        return float(torch.cuda.get_device_properties(self.index).L2_cache_size)

    def identity(self) -> dict[str, str]:
        return nvml.identity(self.index)

    def state(self) -> dict[str, str]:
        return nvml.reading(self.index).told()

    def used_bytes(self) -> int:
        own = torch.cuda.memory_reserved(self.index) if torch.cuda.is_initialized() else 0
        return nvml.used_bytes(self.index) - own

    def users(self) -> frozenset[int]:
        return nvml.processes(self.index)

    def healthy(self) -> bool:
        """A sum of ones, without a library whose first call takes 0.1 s."""
        torch.cuda.set_device(self.index)
        return float(torch.ones(HEALTH, device=self.place).sum()) == HEALTH

    def _use(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(self.index)
        self._driver.enter()
        return self._driver


class _Mapped(TensorMemory):
    """Memory that two processes map; it is unmapped when its last tensor has gone."""

    def __init__(self, driver: Driver, block: Block, size: int, fd: int = -1) -> None:
        self._driver, self._block = driver, block
        super().__init__(self.part(0, size), _wait, fd)

    def part(self, offset: int, size: int) -> torch.Tensor:
        place = self._block.address + offset
        return borrowed(place, size, kind=CUDA, index=self._driver.index)

    def free(self) -> None:
        self.close()
        self._driver.synchronise()
        self._driver.free(self._block)


def _wait() -> None:
    torch.cuda.current_stream().synchronize()
