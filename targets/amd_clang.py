"""HIP by clang with the distribution's device libraries: no AMD device, no ROCm.

The libraries of Debian 12 (rocm-device-libs 5.2.3) know no chip after gfx1036 and gfx90a; what
they lack is one constant a chip, which is assembled beside the source.
"""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

CLANG, ASSEMBLER = "clang++-19", "llvm-as-19"
LIBRARIES = tuple(
    Path(p) for p in ("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/usr/lib/amdgcn/bitcode")
)
HEADER = Path("/usr/include/hip/hip_runtime.h")
OPTIONS = (
    "-O3",
    "-std=c++17",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
    "-include",
    "hip/hip_runtime.h",
    "-Wno-linker-warnings",
    "-Rpass-analysis=kernel-resource-usage",
)
"""No fast-math. The assembled constants have no data layout, which the linker would mention."""
_ISA = "@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32"
MISSING = (
    "no HIP compiler: apt-get install clang-19 lld-19 llvm-19 rocm-device-libs libamdhip64-dev"
)


def where() -> Path | None:
    """clang, when all that it needs is here."""
    found = shutil.which(CLANG)
    rest = all(shutil.which(tool) for tool in (ASSEMBLER, "ld.lld-19"))
    whole = found and rest and HEADER.exists() and _libraries() is not None
    return Path(found) if found and whole else None


def _libraries() -> Path | None:
    return next((p for p in LIBRARIES if (p / "ockl.bc").exists()), None)


def command(source: Path, product: Path, arch: str) -> tuple[str, ...]:
    """What `run` takes, in the form of a command line."""
    return ("hip-clang", f"--offload-arch={arch}", *OPTIONS, "-o", str(product), str(source))


def run(words: Sequence[str]) -> int:
    """Runs what `command` gave in this process's folder; the exit status of clang."""
    libraries, arch = _libraries(), words[1].partition("=")[2]
    if libraries is None:
        os.write(2, f"error: {MISSING}\n".encode())
        return 1
    folder = Path("bitcode")
    folder.mkdir(exist_ok=True)
    for part in libraries.glob("*.bc"):
        (folder / part.name).symlink_to(part)
    constant = folder / f"oclc_isa_version_{arch.removeprefix('gfx')}.bc"
    if not constant.exists() and (version := isa_version(arch)) is not None:
        text = Path("isa.ll")
        text.write_text(f"{_ISA} {version}, align 4\n")
        _call(ASSEMBLER, str(text), "-o", str(constant))
    options = ("-x", "hip", "--rocm-path=/usr", f"--rocm-device-lib-path={folder}", "-c")
    return _call(CLANG, *options, *words[1:])


def _call(*words: str) -> int:
    return os.spawnvp(os.P_WAIT, words[0], words)  # noqa: S606 (a list)


def isa_version(arch: str) -> int | None:
    """The number by which the device libraries know a chip; None for a name that is none.

    >>> isa_version("gfx942"), isa_version("gfx1201"), isa_version("gfx90a"), isa_version("sm_90")
    (9402, 12001, 9010, None)
    """
    found = re.fullmatch(r"gfx(\d+)(\d)([0-9a-f])", arch)
    if found is None:
        return None
    return int(found[1]) * 1000 + int(found[2]) * 100 + int(found[3], 16)
