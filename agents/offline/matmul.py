"""The family of matrix products with an elementwise epilogue, packed and register-tiled."""

from collections.abc import Mapping, Sequence

from agents.offline import address, tile
from agents.offline import expressions as cpp
from agents.offline.module import module
from agents.offline.product import ProductNest
from agents.offline.template import Hints, Parameters
from agents.offline.wrapper import call, once
from data.records import Node


class Matmul:
    """One operator with a single product whose result is only mapped elementwise."""

    family = "matmul"

    def __init__(self, graph: Sequence[Node]) -> None:
        self._whole = ProductNest(graph)
        self.nest = self._whole.nest
        self._body()

    # -- search -------------------------------------------------------------------------------

    @property
    def domains(self) -> Mapping[str, tuple[str, ...]]:
        return {
            "width": ("8", "16"),
            "tile": tile.TILES,
            "block": ("48", "96", "192", "480"),
        }

    @property
    def moves(self) -> Mapping[str, Parameters]:
        return {
            "vectorize": {"width": "16"},
            "register_tile": {"tile": "12x2"},
            "unroll": {"tile": "6x4"},
            "cache_block": {"block": "96"},
            "parallel_outer": {"block": "48"},
        }

    def first(self, hints: Hints) -> Parameters:
        wide = "512" in hints.simd or not hints.simd
        tile = {"a": "12x2", "b": "6x4"}.get(hints.lineage, "8x2") if wide else "6x2"
        block = {"a": "96", "b": "192"}.get(hints.lineage, "48")
        return {"width": "16" if wide else "8", "tile": tile, "block": block}

    def techniques(self, parameters: Parameters) -> tuple[str, ...]:
        """The tags; the widest tile keeps enough products in flight to count as unrolled."""
        found = ["vectorize", "register_tile", "cache_block", "pack", "parallel_outer"]
        if parameters["tile"] in ("12x2", "6x4"):
            found.append("unroll")
        if any(v.op == "map" for v in self.nest.values):
            found.append("fuse_epilogue")
        return tuple(found)

    # -- source -------------------------------------------------------------------------------

    def render(self, operator_source: str, parameters: Parameters) -> str:
        """The candidate under this schedule."""
        operands, numbers = self._whole.pointers, self._whole.numbers()
        arguments = [(f"const float* __restrict__ {name}", base) for name, base in operands]
        arguments += [(f"long {name}", value) for name, value in numbers.items()]
        arguments += cpp.parameters(self.nest)
        head = f'extern "C" void product({", ".join(d for d, _ in arguments)}) {{'
        kernel = tile.kernel("matmul.hpp", [head, *self._body(), "}"], parameters)
        expressions = [e for _, e in arguments]
        return module(
            operator_source, kernel, call(self.nest.program, once("product", expressions))
        )

    def _body(self) -> list[str]:
        return [
            "A += x_a; B += x_b;",
            "const long panels = (N + NR - 1) / NR, blocks = (M + MC - 1) / MC;",
            "float* packed = static_cast<float*>(",
            "    std::aligned_alloc(64, (batches * panels * K * NR * 4 + 64) / 64 * 64));",
            "#pragma omp parallel if (batches * M * N * K > 65536)",
            "{",
            "#pragma omp for schedule(static)",
            "for (long q = 0; q < batches * panels; ++q) {",
            "const long batch = q / panels, j = q % panels * NR;",
            "const float* from = B + batch * sbb + j * sbn;",
            "float* to = packed + q * K * NR;",
            "if (sbm == 1) pack_transposed(from, sbn, K, N - j, to);",
            "else pack(from, sbm, sbn, K, N - j, to);",
            "}",
            "#pragma omp for schedule(dynamic)",
            "for (long q = 0; q < batches * blocks; ++q) {",
            "const long batch = q / blocks, i0 = q % blocks * MC;",
            "const long i1 = i0 + MC < M ? i0 + MC : M;",
            "for (long panel = 0; panel < panels; ++panel) {",
            "const float* b = packed + (batch * panels + panel) * K * NR;",
            "const float* a = A + batch * sab;",
            "long i = i0;",
            "auto finish = [&](V product, int r, int v) __attribute__((always_inline)) {",
            "const long c = panel * NR + v * W, left = N - c;",
            "if (left <= 0) return;",
            *self._finish(),
            "};",
            "for (; i + MR <= i1; i += MR) tile<MR>(a + i * sam, sam, san, b, K, finish);",
            "for (; i + 2 <= i1; i += 2) tile<2>(a + i * sam, sam, san, b, K, finish);",
            "for (; i < i1; ++i) tile<1>(a + i * sam, sam, san, b, K, finish);",
            "}", "}", "}",
            "std::free(packed);",
        ]  # fmt: skip

    def _finish(self) -> list[str]:
        places = self._whole.place("i + r")
        places += [
            f"const long o_{place.variable} = {address.offset(self.nest, place)};"
            for place in cpp.places(self.nest)
        ]
        return tile.finish(self.nest, places)
