"""Lowering rules of elementwise operators."""

import math

from agents.offline.atoms import BINARY, COMPARE, LOGICAL, SCALED, UNARY, number
from agents.offline.axes import UncoveredError
from agents.offline.lowering import INTEGERS, Lowering, as_float, as_mask, scalar
from agents.offline.program import Value, const
from agents.offline.rule import Arguments, Rule
from data.records import Node


def _unary(name: str) -> Rule:
    return lambda state, _, a: state.unary(name, a.tensor(0))


def _binary(name: str) -> Rule:
    def rule(state: Lowering, _: Node, a: Arguments) -> Value:
        a.refuse(a.plain(9, "rounding_mode"), "a rounding mode")
        text, need = BINARY[name]
        return state.map(text, a.tensor(0), a.tensor(1), need=need)

    return rule


def _compare(sign: str) -> Rule:
    def rule(state: Lowering, _: Node, a: Arguments) -> Value:
        x, y = a.tensor(0), a.tensor(1)
        whole = {v.kind for v in (x, y) if v.op != "const"} == {"i"}
        if whole and all(v.op != "const" or _whole(v) for v in (x, y)):
            x, y = (v if v.op != "const" else _integer(v) for v in (x, y))
            return state.raw(f"({{0}} {sign} {{1}})", x, y, kind="b")
        return state.map(f"({{0}} {sign} {{1}})", x, y, kind="b")

    return rule


def _whole(value: Value) -> bool:
    return value.text.endswith(".0f") or value.text.removesuffix("f").lstrip("-").isdigit()


def _integer(value: Value) -> Value:
    return const(str(int(float(value.text.removesuffix("f")))))


def _logical(sign: str) -> Rule:
    def rule(state: Lowering, node: Node, a: Arguments) -> Value:
        a.refuse(node.dtype != "bool", "integer bits")
        x, y = as_mask(a.tensor(0)), as_mask(a.tensor(1))
        return state.raw(f"({{0}} {sign} {{1}})", x, y, kind="b")

    return rule


def _scaled(name: str) -> Rule:
    def rule(state: Lowering, _: Node, a: Arguments) -> Value:
        text, need, defaults = SCALED[name]
        for place, (letter, default) in enumerate(zip("abc", defaults, strict=False), start=1):
            given = a.plain(place, "", default)
            a.refuse(not isinstance(given, (int, float)), "a tensor as limit")
            text = text.replace("{" + letter + "}", number(given))
        return state.map(text, a.tensor(0), need=need)

    return rule


def _clamp(state: Lowering, _: Node, a: Arguments) -> Value:
    low, high = a.plain(1, "min", -math.inf), a.plain(2, "max", math.inf)
    a.refuse(isinstance(low, dict) or isinstance(high, dict), "a tensor as limit")
    return state.map(f"clamp_v({{0}}, {number(low)}, {number(high)})", a.tensor(0), need="clamp")


def _gelu(state: Lowering, _: Node, a: Arguments) -> Value:
    name = "gelu_tanh" if a.plain(1, "approximate", "none") == "tanh" else "gelu_erf"
    return state.map(f"{name}_v({{0}})", a.tensor(0), need=name)


def _sum(sign: str, *, flipped: bool = False) -> Rule:
    def rule(state: Lowering, _: Node, a: Arguments) -> Value:
        x, y = a.tensor(0), a.tensor(1)
        if (alpha := a.plain(2, "alpha", 1)) != 1:
            y = state.mul(y, scalar(alpha))
        if flipped:
            x, y = y, x
        return state.map(f"({{0}} {sign} {{1}})", x, y)

    return rule


POWERS = {
    2.0: "({0} * {0})", 1.0: "{0}", 3.0: "({0} * {0} * {0})", 4.0: "(({0} * {0}) * ({0} * {0}))",
    -1.0: "(1.0f / {0})", -2.0: "(1.0f / ({0} * {0}))",
}  # fmt: skip


