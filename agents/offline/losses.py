"""Lowering rules of losses to one number."""

from agents.offline.lowering import Lowering, as_float, scalar
from agents.offline.program import Value
from agents.offline.reductions import length, log_softmax
from agents.offline.rule import Arguments, Rule
from data.records import Node


def _reduced(state: Lowering, terms: Value, reduction: object) -> Value:
    """0 is none, 1 the mean, 2 the sum, as ATen counts."""
    if reduction == 0:
        return terms
    return state.mean(terms) if reduction == 1 else state.reduce("sum", terms)


def _pointwise(text: str) -> Rule:
    """A loss whose terms are `text` of input and target."""

    def rule(state: Lowering, _: Node, a: Arguments) -> Value:
        terms = state.map(text, a.tensor(0), a.tensor(1), need="abs")
        return _reduced(state, terms, a.plain(2, "reduction", 1))

    return rule


def _smooth_l1(state: Lowering, _: Node, a: Arguments) -> Value:
    beta = float(a.plain(3, "beta", 1.0))
    size = state.map("abs_v({0} - {1})", a.tensor(0), a.tensor(1), need="abs")
    terms = state.map(
        f"({{0}} < {beta!r}f ? {{0}} * {{0}} * {0.5 / beta!r}f : {{0}} - {0.5 * beta!r}f)", size
    )
    return _reduced(state, terms, a.plain(2, "reduction", 1))


def _huber(state: Lowering, _: Node, a: Arguments) -> Value:
    delta = float(a.plain(3, "delta", 1.0))
    size = state.map("abs_v({0} - {1})", a.tensor(0), a.tensor(1), need="abs")
    terms = state.map(
        f"({{0}} <= {delta!r}f ? 0.5f * {{0}} * {{0}} : {delta!r}f * ({{0}} - {0.5 * delta!r}f))",
        size,
    )
    return _reduced(state, terms, a.plain(2, "reduction", 1))


def _kl_div(state: Lowering, _: Node, a: Arguments) -> Value:
    x, target = as_float(a.tensor(0)), as_float(a.tensor(1))
    if a.flag(3, "log_target"):
        terms = state.mul(state.unary("exp", target), state.sub(target, x))
    else:
        # 0 log 0 is 0.
        logs = state.map("({0} == 0.0f ? splat(0.0f) : {0} * log_v({0}))", target, need="log")
        terms = state.sub(logs, state.mul(target, x))
    return _reduced(state, terms, a.plain(2, "reduction", 1))


def _negative_log(state: Lowering, a: Arguments, logs: Value) -> Value:
    """Mean or sum of minus the entries that the class indices choose."""
    target, reduction = a.tensor(1), a.plain(3, "reduction", 1)
    a.refuse(a.plain(2, "weight") is not None, "class weights")
    a.refuse(target.kind != "i" or len(logs.dims) != 2, "these targets")
    classes = Value(op="iota", dims=(logs.dims[1],), kind="i")
    column = Value(op="map", args=(target,), dims=(*target.dims, ()), kind="i", text="{0}")
    chosen = state.raw("({0} == {1})", column, classes, kind="b")
    picked = state.reduce("sum", state.raw("({0} ? {1} : splat(0.0f))", chosen, logs), 1)
    terms = state.unary("neg", picked)
    return _reduced(state, terms, reduction)


def _cross_entropy(state: Lowering, _: Node, a: Arguments) -> Value:
    a.refuse(a.plain(5, "label_smoothing", 0.0) != 0, "smoothed labels")
    return _negative_log(state, a, log_softmax(state, as_float(a.tensor(0)), -1))


def _nll(state: Lowering, _: Node, a: Arguments) -> Value:
    return _negative_log(state, a, as_float(a.tensor(0)))


def _cosine(state: Lowering, _: Node, a: Arguments) -> Value:
    x, y, dim = as_float(a.tensor(0)), as_float(a.tensor(1)), a.plain(2, "dim", 1)
    dot = state.reduce("sum", state.mul(x, y), dim)
    eps = scalar(float(a.plain(3, "eps", 1e-8)) ** 2)
    square = state.mul(
        state.reduce("sum", state.mul(x, x), dim), state.reduce("sum", state.mul(y, y), dim)
    )
    return state.mul(dot, state.unary("rsqrt", state.map("vmax({0}, {1})", square, eps)))


def _triplet(state: Lowering, _: Node, a: Arguments) -> Value:
    """How much nearer the positive is than the negative, below a margin."""
    anchor, positive, negative = (as_float(a.tensor(k)) for k in range(3))
    a.refuse(a.flag(6, "swap"), "swap")
    power, eps = float(a.plain(4, "p", 2.0)), scalar(float(a.plain(5, "eps", 1e-6)))

    def distance(x: Value) -> Value:
        return length(state, state.add(state.sub(anchor, x), eps), power, -1, keep=False)

    near, far = distance(positive), distance(negative)
    above = state.add(state.sub(near, far), scalar(float(a.plain(3, "margin", 1.0))))
    terms = state.map("vmax({0}, splat(0.0f))", above)
    return _reduced(state, terms, a.plain(7, "reduction", 1))


LOSSES: dict[str, Rule] = {
    "mse_loss": _pointwise("(({0} - {1}) * ({0} - {1}))"),
    "l1_loss": _pointwise("abs_v({0} - {1})"),
    "smooth_l1_loss": _smooth_l1,
    "huber_loss": _huber,
    "kl_div": _kl_div,
    "cross_entropy_loss": _cross_entropy,
    "nll_loss": _nll,
    "nll_loss_nd": _nll,
    "cosine_similarity": _cosine,
    "triplet_margin_loss": _triplet,
}
