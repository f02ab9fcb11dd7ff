"""Lowering rules of reductions, scans, norms and losses."""

import math

from agents.offline.axes import UncoveredError
from agents.offline.lowering import Lowering, as_float, scalar
from agents.offline.module import attribute
from agents.offline.program import Value, count
from agents.offline.reshapes import renamed
from agents.offline.rule import Arguments, Rule, ints, rank
from data.records import Node


def _reduce(how: str) -> Rule:
    def rule(state: Lowering, _: Node, a: Arguments) -> Value:
        return state.reduce(how, a.tensor(0), a.plain(1, "dim"), keep=a.flag(2, "keepdim"))

    return rule


def _mean(state: Lowering, _: Node, a: Arguments) -> Value:
    return state.mean(a.tensor(0), a.plain(1, "dim"), keep=a.flag(2, "keepdim"))


def _best(how: str) -> Rule:
    """`max.dim` and `min.dim` have two results, `max.default` has one."""

    def rule(state: Lowering, _: Node, a: Arguments) -> Value | tuple[Value, ...]:
        x = a.tensor(0)
        if a.op.endswith(".other"):
            return state.map(f"v{how}({{0}}, {{1}})", x, a.tensor(1))
        if not a.op.endswith(".dim"):
            return state.reduce(how, x)
        dim, keep = int(a.plain(1, "dim")), a.flag(2, "keepdim")
        best = state.reduce(how, x, dim, keep=keep)
        return best, state.reduce(f"arg{how}", x, dim, keep=keep)

    return rule


def _variance(state: Lowering, x: Value, dims: object, correction: float, *, keep: bool) -> Value:
    """Two passes: the mean first, then the squares about it."""
    x = as_float(x)
    centred = state.sub(x, state.mean(x, dims, keep=True))
    total = state.reduce("sum", state.mul(centred, centred), dims, keep=keep)
    elements = state.sub(count(total.over), scalar(correction))
    return state.div(total, elements)


def _var(*, root: bool = False) -> Rule:
    def rule(state: Lowering, _: Node, a: Arguments) -> Value:
        dims, keep, correction = None, a.flag(99, "keepdim"), 1.0
        if a.op.endswith(".correction"):
            dims, correction = a.plain(1, "dim"), float(a.plain(99, "correction", 1.0))
        elif a.op.endswith(".dim"):
            dims, correction = a.plain(1, "dim"), float(a.plain(2, "unbiased", 1))
            keep = a.flag(3, "keepdim")
        else:
            correction = float(a.plain(1, "unbiased", 1))
        result = _variance(state, a.tensor(0), dims, correction, keep=keep)
        return state.unary("sqrt", result) if root else result

    return rule


def length(state: Lowering, x: Value, power: float, dims: object, *, keep: bool) -> Value:
    """The p-norm along `dims`."""
    size = state.unary("abs", x)
    if power == 2:
        return state.unary("sqrt", state.reduce("sum", state.mul(x, x), dims, keep=keep))
    if power == 1:
        return state.reduce("sum", size, dims, keep=keep)
    if power == math.inf:
        return state.reduce("max", size, dims, keep=keep)
    if power == -math.inf:
        return state.reduce("min", size, dims, keep=keep)
    raise UncoveredError(f"has no template for a norm of order {power}")


def _norm(state: Lowering, _: Node, a: Arguments) -> Value:
    power = a.plain(1, "ord" if "vector" in a.op else "p", 2)
    a.refuse(not isinstance(power, (int, float)), "this order")
    dims, keep = a.plain(2, "dim"), a.flag(3, "keepdim")
    return length(state, a.tensor(0), float(power), dims, keep=keep)


def _exponentials(state: Lowering, x: Value, dim: object) -> tuple[Value, Value, Value]:
    """The value minus its maximum, its exponential, the sum of those."""
    shifted = state.sub(x, state.reduce("max", x, dim, keep=True))
    powers = state.unary("exp", shifted)
    return shifted, powers, state.reduce("sum", powers, dim, keep=True)


