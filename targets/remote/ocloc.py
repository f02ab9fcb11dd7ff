"""Intel's offline compiler for GPUs: what a kernel takes on a GPU that is not here."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

GPU_OPTIONS = "-cl-std=CL2.0"
"""22.43 fails on its own headers for pvc with CL3.0; sub-groups need 2.0."""
UNKNOWN = "Cannot get HW Info"
_KERNEL = re.compile(r"^  - name: +(?P<name>\w+)$", re.MULTILINE)
_MESSAGE = re.compile(r"^\d+:(?P<at>\d+:\d+: (?:error|warning): )", re.MULTILINE)
_VALUES = {"simd": "simd_size", "grf": "grf_count", "slm": "slm_size"}
_SPILLED = re.compile(r"^warning: (kernel \w+ +compiled SIMD\d+ allocated .*)$", re.MULTILINE)
_SPILL = re.compile(r"usage: +spill_fill_space\n +size: +(\d+)")


def figures(device: str) -> str:
    """Who tells what a kernel takes on that GPU, or why nobody does."""
    tool = shutil.which("ocloc")
    if tool is None:
        return f"no registers or spills of {device}: ocloc is not installed (intel-opencl-icd)"
    asked = subprocess.run((tool, "ids", device), capture_output=True, check=False)
    if asked.returncode:
        return f"no registers or spills of {device}: this ocloc does not know it, a newer one does"
    return f"registers and spills of {device} by ocloc"


def gpu_report(source: Path, device: str) -> tuple[bool, str]:
    """Whether the kernels can be built for the device, and a line a kernel, or why not.

    A device that this ocloc does not know, or no ocloc at all, refuses nothing.
    """
    tool = shutil.which("ocloc")
    if tool is None:
        return True, f"gpu {device}: no figures, ocloc is not installed (intel-opencl-icd)"
    with tempfile.TemporaryDirectory(prefix="ocloc-") as folder:
        words = (tool, "compile", "-file", str(source), "-device", device, "-out_dir", folder)
        form = ("-spirv_input",) if source.suffix == ".spv" else ("-options", GPU_OPTIONS)
        more = ("--format", "zebin", *form)
        done = subprocess.run((*words, *more), capture_output=True, text=True, check=False)
        built = sorted(Path(folder).glob("*.bin"))
        said = done.stdout + done.stderr
        if UNKNOWN in said:
            return True, f"gpu {device}: no figures, this ocloc does not know it: a newer one does"
        if done.returncode or not built:
            return False, _MESSAGE.sub(rf"{source.name}:\g<at>", said)
        spilled = [f"gpu {device}: {m[1]}" for m in _SPILLED.finditer(said)]
        usages = _usages(device, built[0].read_bytes().decode("latin-1"))
        return True, "\n".join((*usages, *spilled))


def _usages(device: str, text: str) -> list[str]:
    """From the section `.ze_info` of the binary, which is text."""
    parts = _KERNEL.split(text)[1:]
    lines = []
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        if "simd_size" not in part:
            continue  # the same names stand in a list of further facts
        values = {w: re.search(rf"\b{key}: +(\d+)", part) for w, key in _VALUES.items()}
        told = [f"{w} {m[1] if m else 0}" for w, m in values.items()]
        spill = sum(int(m[1]) for m in _SPILL.finditer(part))
        lines.append(f"gpu {device} {name}: {', '.join(told)}, spill {spill}")
    return lines
