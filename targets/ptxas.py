"""What ptxas says about each kernel: registers, spills, stack, shared memory, barriers.

nvcc prints it with `-Xptxas -v`, NVRTC with `--ptxas-options=-v`: the same text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for 'sm_(?P<arch>\w+)'")
_STACK = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<store>\d+) bytes spill stores,"
    r" (?P<load>\d+) bytes spill loads"
)
_USED = re.compile(r"Used (?P<registers>\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one kernel takes."""

    kernel: str
    arch: str
    registers: int
    """A thread."""
    spill_load_bytes: int = 0
    spill_store_bytes: int = 0
    stack_bytes: int = 0
    shared_bytes: int = 0
    """Static, a block."""
    barriers: int = 0


def usages(text: str) -> Iterator[Usage]:
    """One for each kernel whose report is complete, in the order of the text.

    >>> report = '''ptxas info    : Compiling entry function 'f' for 'sm_90'
    ...     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ... ptxas info    : Used 12 registers, used 1 barriers, 1024 bytes smem'''
    >>> [(u.kernel, u.registers, u.shared_bytes) for u in usages(report)]
    [('f', 12, 1024)]
    """
    current: Usage | None = None
    for line in text.splitlines():
        if (entry := _ENTRY.search(line)) is not None:
            current = Usage(kernel=entry["name"], arch=f"sm_{entry['arch']}", registers=0)
        elif current is None:
            continue
        elif (stack := _STACK.search(line)) is not None:
            current = replace(
                current,
                stack_bytes=int(stack["stack"]),
                spill_store_bytes=int(stack["store"]),
                spill_load_bytes=int(stack["load"]),
            )
        elif (used := _USED.search(line)) is not None:
            yield replace(
                current,
                registers=int(used["registers"]),
                barriers=_number(_BARRIERS, line),
                shared_bytes=_number(_SHARED, line),
            )
            current = None


def _number(pattern: re.Pattern[str], line: str) -> int:
    found = pattern.search(line)
    return int(found[1]) if found else 0
