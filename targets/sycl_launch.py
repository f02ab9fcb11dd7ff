"""SYCL in the launcher: free-function kernels on the processor, on tensors where they lie."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from targets.opencl_launch import Binary, OpenclHalf
from targets.sycl import PREFIX, parted_binary, sycl_build, sycl_library, sycl_release


class SyclHalf(OpenclHalf):
    """SYCL: compiled by the run time's own compiler, launched as OpenCL C is."""

    languages = ("sycl",)
    source, product = "kernel.cpp", "kernel.syclbin"
    prefix = PREFIX
    space = ""
    empty = (
        'extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY('
        "(sycl::ext::oneapi::experimental::nd_range_kernel<1>)) void"
    )
    local = "SYCL takes local memory as `work_group_static`"

    def as_c(self, source: str) -> str:
        """Without the property that makes a function a kernel, vectors by their short names."""
        inner = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
        text = re.sub(rf"\bSYCL_EXT_ONEAPI_FUNCTION_PROPERTY\s*\({inner}\)", " ", source)
        text = re.sub(r"\b(?:sycl::)?vec\s*<\s*(\w+)\s*,\s*(\d+)\s*>", r"\1\2", text)
        return re.sub(r"\bsycl::(?=\w+\s*\*)|\b__restrict\b", " ", text)

    def hollow(self, language: str, kernels: Mapping[str, Sequence[str]]) -> str:
        return "#include <sycl/sycl.hpp>\n" + super().hollow(language, kernels)

    def tag(self) -> str:
        """The releases of the compiler and of the run time that its binaries are for."""
        found = sycl_library()
        own = "-" + re.sub(r"\W+", "-", sycl_release(found)) if found is not None else ""
        return own + super().tag()

    def compile(self, language: str, source: Path, product: Path) -> None:  # noqa: ARG002 (one)
        """RuntimeError with the compiler's text."""
        binary, log = sycl_build(source.read_text(), self.source)
        if binary is None:
            raise RuntimeError(log)
        product.write_bytes(binary)

    def load(self, product: Path) -> Binary:
        return Binary(parted_binary(product.read_bytes()))


SYCL = SyclHalf()
