"""The register tile of the C++ products: rows of splats times vectors of a packed panel."""

from importlib.resources import files

from agents.offline import prelude

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
