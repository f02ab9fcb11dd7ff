"""What this machine reaches: bandwidth and FLOP/s, measured, and the versions that matter.

The floor of a shape rests on these peaks, so they are measured once for an environment and kept.
"""

import ctypes
import itertools
import json
import os
import platform
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from data.codec import dumps, loads
from data.records import Card, digest
from targets.remote.fork import fork

BUFFER = 64 << 20
"""Bytes a thread copies from and to: far above any private cache."""
SLICE_S = 0.06
ROUNDS = 3
"""With four measurements a round, the whole stays below 1.5 s."""
SIZES = (512, 1536)
"""Edges of the square matrices: 0.23 and 0.31 TFLOP/s on two Sapphire Rapids cores, 2048 0.32."""
STEADY = 0.85
"""Below this share of the best round a round was disturbed: idle rounds agree to 10 %."""
FLAGS = ("avx512f", "avx512_bf16", "amx_bf16", "avx2", "fma", "asimd", "sve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Peaks of a device and the environment that they were measured in."""

    card: Card
    environment: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What is kept of a probe."""

    card: Card
    steady: bool
    """The rounds agreed; if not, the next probe measures again and the better one counts."""


def probe(cache: Path) -> Probe:
    """The host's peaks, from the cache when a quiet moment of this environment is on record.

    A peak is the best that was ever seen, since a disturbed measurement can only be too low, and
    one that is too low makes a floor that good kernels break.
    """
    known = environment()
    path = cache / "peaks" / f"{digest(dumps(known))}.json"
    earlier = loads(Measurement, path.read_text()) if path.exists() else None
    if earlier is None or not earlier.steady:
        fresh = loads(Measurement, json.dumps(fork(lambda: _measure(known)).result()))
        earlier = fresh if earlier is None else better(earlier, fresh)
        keep(path, dumps(earlier))
    return Probe(card=earlier.card, environment=known)


def better(one: Measurement, other: Measurement) -> Measurement:
    """The higher one of each peak."""
    rates = {k: max(v, other.card.peak_tflop_s[k]) for k, v in one.card.peak_tflop_s.items()}
    speed = max(one.card.peak_gb_s, other.card.peak_gb_s)
    card = replace(other.card, peak_gb_s=speed, peak_tflop_s=rates)
    return Measurement(card=card, steady=one.steady or other.steady)


def keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(text)
    fresh.replace(path)


def environment() -> dict[str, str]:
    """Versions and hardware that a number of this machine depends on; no secrets, no paths."""
    import torch

    cpu = _cpu()
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "compiler": compiler_version(),
        "cpu": cpu["model"],
        "simd": cpu["simd"],
        "threads": str(threads()),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cache_mib": f"{cache_mib():g}",
    }


def compiler_version() -> str:
    """First line of the compiler's `--version`; empty when there is none."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return ""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


def threads() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cache_mib() -> float:
    """The last-level cache as the system reports it, 0 when it does not."""
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    sizes = [(f / "size").read_text().strip() for f in folders if (f / "size").exists()]
    units = {"K": 1 / 1024, "M": 1.0}
    return max((float(s[:-1]) * units[s[-1]] for s in sizes if s[-1] in units), default=0.0)


def _cpu() -> dict[str, str]:
    """Name and vector extensions of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    facts = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    present = facts.get("flags", facts.get("Features", "")).split()
    simd = " ".join(f for f in FLAGS if f in present)
    return {"model": facts.get("model name") or platform.processor(), "simd": simd}


def _measure(known: dict[str, str]) -> Measurement:
    """Several rounds, so that a short disturbance spoils one only; in a process of its own."""
    import torch

    torch.set_num_threads(threads())
    tests = {"copy": _copy(), "read": _read(), "float32": _matmul(torch.float32)}
    if "bf16" in known["simd"]:  # emulated elsewhere, and a hundred times slower
        tests["bfloat16"] = _matmul(torch.bfloat16)
    rounds = [{name: test() for name, test in tests.items()} for _ in range(ROUNDS)]
    best = {name: max(r[name] for r in rounds) for name in tests}
    agreed = all(r[k] >= STEADY * best[k] for r in rounds[1:] for k in ("copy", "float32"))
    card = Card(
        peak_gb_s=max(best.pop("copy"), best.pop("read")),
        peak_tflop_s=best,
        memory_gib=_memory_gib(),
        cores=threads(),
        cache_mib=cache_mib(),
        simd=known["simd"],
        measured=True,
    )
    return Measurement(card=card, steady=agreed)


def _memory_gib() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)


def _fastest(call: Callable[[], object]) -> float:
    """Seconds of the fastest call in a slice of time, two calls at least."""
    best = float("inf")
    end = time.perf_counter() + SLICE_S
    for turn in itertools.count():
        start = time.perf_counter()
        if turn >= 2 and start > end:
            return best
        call()
        best = min(best, time.perf_counter() - start)
    raise AssertionError


def _copy() -> Callable[[], float]:
    """GB/s read and written by one memmove a thread (ctypes releases the lock)."""
    buffers = [(_touched(), _touched()) for _ in range(threads())]

    def copy() -> None:
        workers = [
            threading.Thread(target=ctypes.memmove, args=(to, out_of, BUFFER))
            for to, out_of in buffers
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return lambda: 2 * BUFFER * len(buffers) / _fastest(copy) * 1e-9


def _touched() -> ctypes.Array[ctypes.c_char]:
    """A buffer whose pages exist: untouched ones all map to one page of zeros."""
    buffer = ctypes.create_string_buffer(BUFFER)
    ctypes.memset(buffer, 1, BUFFER)
    return buffer


def _read() -> Callable[[], float]:
    """GB/s of a sum."""
    import torch

    x = torch.ones(2 * BUFFER // 4)
    return lambda: 2 * BUFFER / _fastest(x.sum) * 1e-9


def _matmul(dtype: object) -> Callable[[], float]:
    """TFLOP/s of the faster square product."""
    import torch

    squares = [torch.randn(n, n).to(dtype) for n in SIZES]

    def rate(x: torch.Tensor) -> float:
        return 2 * len(x) ** 3 / _fastest(lambda: x @ x) * 1e-12

    return lambda: max(map(rate, squares))
