"""The family of convolutions of any dimension with an elementwise epilogue, as implicit products.

Rows of the product are output channels, columns are outputs: a panel of them is gathered from the
input for all channels and taps, once for all output channels. A transposed convolution falls into
one product for each residue of the output's index modulo the stride, each with its own taps.
"""

from collections.abc import Mapping, Sequence

from agents.offline import address, tile
from agents.offline import expressions as cpp
from agents.offline.convolution import ConvolutionNest
from agents.offline.module import module
from agents.offline.nest import Place
from agents.offline.template import Hints, Parameters
from agents.offline.wrapper import call, once
from data.records import Node


class Direct:
    """One operator with a single convolution whose result is only mapped elementwise."""

    family = "convolution"

    def __init__(self, graph: Sequence[Node]) -> None:
        self._whole = ConvolutionNest(graph)
        self.nest = self._whole.nest
        self._rows = self.nest.program.axes.extent(self._whole.convolution.result.dims[1])
        self._rows //= self._whole.convolution.groups
        self._body()

    # -- search -------------------------------------------------------------------------------

    @property
    def domains(self) -> Mapping[str, tuple[str, ...]]:
        return {"width": ("8", "16"), "tile": tile.TILES}

    @property
    def moves(self) -> Mapping[str, Parameters]:
        return {
            "vectorize": {"width": "16"},
            "register_tile": {"tile": "12x2"},
            "unroll": {"tile": "6x4"},
        }

    def first(self, hints: Hints) -> Parameters:
        """The largest tile that the channels of a group fill."""
        wide = "512" in hints.simd or not hints.simd
        fitting = "12x2" if self._rows >= 12 else ("6x4" if self._rows >= 6 else "4x2")
        rows = {"a": fitting, "b": "8x2"}.get(hints.lineage, "6x4") if wide else "6x2"
        return {"width": "16" if wide else "8", "tile": rows}

    def techniques(self, parameters: Parameters) -> tuple[str, ...]:
        found = ["vectorize", "register_tile", "pack", "parallel_outer"]
        if parameters["tile"] in ("12x2", "6x4"):
            found.append("unroll")
        if any(v.op == "map" for v in self.nest.values):
            found.append("fuse_epilogue")
        return tuple(found)

    # -- source -------------------------------------------------------------------------------

    def render(self, operator_source: str, parameters: Parameters) -> str:
        """The candidate under this schedule."""
        arguments = [(f"const float* __restrict__ {n}", e) for n, e in self._whole.pointers]
        arguments += [(f"long {name}", value) for name, value in self._whole.numbers().items()]
        arguments += cpp.parameters(self.nest)
        head = f'extern "C" void convolve({", ".join(d for d, _ in arguments)}) {{'
        kernel = tile.kernel("convolution.hpp", [head, *self._body(), "}"], parameters)
        line = once("convolve", [e for _, e in arguments])
        return module(operator_source, kernel, call(self.nest.program, line))

    def _body(self) -> list[str]:
        return [*self._parts(), *self._weights(), *self._loops()]

    def _parts(self) -> list[str]:
        """The products that the convolution falls into."""
        c = self._whole.convolution
        transposed = "true" if c.transposed else "false"
        return [
            f"const Axis axes[3] = {{{', '.join(self._whole.axes())}}};",
            f"constexpr bool transposed = {transposed};",
            f"constexpr long groups = {c.groups};",
            "const long blocks = (OC + MR - 1) / MR, volume = taps0 * taps1 * taps2;",
            "std::vector<Part> parts;",
            "long total = 0;",
            "const auto apart = [&](int k) { return transposed ? axes[k].stride : 1; };",
            "for (long d = 0; d < apart(0); ++d)",
            "for (long h = 0; h < apart(1); ++h)",
            "for (long w = 0; w < apart(2); ++w) {",
            "Part part = {taps(axes[0], transposed, d), taps(axes[1], transposed, h),",
            "             taps(axes[2], transposed, w), 0, total};",
            "part.depth = IC * part.d.at.size() * part.h.at.size() * part.w.at.size();",
            "total += groups * blocks * MR * part.depth;",
            "parts.push_back(part);",
            "}",
            "long deepest = 0;",
            "for (const Part& part : parts) if (part.depth > deepest) deepest = part.depth;",
        ]

    def _weights(self) -> list[str]:
        step = "OC * volume" if self._whole.convolution.transposed else "volume"
        start = "(g * IC * OC + o)" if self._whole.convolution.transposed else "(g * OC + o) * IC"
        return [
            "float* packed = static_cast<float*>(",
            "    std::aligned_alloc(64, total * 4 / 64 * 64 + 64));",
            "#pragma omp parallel",
            "{",
            "for (const Part& part : parts) {",
            "#pragma omp for schedule(static)",
            "for (long q = 0; q < groups * OC; ++q) {",
            "const long g = q / OC, o = q % OC;",
            "float* to = packed + part.weights + (g * blocks + o / MR) * MR * part.depth + o % MR;",
            f"interleave(F + {start} * volume, IC, {step}, axes, part, to);",
            "}",
            "}",
        ]

    def _loops(self) -> list[str]:
        flat = self._whole.convolution.flat
        lanes = "out0 * out1 * out2" if flat else "part.w.outputs"
        rows = "1" if flat else "part.d.outputs * part.h.outputs"
        return [
            "float* panel = static_cast<float*>(",
            "    std::aligned_alloc(64, (deepest * NR * 4 + 64) / 64 * 64));",
            "std::memset(panel, 0, deepest * NR * 4);",
            "for (const Part& part : parts) {",
            f"const long lanes = {lanes}, rows = {rows}, panels = (lanes + NR - 1) / NR;",
            "#pragma omp for schedule(dynamic) nowait",
            "for (long q = 0; q < batch * groups * rows * panels; ++q) {",
            "const long at = q % panels * NR, row = q / panels % rows;",
            "const long g = q / panels / rows % groups, n = q / panels / rows / groups;",
            *self._runs(),
            "columns(X + n * xn + g * IC * xc, IC, xc, axes, part, runs, count, panel);",
            *self._tiles(),
            "}",
            "}",
            "std::free(panel);",
            "}",
            "std::free(packed);",
        ]

    def _runs(self) -> list[str]:
        """The rows that the panel's outputs lie in."""
        if self._whole.convolution.flat:
            return [
                "Run runs[NR]; int count = 0; (void)row;",
                "for (long lane = 0; lane < NR && at + lane < lanes; ++count) {",
                "const long p = at + lane, w = p % out2;",
                "long size = out2 - w < NR - lane ? out2 - w : NR - lane;",
                "runs[count] = {lane, size, p / out2 / out1, p / out2 % out1, w};",
                "lane += size;",
                "}",
            ]
        return [
            "const long j = row / part.h.outputs, k = row % part.h.outputs;",
            "const long size = lanes - at < NR ? lanes - at : NR;",
            "const Run runs[1] = {{0, size, j, k, at}}; constexpr int count = 1;",
            "const long od = part.d.residue + part.d.apart * j;",
            "const long oh = part.h.residue + part.h.apart * k;",
            "(void)od; (void)oh;",
        ]

    def _tiles(self) -> list[str]:
        return [
            "const float* a = packed + part.weights + g * blocks * MR * part.depth;",
            "long i = 0;",
            "auto finish = [&](V product, int r, int v) __attribute__((always_inline)) {",
            "const long c = at + v * W, left = lanes - c;",
            "if (left <= 0) return;",
            "const long channel = g * OC + i + r; (void)channel;",
            *self._finish(),
            "};",
            "for (; i + MR <= OC; i += MR, a += MR * part.depth)",
            "  tile<MR>(a, 1, MR, panel, part.depth, finish);",
            "const long rest = i;",
            "for (; i + 4 <= OC; i += 4) tile<4>(a + i - rest, 1, MR, panel, part.depth, finish);",
            "for (; i + 2 <= OC; i += 2) tile<2>(a + i - rest, 1, MR, panel, part.depth, finish);",
            "for (; i < OC; ++i) tile<1>(a + i - rest, 1, MR, panel, part.depth, finish);",
        ]

    def _finish(self) -> list[str]:
        places = self._whole.indices(("n", "channel", "od", "oh", "0"))
        places += [self._offset(place) for place in cpp.places(self.nest)]
        return tile.finish(self.nest, places)

    def _offset(self, place: Place) -> str:
        """Where a row begins; lanes that are apart begin at the residue."""
        text = address.offset(self.nest, place)
        step = address.stride(place, self.nest.lanes)
        apart = self._whole.convolution.apart
        if apart > 1 and step is not None:
            text += f" + part.w.residue * ({step} / {apart})"
        return f"const long o_{place.variable} = {text};"
