"""A picture for people: what a canvas draws, as SVG with letters that a browser sets sharp."""

import base64
from xml.sax.saxutils import escape

from agents.canvas import BLACK, HIGH, WHITE, Colour, Point

LETTER = 9.5
"""Pixels of the letters' size before they are enlarged: 0.6 of it is their width."""
BORDER = 'paint-order="stroke" stroke="#ffffff" stroke-width="4"'
"""Of letters, so that lines do not run through words."""


class Vector:
    """White at first; what is drawn later lies above. Draws as `agents.canvas.Canvas` does."""

    def __init__(self, width: int, height: int) -> None:
        self._size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        self._parts = [f'<rect width="{width}" height="{height}" fill="{_name(WHITE)}"/>']

    def line(
        self, start: Point, end: Point, colour: Colour, *, width: float = 1.5, dashed: bool = False
    ) -> None:
        """A straight line."""
        (x1, y1), (x2, y2) = start, end
        dashes = ' stroke-dasharray="7 5"' if dashed else ""
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
            f' stroke="{_name(colour)}" stroke-width="{width:g}"{dashes}/>'
        )

    def dot(self, centre: Point, radius: float, colour: Colour, *, hollow: bool = False) -> None:
        """A disc, or a ring with a white inside."""
        (x, y), name = centre, _name(colour)
        inside = _name(WHITE) if hollow else name
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{inside}"'
            f' stroke="{name}" stroke-width="2"/>'
        )

    def text(self, place: Point, words: str, colour: Colour = BLACK, *, scale: int = 2) -> None:
        """One line from its upper left corner, about as wide as a canvas writes it."""
        x, y = place
        printable = "".join(c if c.isprintable() else "?" for c in words)
        self._parts.append(
            f'<text x="{x:.1f}" y="{y + 0.85 * HIGH * scale:.1f}" font-size="{LETTER * scale}"'
            f' font-family="monospace" {BORDER} fill="{_name(colour)}">{escape(printable)}</text>'
        )

    def svg(self) -> str:
        """The picture as a file."""
        return f'<svg xmlns="http://www.w3.org/2000/svg" {self._size}>{"".join(self._parts)}</svg>'

    @property
    def uri(self) -> str:
        """Itself as an address: no request is made for it, and no script in it would run."""
        data = self.svg().encode(errors="replace")
        return f"data:image/svg+xml;base64,{base64.b64encode(data).decode()}"


def _name(colour: Colour) -> str:
    """As SVG writes it."""
    return "#{:02x}{:02x}{:02x}".format(*colour)
