"""Fused maps, reductions, norms, losses and scans as kernels of threads."""

from collections.abc import Mapping, Sequence

from agents.offline.gathered import GATHERED
from agents.offline.lower import lower
from agents.offline.module import module
from agents.offline.nest import Nest, plan
from agents.offline.passes import passes, phases
from agents.offline.simt.dialect import Dialect
from agents.offline.simt.source import kernels
from agents.offline.simt.threads import Threads
from agents.offline.template import Hints, Parameters
from agents.offline.wrapper import call
from data.records import Node

LANES = "16"
"""Threads of a sub-group where it is one vector."""
BLOCK = 256
"""Threads of a block where rows do not ask for more: eight blocks fill a multiprocessor."""


class SimtFused:
    """One operator as a fused nest over threads; UncoveredError when it is none."""

    family = "fused threads"

    def __init__(self, graph: Sequence[Node], dialect: Dialect) -> None:
        self.nest: Nest = plan(lower(graph, GATHERED))
        self._dialect = dialect
        self._reduces = any(v.op == "reduce" for v in self.nest.values)
        self._keeps = any(passes(self.nest, p, keep=True).kept for p in phases(self.nest))
        self._maps = sum(v.op == "map" for v in self.nest.values)
        kernels(self.nest, dialect, Threads())

    @property
    def _group(self) -> int:
        """Threads that run in step: on a processor the lanes of one thread's vector."""
        return int(LANES) if self._dialect.processor else 32

    @property
    def domains(self) -> Mapping[str, tuple[str, ...]]:
        """Where a sub-group may be a vector, also groups of one, which wait for nobody."""
        own = (LANES,) if self._dialect.processor else ()
        few = (LANES, "64") if self._dialect.processor else ()
        found = {"vector": ("1", "4"), "across": (*own, "32", "64", "128", "256", "512", "1024")}
        if self.nest.mode == "column":
            found = {"across": (*own, "32", "64", "128", "256")}
        found["threads"] = (*few, "128", "256", "512", "1024")
        if self._dialect.processor and self.nest.mode == "row":
            found["several"] = ("1", "2", "4", "8")
            if self._keeps:
                found["keep"] = ("False", "True")
        if self.nest.mode == "map":
            found = {"vector": ("1", "4"), "across": (*own, "32", "64", "128", "256"),
                     "items": ("1", "2", "4", "8", *(("64", "256", "1024") if own else ())),
                     "threads": (*few, "128", "256")}  # fmt: skip
        return found

    @property
    def moves(self) -> Mapping[str, Parameters]:
        found: dict[str, Parameters] = {"parallel_outer": {"threads": "128"}}
        if self.nest.mode == "map":
            found["unroll"] = {"items": "8"}
        if self.nest.mode != "column":
            found["vector_load"] = {"vector": "4"}
        if self.nest.mode == "row":
            found["warp_reduce"] = {"across": "32"}
            found["parallel_inner"] = {"across": "512", "threads": "512"}
        if self.nest.mode == "column":
            found["split_reduction"] = {"across": "32", "threads": "1024"}
        if self._dialect.processor and self.nest.mode == "row":
            found["multi_accumulator"] = {"several": "4"}
            if self._keeps:
                found["recompute"] = {"keep": "False"}
        return found

    def first(self, hints: Hints) -> Parameters:
        """As many threads side by side as the row has work for; b is wider, c narrower."""
        if hints.processor and self._dialect.processor:
            return self._alone(hints.lineage)
        shift = {"a": 0, "b": 1}.get(hints.lineage, -1)
        extent = self.nest.lanes.extent
        if self.nest.mode == "column":
            across = 32 if hints.lineage != "b" else 64
            threads = 512 if hints.lineage == "a" else 256
            return {"across": str(across), "threads": str(threads)}
        limit, low = (1024, 32) if self.nest.mode == "row" else (BLOCK, 32)
        across = _power(extent // 8 if self.nest.mode == "row" else extent // 4, low, limit)
        across = min(max(across << shift if shift >= 0 else across >> 1, low), limit)
        found = {"vector": "4" if extent % 4 == 0 else "1", "across": str(across)}
        if self.nest.mode == "map":
            found["items"] = {"a": "4", "b": "2"}.get(hints.lineage, "1")
        if self._dialect.processor and self.nest.mode == "row":
            found["several"] = "1"
            if self._keeps:
                found["keep"] = "False"
        return found | {"threads": str(max(across, BLOCK))}

    def _alone(self, lineage: str) -> Parameters:
        """Groups of one sub-group: b takes four at once, c leaves vectors to the compiler."""
        found = {"across": LANES, "threads": "64" if lineage == "b" else LANES}
        if self.nest.mode != "column":
            found["vector"] = "1"
        if self.nest.mode == "map":
            found["items"] = {"a": "256", "b": "64"}.get(lineage, "1024")
        if self.nest.mode == "row":
            found["several"] = "8" if lineage == "b" else "4"
            if self._keeps:
                found["keep"] = str(lineage != "c")
        return found

    def techniques(self, parameters: Parameters) -> tuple[str, ...]:
        tags = {
            "coalesce": True,
            "parallel_outer": True,
            "vector_load": parameters.get("vector") == "4",
            "unroll": parameters.get("items", "1") != "1",
            "parallel_inner": self.nest.mode == "row" and int(parameters["across"]) > self._group,
            "warp_reduce": self._reduces and self.nest.mode == "row"
            and self._dialect.shuffles > 0,
            "shared_memory": self._reduces,
            "multi_accumulator": parameters.get("several", "1") != "1" and self._reduces,
            "recompute": parameters.get("keep") == "False",
            "split_reduction": self.nest.mode == "column" and self._reduces
            and parameters["threads"] != parameters["across"],
            "fuse_epilogue": self._maps > 1,
        }  # fmt: skip
        return tuple(tag for tag, there in tags.items() if there)

    def render(self, operator_source: str, parameters: Parameters) -> str:
        """The candidate under this schedule."""
        across = int(parameters["across"])
        threads = Threads(
            threads=max(int(parameters["threads"]), across),
            across=across,
            vector=int(parameters.get("vector", "1")),
            items=int(parameters.get("items", "1")),
            several=int(parameters.get("several", "1")),
            keep=parameters.get("keep") == "True" and parameters["vector"] == "1",
        )
        if any(v.op == "scan" for v in self.nest.values) and self.nest.mode == "column":
            threads = Threads(threads=across, across=across, vector=1)
        made = kernels(self.nest, self._dialect, threads)
        wrapped = call(self.nest.program, made.calls, device=made.device)
        return module(operator_source, made.source, wrapped, language=self._dialect.language)


def _power(value: int, low: int, high: int) -> int:
    """The power of two at or below `value`, within limits.

    >>> _power(100, 32, 1024), _power(3, 32, 1024), _power(5000, 32, 1024)
    (64, 32, 1024)
    """
    return min(max(1 << max(value.bit_length() - 1, 0), low), high)
