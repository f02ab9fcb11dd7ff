"""What a device beside the processor reaches: copy and products, measured once and kept."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import torch

from data.codec import dumps, loads
from data.errors import MachineError
from data.records import Card, Device, digest
from targets.remote.accelerator import Kind, kind_of_device
from targets.remote.fork import fork
from targets.remote.peaks import Measurement, Probe, better, environment, keep

COPY_BYTES = 2 << 30
"""Far above any cache; 4.27 TB/s on an H200 (TOOLCHAINS.md)."""
EDGE = 8192
"""Of the square products: 50.9 (fp32), 374 (tf32), 798 (bf16) TFLOP/s on an H200."""
DTYPES = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
ROUNDS = 4
STEADY = 0.9


def probe(cache: Path, device: Device, *, leased: bool) -> Probe:
    """Peaks of the device, from the cache when this environment is on record. MachineError.

    They are measured only by who has the device to himself, and unknown (no bandwidth) until then:
    beside another worker an H200 copied 1.3 TB/s, and kernels ran below that floor.
    """
    kind = kind_of_device(device)
    known = {**environment(), **kind.identity()}
    path = cache / "peaks" / f"{digest(dumps(known))}.json"
    earlier = loads(Measurement, path.read_text()) if path.exists() else None
    if leased and (earlier is None or not earlier.steady):
        found = fork(lambda: _measure(kind)).result()
        fresh = loads(Measurement, json.dumps(found))
        earlier = fresh if earlier is None else better(earlier, fresh)
        keep(path, dumps(earlier))
    return Probe(card=earlier.card if earlier else Card(peak_gb_s=0.0), environment=known)


def _measure(kind: Kind) -> Measurement:
    """In a process of its own: the context goes with it."""
    kind.begin(reduced=False)
    if not kind.healthy():
        raise MachineError("the device gives a wrong answer to a product of ones")
    copies = _copies(kind)
    rates = {name: _rate(kind, dtype, tf32=name == "tf32") for name, dtype in DTYPES.items()}
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    card = Card(
        peak_gb_s=2 * COPY_BYTES / min(copies) * 1e-9,
        peak_tflop_s=rates,
        memory_gib=properties.total_memory / (1 << 30),
        cores=properties.multi_processor_count,
        cache_mib=(kind.cache_bytes() or 0.0) / (1 << 20),
        measured=True,
    )
    return Measurement(card=card, steady=min(copies) > STEADY * max(copies[1:]))


def _copies(kind: Kind) -> list[float]:
    """Seconds of each of some copies."""
    source = torch.ones(COPY_BYTES, dtype=torch.uint8, device=kind.place)
    copy = torch.empty_like(source)
    return [_seconds(kind, lambda: copy.copy_(source)) for _ in range(ROUNDS)]


def _rate(kind: Kind, dtype: torch.dtype, *, tf32: bool) -> float:
    """TFLOP/s of a square product of random values: zeros run faster."""
    kind.begin(reduced=tf32)
    x = torch.randn(EDGE, EDGE, device=kind.place).to(dtype)
    best = min(_seconds(kind, lambda: x @ x) for _ in range(ROUNDS))
    kind.begin(reduced=False)
    return float(2 * EDGE**3 / best * 1e-12)


def _seconds(kind: Kind, call: Callable[[], object]) -> float:
    """Of one call, the wait for it included."""
    kind.wait()
    began = time.perf_counter()
    call()
    kind.wait()
    return time.perf_counter() - began
