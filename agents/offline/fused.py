"""The family of fused maps, row and column reductions, norms, losses and scans."""

from collections.abc import Mapping, Sequence

from agents.offline import expressions
from agents.offline.atoms import HEAVY
from agents.offline.emit import source
from agents.offline.lower import lower
from agents.offline.module import module
from agents.offline.nest import Nest, plan
from agents.offline.passes import passes, phases
from agents.offline.schedule import Schedule
from agents.offline.template import Hints, Parameters
from agents.offline.wrapper import call, once
from data.records import Node

LARGE_MIB = 4.0
"""From here on results past the caches won: 1.1 to 1.7 times on a Xeon 6448Y (8 to 32 MiB)."""


class Fused:
    """One operator as a fused loop nest; UncoveredError when it is none."""

    family = "fused"

    def __init__(self, graph: Sequence[Node]) -> None:
        self.nest: Nest = plan(lower(graph))
        parts = phases(self.nest)
        self._keeps = any(passes(self.nest, part, keep=True).kept for part in parts)
        self._reduces = any(v.op == "reduce" for v in self.nest.values)
        self._maps = sum(v.op == "map" for v in self.nest.values)
        source(self.nest, Schedule())

    @property
    def domains(self) -> Mapping[str, tuple[str, ...]]:
        found = {
            "width": ("4", "8", "16"),
            "unroll": ("1", "2", "4", "8"),
            "stream": ("False", "True"),
            "prefetch": ("0", "256", "1024"),
        }
        if self.nest.mode == "map":
            found["chunk"] = ("4096", "16384", "65536")
        if self._keeps:
            found["keep"] = ("True", "False")
        return found

    @property
    def moves(self) -> Mapping[str, Parameters]:
        found = {
            "vectorize": {"width": "16"},
            "unroll": {"unroll": "8"},
            "streaming_store": {"stream": "True"},
            "prefetch": {"prefetch": "256"},
        }
        if self._reduces:
            found["multi_accumulator"] = {"unroll": "8"}
        if self.nest.mode == "map":
            found["cache_block"] = {"chunk": "4096"}
            found["parallel_outer"] = {"chunk": "4096"}
        if self._keeps:
            found["recompute"] = {"keep": "False"}
        return found

    def first(self, hints: Hints) -> Parameters:
        """Lineage a is what measured best, b keeps results in cache, c is half as wide."""
        width = "16" if "512" in hints.simd or not hints.simd else "8"
        large = hints.output_mib >= LARGE_MIB
        unroll = {"map": "4", "row": "4", "column": "8"}[self.nest.mode]
        found = {name: values[0] for name, values in self.domains.items()}
        found |= {"width": width, "unroll": unroll, "stream": str(large)}
        if "chunk" in found:
            found["chunk"] = "16384"
        if hints.lineage == "b":
            found |= {"unroll": "8" if unroll == "4" else "4", "stream": str(not large)}
        elif hints.lineage != "a":
            found |= {"width": "8", "unroll": "2"}
        return found

    def techniques(self, parameters: Parameters) -> tuple[str, ...]:
        found = ["vectorize", "parallel_outer"]
        several = int(parameters["unroll"]) > 1
        heavy = {need for v in self.nest.values for need in v.needs} & HEAVY
        tags = {
            "unroll": several,
            "multi_accumulator": several and self._reduces,
            "fast_math_poly": bool(heavy - {"sqrt", "rsqrt", "sin", "cos", "pow"}),
            "fuse_epilogue": self._maps > 1,
            "streaming_store": parameters["stream"] == "True",
            "prefetch": parameters["prefetch"] != "0",
            "recompute": parameters.get("keep") == "False",
            "cache_block": self.nest.mode == "map",
        }
        return tuple(found + [tag for tag, there in tags.items() if there])

    def render(self, operator_source: str, parameters: Parameters) -> str:
        """The candidate under this schedule."""
        schedule = Schedule(
            width=int(parameters["width"]),
            unroll=int(parameters["unroll"]),
            stream=parameters["stream"] == "True",
            keep=parameters.get("keep", "True") == "True",
            chunk=int(parameters.get("chunk", "16384")),
            prefetch=int(parameters["prefetch"]),
        )
        arguments = [expression for _, expression in expressions.parameters(self.nest)]
        kernel = source(self.nest, schedule)
        return module(operator_source, kernel, call(self.nest.program, once("fused", arguments)))
