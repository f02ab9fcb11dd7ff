"""A pair's pictures as one page in Markdown: its steps, and its best kernel under the roofline."""

from collections.abc import Sequence

from agents import plot
from agents.plot import HEIGHT, WIDTH
from agents.vector import Vector
from data.records import Iteration
from tasks import trajectory
from tasks.pages import best


def page(history: Sequence[Iteration]) -> str:
    """The page; empty where nothing was timed. The pictures are in it: it asks nobody for them."""
    steps, roof = Vector(WIDTH, HEIGHT), Vector(WIDTH, HEIGHT)
    shown = best(history)
    parts = []
    if trajectory.draw(steps, history):
        parts.append(f"![Speed-up of each step]({steps.uri})")
    if shown is not None and plot.draw(roof, shown, history):
        parts.append(f"![Roofline with the best kernel]({roof.uri})")
    return "\n\n".join(parts)
