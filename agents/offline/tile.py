"""The register tile of the C++ products: rows of splats times vectors of a packed panel."""

from importlib.resources import files

from agents.offline import address, prelude
from agents.offline import expressions as cpp
from agents.offline.address import Lanes
from agents.offline.nest import Nest

TILES = ("4x2", "6x2", "8x2", "12x2", "6x4")
"""Rows by vectors; accumulators fill the registers from 12 x 2 on."""


def kernel(file: str, body: list[str], parameters: dict[str, str]) -> str:
    """C++ of a product kernel: the tile, the template `file` of its packing, and the body."""
    rows, vectors = parameters["tile"].split("x")
    folder = files("agents.offline") / "templates"
    text = "".join((folder / f).read_text(encoding="utf-8") for f in ("tile.hpp", file))
    values = {"ROWS": rows, "VECTORS": vectors, **{k.upper(): v for k, v in parameters.items()}}
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return prelude.text("\n".join([text, *body, ""]), int(parameters["width"]))


def finish(nest: Nest, places: list[str]) -> list[str]:
    """The epilogue on one vector of the product, and its store; `places`: where the vector lies."""
    kernel = cpp.Expressions(nest)
    out, lanes = [*places], Lanes(left="left")
    for value in nest.values:
        name = kernel.names[id(value)]
        if value.op == "product":
            out.append(f"const V {name} = product;")
        elif value.op in ("load", "map", "iota"):
            text = kernel.expression(value, lanes)
            out.append(f"const {cpp.lane_type(value)} {name} = {text};")
    for store, value in zip(nest.stores, nest.outputs, strict=True):
        name = kernel.names[id(value)]
        out.append(address.store(nest, store, lanes, name, stream=False))
    return out
