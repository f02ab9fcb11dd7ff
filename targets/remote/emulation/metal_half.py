"""Metal kernels on tensors of the CPU."""

from targets.remote.emulation.half import EmulatedHalf
from targets.remote.metal import POINTERS, prototypes


class MetalHalf(EmulatedHalf):
    """As CUDA's, with Metal's way to declare a kernel."""

    pointers = POINTERS

    def as_c(self, source: str) -> str:
        """A prototype for each kernel, with what Python passes."""
        return prototypes(source)


METAL = MetalHalf(("metal",), source="kernel.metal", words="metal.hpp", warp=32)