def _pow(state: Lowering, _: Node, a: Arguments) -> Value:
    base, power = a.tensor(0), a.plain(1, "exponent")
    if isinstance(power, (int, float)):
        if float(power) in POWERS:
            return state.map(POWERS[float(power)], base)
        if power in (0.5, -0.5):
            return state.unary("sqrt" if power > 0 else "rsqrt", base)
    return state.map("pow_v({0}, {1})", base, a.tensor(1), need="pow")


def _where(state: Lowering, _: Node, a: Arguments) -> Value:
    mask, x, y = as_mask(a.tensor(0)), as_float(a.tensor(1)), as_float(a.tensor(2))
    return state.raw("({0} ? {1} : {2})", mask, x, y)


def _masked_fill(state: Lowering, _: Node, a: Arguments) -> Value:
    return state.raw(
        "({1} ? {2} : {0})", as_float(a.tensor(0)), as_mask(a.tensor(1)), as_float(a.tensor(2))
    )


def _not(state: Lowering, node: Node, a: Arguments) -> Value:
    a.refuse(node.dtype != "bool", "integer bits")
    return state.raw("(~{0})", as_mask(a.tensor(0)), kind="b")


def _cast(state: Lowering, node: Node, a: Arguments) -> Value:
    x = a.tensor(0)
    if node.dtype == "bool":
        return as_mask(x)
    if node.dtype in INTEGERS:
        return x if x.kind == "i" else state.unary("trunc", as_float(x))
    if node.dtype != "float32":
        raise UncoveredError(f"has no template for {node.dtype} arithmetic")
    return as_float(x)


def _remainder(state: Lowering, _: Node, a: Arguments) -> Value:
    """With the sign of the divisor."""
    quotient = state.map("floor_v({0} / {1})", a.tensor(0), a.tensor(1), need="round")
    return state.sub(a.tensor(0), state.mul(quotient, a.tensor(1)))


def _addcmul(state: Lowering, _: Node, a: Arguments) -> Value:
    product = state.mul(a.tensor(1), a.tensor(2))
    return state.add(a.tensor(0), state.mul(product, scalar(a.plain(3, "value", 1))))


def _lerp(state: Lowering, _: Node, a: Arguments) -> Value:
    x, y = a.tensor(0), a.tensor(1)
    return state.add(x, state.mul(a.tensor(2), state.sub(y, x)))


def _like(state: Lowering, _: Node, a: Arguments) -> Value:
    """`zeros_like`, `ones_like`, `full_like`: a constant with the shape of a tensor."""
    value = 1.0 if "ones" in a.op else 0.0
    text = number(a.plain(1, "fill_value")) if "full" in a.op else number(value)
    return state.raw(f"splat({text})", a.tensor(0))


def _dropout(_: Lowering, __: Node, a: Arguments) -> Value:
    a.refuse(a.plain(1, "p") and a.plain(2, "train"), "random numbers")
    return a.tensor(0)


ELEMENTWISE: dict[str, Rule] = {
    **{name: _unary(name) for name in UNARY},
    **{name: _binary(name) for name in BINARY},
    **{name: _compare(sign) for name, sign in COMPARE.items()},
    **{name: _logical(sign) for name, sign in LOGICAL.items()},
    **{name: _scaled(name) for name in SCALED},
    "clamp": _clamp,
    "gelu": _gelu,
    "add": _sum("+"),
    "sub": _sum("-"),
    "rsub": _sum("-", flipped=True),
    "pow": _pow,
    "where": _where,
    "masked_fill": _masked_fill,
    "logical_not": _not,
    "bitwise_not": _not,
    "to": _cast,
    "_to_copy": _cast,
    "type_as": _cast,
    "addcmul": _addcmul,
    "remainder": _remainder,
    "lerp": _lerp,
    "zeros_like": _like,
    "ones_like": _like,
    "full_like": _like,
    "dropout": _dropout,
}
