"""A kernel source to a library that the emulator runs: `python -m` this module SOURCE PRODUCT."""

import argparse
import json
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from targets.remote.emulation import metal, translate
from targets.remote.emulation.translate import UnsupportedError
from targets.remote.kforge_launch import signatures

COMMON = (
    "-std=c++20",
    "-fPIC",
    "-march=native",
    "-ffp-contract=off",
    "-fopenmp-simd",
    "-w",
    "-fmax-errors=20",
    "-x",
    "c++",
)
SEEN = "-fsanitize=thread,alignment,bounds,integer-divide-by-zero"
CHECKED = ("-O1", "-g", SEEN, "-DKF_CHECKED", "-DKF_ENTRY(n)=kf_checked_##n")
PLAIN = ("-O2", "-DKF_ENTRY(n)=kf_plain_##n")


def _header(name: str) -> str:
    """One of the emulator's own files, with its name for the compiler's messages."""
    text = (files("targets.remote.emulation") / name).read_text(encoding="utf-8")
    return f'#line 1 "{name}"\n{text.replace("#pragma once", "")}\n'


HEADERS = {name: _header(name) for name in ("simt.hpp", "cuda.hpp", "metal.hpp")}
"""Read before there are walls."""
MAGIC = b"KFLINES1"
"""Behind the library stand the line table, its length and these bytes: a loader sees none of it."""
_ROW = re.compile(r"^(?P<file>\S+)\s+(?P<line>\d+)\s+0x(?P<at>[0-9a-f]+)", re.MULTILINE)
TRANSLATIONS = {"cuda.hpp": translate.as_cpp, "metal.hpp": metal.as_cpp}
FURTHER = {"metal.hpp": ("-fsingle-precision-constant",)}
"""By the words that a source is written in."""
INLINED = "metal.hpp"
"""Its functions are inlined, each: their accesses stand at the line that calls them."""


def build(source: Path, product: Path, words: str, kernels: Sequence[str]) -> str | None:
    """Compiles; the compiler's text when it refuses, None when the product is there."""
    compiler = shutil.which("g++")
    if compiler is None:
        return "no C++ compiler on this machine: install g++"
    try:
        body = TRANSLATIONS[words](source.read_text(), kernels, file=source.name)
    except UnsupportedError as error:
        return f"UNSUPPORTED: {error}"
    except SyntaxError as error:
        return str(error)
    text = product.with_suffix(".cpp")
    text.write_text(
        f"{HEADERS['simt.hpp']}{HEADERS[words]}namespace kf_user {{ namespace {{\n{body}"
    )
    objects: list[tuple[Path, subprocess.Popen[str]]] = []
    for flags in (CHECKED, PLAIN):
        made = product.with_suffix(f".{len(objects)}.o")
        command = (
            compiler,
            *flags,
            *COMMON,
            *FURTHER.get(words, ()),
            "-c",
            str(text),
            "-o",
            str(made),
        )
        objects.append((made, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)))
    done = [(process.communicate()[1], process.returncode) for _, process in objects]
    for complaint, code in done:
        if code:
            return complaint
    names = [str(made) for made, _ in objects]
    linked = subprocess.run(
        (compiler, "-shared", "-Wl,-Bsymbolic", "-o", str(product), *names),
        capture_output=True,
        text=True,
        check=False,
    )
    if linked.returncode:
        return linked.stderr
    _append_lines(product, source.name)
    return None


def _append_lines(product: Path, file: str) -> None:
    """Addresses and lines of the checked half, sorted, behind the library."""
    command = ("objdump", "--dwarf=decodedline", str(product))
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = sorted((int(m["at"], 16), m["file"], int(m["line"])) for m in _ROW.finditer(text))
    rows: list[tuple[int, int]] = []
    for at, name, line in found:
        inside = rows[-1][1] if rows and name == INLINED else 0
        rows.append((at, line if name == file else inside))
    data = zlib.compress(json.dumps(rows).encode())
    with product.open("ab") as library:
        library.write(data + struct.pack("<Q", len(data)) + MAGIC)


def lines(product: Path) -> list[tuple[int, int]]:
    """What `_append_lines` wrote."""
    data = product.read_bytes()
    if data[-len(MAGIC) :] != MAGIC:
        return []
    end = len(data) - len(MAGIC) - 8
    (size,) = struct.unpack("<Q", data[end : end + 8])
    return [(at, line) for at, line in json.loads(zlib.decompress(data[end - size : end]))]


def main() -> None:
    """Exit code 1 and the compiler's text on stderr when the source is refused."""
    parser = argparse.ArgumentParser(prog="python -m targets.remote.emulation.build")
    parser.add_argument("source", type=Path)
    parser.add_argument("product", type=Path)
    parser.add_argument("--words", default="cuda.hpp")
    given = parser.parse_args()
    from targets.remote.emulation.half import CUDA, METAL

    half = METAL if given.words == METAL.words else CUDA
    kernels = tuple(signatures(half.as_c(given.source.read_text())))
    complaint = build(given.source, given.product, given.words, kernels)
    if complaint is not None:
        sys.stderr.write(complaint)
        sys.exit(1)


if __name__ == "__main__":
    main()
