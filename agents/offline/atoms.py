"""Elementwise ATen operators as C++ over vector lanes."""

import math

UNARY: dict[str, tuple[str, str]] = {
    "neg": ("(-{0})", ""),
    "abs": ("abs_v({0})", "abs"),
    "exp": ("exp_v({0})", "exp"),
    "exp2": ("exp_v({0} * 0.693147182f)", "exp"),
    "expm1": ("expm1_v({0})", "expm1"),
    "log": ("log_v({0})", "log"),
    "log2": ("(log_v({0}) * 1.44269504f)", "log"),
    "log10": ("(log_v({0}) * 0.434294482f)", "log"),
    "log1p": ("log1p_v({0})", "log1p"),
    "sqrt": ("sqrt_v({0})", "sqrt"),
    "rsqrt": ("rsqrt_v({0})", "rsqrt"),
    "reciprocal": ("(1.0f / {0})", ""),
    "square": ("({0} * {0})", ""),
    "sigmoid": ("sigmoid_v({0})", "sigmoid"),
    "tanh": ("tanh_v({0})", "tanh"),
    "erf": ("erf_v({0})", "erf"),
    "sin": ("sin_v({0})", "sin"),
    "cos": ("cos_v({0})", "cos"),
    "relu": ("relu_v({0})", "relu"),
    "relu6": ("clamp_v({0}, 0.0f, 6.0f)", "clamp"),
    "silu": ("silu_v({0})", "silu"),
    "mish": ("mish_v({0})", "mish"),
    "hardswish": ("hardswish_v({0})", "hardswish"),
    "hardsigmoid": ("hardsigmoid_v({0})", "hardsigmoid"),
    "log_sigmoid": ("log_sigmoid_v({0})", "log_sigmoid"),
    "selu": ("elu_v({0}, 1.67326319f, 1.05070102f, 1.0f)", "elu"),
    "sign": ("sign_v({0})", "sign"),
    "sgn": ("sign_v({0})", "sign"),
    "round": ("round_v({0})", "round"),
    "floor": ("floor_v({0})", "round"),
    "ceil": ("ceil_v({0})", "round"),
    "trunc": ("trunc_v({0})", "round"),
}
"""One tensor, no scalars: C++ and the prelude piece it needs."""

BINARY: dict[str, tuple[str, str]] = {
    "mul": ("({0} * {1})", ""),
    "div": ("({0} / {1})", ""),
    "true_divide": ("({0} / {1})", ""),
    "maximum": ("vmax({0}, {1})", ""),
    "minimum": ("vmin({0}, {1})", ""),
    "fmax": ("vmax({0}, {1})", ""),
}
COMPARE = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
LOGICAL = {
    "logical_and": "&", "bitwise_and": "&", "__and__": "&",
    "logical_or": "|", "bitwise_or": "|", "__or__": "|",
    "logical_xor": "^", "bitwise_xor": "^",
}  # fmt: skip

HEAVY = frozenset(
    {
        "exp", "expm1", "log", "log1p", "sigmoid", "tanh", "erf", "sin", "cos", "pow", "silu",
        "gelu_erf", "gelu_tanh", "softplus", "mish", "log_sigmoid", "elu", "rsqrt", "sqrt",
    }
)  # fmt: skip
"""Pieces worth more to keep than to compute again in the next pass over a row."""

SCALED: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "leaky_relu": ("leaky_relu_v({0}, {a})", "leaky_relu", (0.01,)),
    "elu": ("elu_v({0}, {a}, {b}, {c})", "elu", (1.0, 1.0, 1.0)),
    "celu": ("elu_v({0}, {a}, 1.0f, 1.0f / {a})", "elu", (1.0,)),
    "hardtanh": ("clamp_v({0}, {a}, {b})", "clamp", (-1.0, 1.0)),
    "clamp": ("clamp_v({0}, {a}, {b})", "clamp", (-math.inf, math.inf)),
    "clamp_min": ("clamp_v({0}, {a}, HUGE_VALF)", "clamp", (-math.inf,)),
    "clamp_max": ("clamp_v({0}, -HUGE_VALF, {a})", "clamp", (math.inf,)),
    "softplus": ("softplus_v({0}, {a}, {b})", "softplus", (1.0, 20.0)),
    "threshold": ("({0} > {a} ? {0} : splat({b}))", "", (0.0, 0.0)),
    "hardshrink": ("((({0} >= -{a}) & ({0} <= {a})) ? splat(0.0f) : {0})", "", (0.5,)),
    "softshrink": (
        "({0} > {a} ? {0} - {a} : ({0} < -{a} ? {0} + {a} : splat(0.0f)))", "", (0.5,)
    ),
}  # fmt: skip
"""One tensor and scalars with these defaults, named a, b, c in the C++."""


def number(value: float) -> str:
    """A float literal of C++.

    >>> number(0.1), number(float("-inf"))
    ('0.1f', '-HUGE_VALF')
    """
    value = float(value)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value) or abs(value) > 3.4028235677973366e38:
        return "HUGE_VALF" if value > 0 else "-HUGE_VALF"
    return f"{value!r}f"