def softmax(state: Lowering, x: Value, dim: object) -> Value:
    _, powers, total = _exponentials(state, as_float(x), dim)
    return state.mul(powers, state.unary("reciprocal", total))


def log_softmax(state: Lowering, x: Value, dim: object) -> Value:
    shifted, _, total = _exponentials(state, as_float(x), dim)
    return state.sub(shifted, state.unary("log", total))


def _softmax(state: Lowering, _: Node, a: Arguments) -> Value:
    return softmax(state, a.tensor(0), a.plain(1, "dim"))


def _log_softmax(state: Lowering, _: Node, a: Arguments) -> Value:
    return log_softmax(state, a.tensor(0), a.plain(1, "dim"))


def _logsumexp(state: Lowering, _: Node, a: Arguments) -> Value:
    x, dims, keep = as_float(a.tensor(0)), a.plain(1, "dim"), a.flag(2, "keepdim")
    # An all -inf row has no finite maximum to shift by.
    top = state.reduce("max", x, dims, keep=True)
    top = state.map("({0} == -HUGE_VALF ? splat(0.0f) : {0})", top)
    total = state.reduce("sum", state.unary("exp", state.sub(x, top)), dims, keep=True)
    result = state.add(state.unary("log", total), top)
    if keep:
        return result
    places = state.places(x, dims)
    return renamed(result, tuple(d for p, d in enumerate(result.dims) if p not in places))


def _scan(how: str) -> Rule:
    return lambda state, _, a: state.scan(how, a.tensor(0), int(a.plain(1, "dim")))


def _flip(state: Lowering, _: Node, a: Arguments) -> Value:
    """Lanes in the other direction, known by its place around a scan only."""
    x, dims = a.tensor(0), ints(a.plain(1, "dims"))
    a.refuse(len(dims) != 1, "several dimensions")
    over = x.dims[dims[0] % len(x.dims)]
    inner = x.args[0] if x.op == "scan" else None
    if inner is not None and inner.text == "flip" and inner.over == x.over == over:
        return state.scan(f"reverse_{x.text}", inner.args[0], dims[0])
    return Value(op="map", args=(as_float(x),), dims=x.dims, text="flip", over=over)


def _scaled(state: Lowering, x: Value, weight: Value | None, bias: Value | None) -> Value:
    if weight is not None:
        x = state.mul(x, weight)
    return x if bias is None else state.add(x, bias)


def _normalised(state: Lowering, x: Value, dims: object, eps: float) -> Value:
    centred = state.sub(x, state.mean(x, dims, keep=True))
    spread = state.mean(state.mul(centred, centred), dims, keep=True)
    return state.mul(centred, state.unary("rsqrt", state.add(spread, scalar(eps))))


def _layer_norm(state: Lowering, _: Node, a: Arguments) -> Value:
    x = as_float(a.tensor(0))
    dims = [-1 - d for d in range(rank(a.plain(1, "normalized_shape")))]
    result = _normalised(state, x, dims, float(a.plain(4, "eps", 1e-5)))
    return _scaled(state, result, a.optional(2, "weight"), a.optional(3, "bias"))


def _rms_norm(state: Lowering, _: Node, a: Arguments) -> Value:
    x = as_float(a.tensor(0))
    dims = [-1 - d for d in range(rank(a.plain(1, "normalized_shape")))]
    eps = float(a.plain(3, "eps", 1.1920928955078125e-07))
    spread = state.mean(state.mul(x, x), dims, keep=True)
    result = state.mul(x, state.unary("rsqrt", state.add(spread, scalar(eps))))
    return _scaled(state, result, a.optional(2, "weight"), None)


def _channels(x: Value | None, ndim: int) -> Value | None:
    """A vector over channels, seen from a tensor (N, C, ...)."""
    return None if x is None else renamed(x, (x.dims[0], *[()] * (ndim - 2)))


