"""Costly values of a row that a later pass reads again: where they lie until then."""

from agents.offline.nest import Nest
from agents.offline.passes import Passes, Phase, along


def buffers(nest: Nest, phase: Phase, order: Passes) -> dict[int, int]:
    """By id of a value: the output in whose memory it lies, until the same thread writes that.

    Empty where one of them has no such output: then all are computed again.
    """
    free = [
        k
        for k in phase.outputs
        if along(nest, nest.outputs[k]) and nest.stores[k].dtype == "float32"
    ]
    found: dict[int, int] = {}
    for value in order.kept:
        later = [k for k in free if order.at[id(nest.outputs[k])] > order.at[id(value)]]
        if not later or value.kind != "f":
            return {}
        free.remove(later[0])
        found[id(value)] = later[0]
    return found
