"""What was compiled for one candidate: a list of its sources, a folder of its products, its ghosts.

All products of a compiler lie in one folder, by content. A child sees only those of its own
candidate: others' kernels are answers. A ghost has the kernels of a product without their bodies;
it lies under the same name, so that a candidate can only notice that nothing is computed.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from data.codec import dumps, loads
from data.records import Device, digest
from targets.remote import inherited
from targets.remote.compiler import compiled, library_folder, making, written_in
from targets.remote.emulator import EMULATOR
from targets.remote.kforge_launch import HALVES, signatures, source_hash

Sources = tuple[tuple[str, ...], ...]
"""(language, source) of each kernel source."""


def keep_list(cache: Path, device: Device, candidate: str, sources: Sources) -> None:
    """Notes which sources the candidate showed when it was recorded; () is a list too."""
    path = _list(cache, device, candidate)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(dumps(sources))
    fresh.replace(path)


def sources_of(cache: Path, device: Device, candidate: str) -> Sources | None:
    """What the build phase noted; None where it never saw this candidate."""
    path = _list(cache, device, candidate)
    return loads(Sources, path.read_text()) if path.exists() else None


def gathered(cache: Path, device: Device, candidates: Sequence[str]) -> Path | None:
    """A new folder with the products of these alone; None where the first was never recorded."""
    lists = [sources_of(cache, device, candidate) for candidate in candidates]
    if lists[0] is None:
        return None
    folder = inherited.folder(cache)
    sources = [source for found in lists for source in found or ()]
    for language, source in sources:
        _link(cache, device, (language, source), folder / _name(device, language, source))
    return folder


@contextmanager
def ghosts(cache: Path, device: Device, candidate: str) -> Iterator[Path | None]:
    """The candidate's folder with kernels that do nothing; None where there are none."""
    sources = sources_of(cache, device, candidate)
    folder = inherited.folder(cache)
    try:
        made = [_ghost(cache, device, folder, *source) for source in sources or ()]
        yield folder if made and all(made) else None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ghost(cache: Path, device: Device, folder: Path, language: str, source: str) -> bool:
    """Whether it could be made."""
    ghost = ghost_of(language, source)
    if not ghost or not compiled(cache, making(written_in(device, language)), language, ghost).ok:
        return False
    _link(cache, device, (language, ghost), folder / _name(device, language, source))
    return True


def ghost_of(language: str, source: str) -> str:
    """A source with the same kernels, none of which does anything; empty where none is known.

    >>> ghost_of("cpp", 'extern "C" void add(const float* x, float* o, long n) { o[0] = x[0]; }')
    'extern "C" void add() {}'
    """
    half = HALVES[language]
    return half.hollow(language, signatures(half.as_c(source), language=language))


def _list(cache: Path, device: Device, candidate: str) -> Path:
    return library_folder(cache, device) / f"{digest(candidate)}.sources.json"


def _name(device: Device, language: str, source: str) -> str:
    halves = EMULATOR.halves if device.execution == "emulated" else HALVES.values()
    half = next(h for h in halves if language in h.languages)
    return source_hash(language, source) + Path(half.product).suffix


def _link(cache: Path, device: Device, kernel: tuple[str, str], to: Path) -> None:
    """One file under two names; a product that is not there is the candidate's own fault."""
    made = library_folder(cache, written_in(device, kernel[0]))
    product = made / _name(device, *kernel)
    if product.exists() and not to.exists():
        os.link(product, to)