def _groups(a: Arguments, groups: int) -> str:
    """The number of groups as Python: a module says it, at whatever size it was made."""
    weight = a.plain(2, "weight")
    owner = str(weight["node"]).rpartition(".")[0] if isinstance(weight, dict) else ""
    return f'getattr({attribute(owner)}, "num_groups", {groups})' if owner else str(groups)


def _group_norm(state: Lowering, node: Node, a: Arguments) -> Value:
    x, groups = as_float(a.tensor(0)), int(a.plain(1, "num_groups"))
    batch, channels, *space = node.shape
    leaves = state.axes.leaves(x.dims[1])
    if len(leaves) == 1 and groups > 1:
        state.axes.split(leaves[0], groups, _groups(a, groups))
    view = (batch, groups, channels // groups * math.prod(space))
    grouped = renamed(x, state.axes.regroup(x.dims, view))
    result = _normalised(state, grouped, -1, float(a.plain(4, "eps", 1e-5)))
    result = renamed(result, state.axes.regroup(result.dims, node.shape))
    ndim = len(node.shape)
    weight, bias = (
        _channels(a.optional(k, name), ndim) for k, name in ((2, "weight"), (3, "bias"))
    )
    return _scaled(state, result, weight, bias)


def _batch_norm(state: Lowering, node: Node, a: Arguments) -> Value:
    x, ndim, eps = as_float(a.tensor(0)), len(node.shape), float(a.plain(7, "eps", 1e-5))
    weight = _channels(a.optional(1, "weight"), ndim)
    bias = _channels(a.optional(2, "bias"), ndim)
    if a.plain(5, "training"):
        dims = [d for d in range(ndim) if d != 1]
        return _scaled(state, _normalised(state, x, dims, eps), weight, bias)
    mean = _channels(a.tensor(3, "running_mean"), ndim)
    spread = _channels(a.tensor(4, "running_var"), ndim)
    assert mean is not None
    assert spread is not None
    scale = state.unary("rsqrt", state.add(spread, scalar(eps)))
    return _scaled(state, state.mul(state.sub(x, mean), scale), weight, bias)


def _instance_norm(state: Lowering, node: Node, a: Arguments) -> Value:
    a.refuse(not a.plain(5, "use_input_stats"), "running statistics")
    x, ndim = as_float(a.tensor(0)), len(node.shape)
    result = _normalised(state, x, list(range(2, ndim)), float(a.plain(7, "eps", 1e-5)))
    weight = _channels(a.optional(1, "weight"), ndim)
    return _scaled(state, result, weight, _channels(a.optional(2, "bias"), ndim))


def _matvec(state: Lowering, _: Node, a: Arguments) -> Value:
    """A product with a vector is a row reduction; other products are another family."""
    x, y = a.tensor(0), a.tensor(1)
    if len(y.dims) == 2 and not y.dims[1] and x.dims:
        return state.reduce("sum", state.mul(x, renamed(y, y.dims[:1])), -1, keep=True)
    if len(x.dims) == len(y.dims) == 2 and not x.dims[0]:
        return state.reduce("sum", state.mul(renamed(x, (x.dims[1], ())), y), 0, keep=True)
    if len(y.dims) != 1 or not x.dims:
        raise UncoveredError(f"has no template for {'.'.join(a.op.split('.')[:2])}")
    return state.reduce("sum", state.mul(x, y), -1)


REDUCTIONS: dict[str, Rule] = {
    **{how: _reduce(how) for how in ("sum", "prod", "argmax", "argmin")},
    "amax": _reduce("max"),
    "amin": _reduce("min"),
    **dict.fromkeys(("matmul", "mm", "mv", "dot"), _matvec),
    "mean": _mean,
    "max": _best("max"),
    "min": _best("min"),
    "var": _var(),
    "std": _var(root=True),
    "norm": _norm,
    "linalg_vector_norm": _norm,
    "softmax": _softmax,
    "_softmax": _softmax,
    "log_softmax": _log_softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "cumsum": _scan("sum"),
    "cumprod": _scan("prod"),
    "flip": _flip,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
}
