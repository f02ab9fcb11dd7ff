"""Installs what this machine can have of the vendors' compilers, and says what each part costs.

`python -m targets.machines.toolchains [PART...]`; `make toolchains` does them all. Python packages
go where this Python's own are, the others are Debian's and need root.
"""

import importlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distributions, version

from targets.machines import inventory

PIP = (sys.executable, "-m", "pip", "install", "--quiet")
APT = (
    *("apt-get", "install", "-y", "-qq", "--no-install-recommends"),
    *("-o", "APT::Keep-Downloaded-Packages=false"),  # they would take half as much again
)
MEGA = 1e6
CELLS = ("compile", "execute", "time")
"""Of a device in `kforge devices`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Packages that are installed together."""

    name: str
    gives: str
    pip: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    about_mb: int = 0
    """What it took with all that it needs on a fresh Debian 12, after the parts before it."""
    never: str = ""
    """Why it cannot be had on any machine like this one."""


PARTS = (
    Part(name="sandbox", gives="walls round candidates", apt=("bubblewrap",), about_mb=1),
    Part(name="cpu", gives="C++ kernels, emulation of GPUs", apt=("g++",), about_mb=259),
    Part(
        name="cuda",
        gives="CUDA C for NVIDIA chips that are not here",
        pip=tuple(
            f"nvidia-cuda-{part}>=13.0,<13.1" for part in ("nvrtc", "runtime", "cccl", "crt")
        ),
        about_mb=251,
    ),
    Part(
        name="hip",
        gives="HIP for AMD chips that are not here",
        apt=("clang-19", "lld-19", "llvm-19", "rocm-device-libs", "libamdhip64-dev"),
        about_mb=612,
    ),
    Part(
        name="opencl",
        gives="xeon-opencl with Intel's run time; b580, a770, max1550 executed",
        pip=("intel-opencl-rt", "intel-cmplr-lib-rt"),
        about_mb=846,
    ),
    Part(
        name="pocl",
        gives="the same with PoCL, ten times smaller and slower",
        apt=("pocl-opencl-icd", "ocl-icd-libopencl1"),
        about_mb=269,
    ),
    Part(name="sycl", gives="xeon-sycl", pip=("intel-sycl-rt",), about_mb=723),
    Part(
        name="ocloc",
        gives="figures of kernels for Arc A and PVC (not B580: a newer one is no package)",
        apt=("intel-opencl-icd",),
        about_mb=242,
    ),
    Part(
        name="wgsl",
        gives="WGSL on lavapipe, the example of a new chip",
        pip=("wgpu",),
        apt=("mesa-vulkan-drivers",),
        about_mb=52,
    ),
    Part(
        name="metal",
        gives="m4-max and m2 compiled by Apple",
        never="needs a Mac; sources are checked by translation and run in the emulator",
    ),
    Part(
        name="nvcc",
        gives="nothing that NVRTC does not",
        never="no package of it; the CUDA toolkit brings it",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a part."""

    part: Part
    state: str
    """`here`, `installed`, `skipped` or `failed`."""
    why: str = ""
    megabytes: float = 0.0
    """Of packages that the installation brought."""
    seconds: float = 0.0
    turned: tuple[str, ...] = ()
    """What devices can do since: `mi300x compile`."""

    def __str__(self) -> str:
        about = f", about {self.part.about_mb} MB" if self.part.about_mb else ""
        cost = f" {self.megabytes:.0f} MB, {self.seconds:.0f} s"
        told = cost if self.state == "installed" else about if self.state != "failed" else ""
        why = f": {self.why}" if self.why else ""
        line = f"{self.part.name:8} {self.state}{told}{why} ({self.part.gives})"
        return f"{line}\n{'':8} now yes: {', '.join(self.turned)}" if self.turned else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the installation asks of this machine; tests pass another."""

    run: Callable[[Sequence[str]], tuple[int, str]]
    """Exit status and the last line that was printed."""
    has_pip: Callable[[str], bool]
    has_apt: Callable[[str], bool]
    size_bytes: Callable[[], int]
    """Of all packages."""
    able: Callable[[], frozenset[str]]
    """The cells of `kforge devices` that are yes, as `mi300x compile`."""
    apt_allowed: bool


def install(part: Part, host: Host) -> Outcome:
    """Installs what is missing of the part; what cannot be had is skipped with the reason."""
    if part.never:
        return Outcome(part=part, state="skipped", why=part.never)
    pip = [p for p in part.pip if not host.has_pip(p.partition(">")[0])]
    apt = [p for p in part.apt if not host.has_apt(p)]
    if not pip and not apt:
        return Outcome(part=part, state="here")
    if apt and not host.apt_allowed:
        why = f"needs root: apt-get install {' '.join(apt)}"
        return Outcome(part=part, state="skipped", why=why)
    print(f"installing {part.name}: {' '.join((*apt, *pip))}", file=sys.stderr, flush=True)
    began, size, able = time.monotonic(), host.size_bytes(), host.able()
    for command in ((*APT, *apt) if apt else (), (*PIP, *pip) if pip else ()):
        code, said = host.run(command) if command else (0, "")
        if code:
            return Outcome(part=part, state="failed", why=f"{_spoken(command)}: {said}")
    return Outcome(
        part=part,
        state="installed",
        megabytes=max(host.size_bytes() - size, 0) / MEGA,
        seconds=time.monotonic() - began,
        turned=tuple(sorted(host.able() - able)),
    )


def _spoken(command: Sequence[str]) -> str:
    """The command without its options and places."""
    return "apt-get install" if command[0] == APT[0] else "pip install"


def this_host() -> Host:
    """The machine that this runs on."""
    apt = os.geteuid() == 0 and shutil.which("apt-get") is not None
    return Host(
        run=_run,
        has_pip=_has_pip,
        has_apt=_has_apt,
        size_bytes=lambda: _debian_bytes() + _python_bytes(),
        able=_able,
        apt_allowed=apt,
    )


def _able() -> frozenset[str]:
    importlib.invalidate_caches()
    reports = [inventory.capabilities(d) for d in inventory.devices().values()]
    return frozenset(f"{r.name} {cell}" for r in reports for cell in CELLS if getattr(r, cell))


def _debian_bytes() -> int:
    """As the packages say, in KiB; the disk's own count would take in what others write."""
    words = ("dpkg-query", "-W", "-f=${Installed-Size}\\n")
    if shutil.which(words[0]) is None:
        return 0
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return sum(int(line) for line in done.stdout.split()) * 1024


def _python_bytes() -> int:
    return sum(f.size or 0 for made in distributions() for f in made.files or ())


def _run(command: Sequence[str]) -> tuple[int, str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, errors="replace"
    )
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return done.returncode, lines[-1] if lines else "without a message"


def _has_pip(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _has_apt(package: str) -> bool:
    words = ("dpkg-query", "-W", "-f=${db:Status-Status}", package)
    if shutil.which(words[0]) is None:
        return False
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout == "installed"


def main(names: Sequence[str], machine: Host | None = None) -> int:
    """A line a part on stdout; 1 when one failed that could be had, 2 for an unknown name."""
    known = {part.name: part for part in PARTS}
    if unknown := [n for n in names if n not in known]:
        print(f"unknown part {unknown[0]!r}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    host, failed = machine or this_host(), []
    chosen = [known[n] for n in names] or PARTS
    if host.apt_allowed and not all(host.has_apt(p) for part in chosen for p in part.apt):
        host.run(("apt-get", "update", "-qq"))  # an old list may do; if not, the part says so
    for part in chosen:
        outcome = install(part, host)
        print(outcome, flush=True)
        failed += [part.name] if outcome.state == "failed" else []
    if failed:
        print(f'not installed; again: make toolchains PARTS="{" ".join(failed)}"', file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
