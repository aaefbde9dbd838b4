"""Elementwise float operators as the reference computes them in TVM: one expression an operator.

What comes in: float32 expressions. What goes out: a float32 expression; transcendental functions
are computed in float64 and rounded once. It must not know quantization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import te, tirx


def _double(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """In float64, rounded to float32 once."""
    return lambda x: function(x.astype("float64")).astype("float32")


def _number(value: float, like: Any) -> Any:
    return tirx.const(value, str(getattr(like, "dtype", None) or like.ty.dtype))


def _logistic(x: Any) -> Any:
    one = _number(1.0, x)
    return one / (one + te.exp(-x))


def _sigmoid(x: Any) -> Any:
    """In float32 but for the exponential."""
    one = _number(1.0, x)
    return one / (one + _double(te.exp)(-x))


def _library(name: str) -> Callable[[Any], Any]:
    """The C library's function: TVM's own erf and tanh are approximations."""
    return lambda x: tirx.call_pure_extern("float64", name, x)


def _gelu(x: Any) -> Any:
    half, root = _number(0.5, x), _number(0.70710678118654752440, x)
    return half * x * (_number(1.0, x) + _library("erf")(x * root))


def _gelu_tanh(x: Any) -> Any:
    inner = _number(0.79788456080286535588, x) * (x + _number(0.044715, x) * x * x * x)
    return _number(0.5, x) * x * (_number(1.0, x) + _library("tanh")(inner))


def _selu(x: Any) -> Any:
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    low = te.min(x, _number(0.0, x))
    bent = _number(alpha, x) * (te.exp(low) - _number(1.0, x))
    return _number(scale, x) * tirx.if_then_else(x > _number(0.0, x), x, bent)


def _softplus(x: Any, beta: float, threshold: float) -> Any:
    wide = x.astype("float64")
    turned = wide * _number(beta, wide)
    bent = _library("log1p")(te.exp(te.min(turned, _number(threshold, wide)))) / _number(beta, wide)
    return tirx.if_then_else(turned > _number(threshold, wide), wide, bent).astype("float32")


def _leaky(x: Any, alpha: float) -> Any:
    return tirx.if_then_else(x > _number(0.0, x), x, x * _number(alpha, x))


def _sign(x: Any) -> Any:
    up = tirx.if_then_else(x > _number(0.0, x), _number(1.0, x), _number(0.0, x))
    return tirx.if_then_else(x < _number(0.0, x), _number(-1.0, x), up)


def _power(x: Any, exponent: Any) -> Any:
    wide = (x.astype("float64"), exponent.astype("float64"))
    return tirx.call_pure_extern("float64", "pow", *wide).astype("float32")


_CURVES = ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
"""Functions that the C library has under the same name."""


def steps_of() -> Mapping[str, Callable[..., Any]]:
    """Relax operator → its expression of operands and attributes."""
    return {
        "relax.sigmoid": _sigmoid,
        "relax.tanh": _double(_library("tanh")),
        "relax.exp": _double(te.exp),
        "relax.log": _double(te.log),
        "relax.sqrt": _double(te.sqrt),
        "relax.rsqrt": _double(lambda x: _number(1.0, x) / te.sqrt(x)),
        "relax.erf": _double(_library("erf")),
        "relax.sin": _double(_library("sin")),
        "relax.cos": _double(_library("cos")),
        **{f"relax.{name}": _double(_library(name)) for name in _CURVES},
        "relax.greater": lambda a, b: (a > b).astype("float32"),
        "relax.less": lambda a, b: (a < b).astype("float32"),
        "relax.where": lambda c, a, b: tirx.if_then_else(c > _number(0.5, c), a, b),
        "relax.nn.silu": _double(lambda x: x * _logistic(x)),
        "relax.nn.gelu": _double(_gelu),
        "relax.nn.gelu_tanh": _double(_gelu_tanh),
        "relax.nn.selu": _double(_selu),
        "relax.nn.softplus": _softplus,
        "relax.nn.leakyrelu": _leaky,
        "relax.nn.relu": lambda x: te.max(x, _number(0.0, x)),
        "relax.clip": lambda x, low, high: te.min(te.max(x, low), high),
        "relax.add": lambda a, b: a + b,
        "relax.subtract": lambda a, b: a - b,
        "relax.multiply": lambda a, b: a * b,
        "relax.divide": lambda a, b: a / b,
        "relax.maximum": te.max,
        "relax.minimum": te.min,
        "relax.power": _power,
        "relax.abs": te.abs,
        "relax.negative": lambda x: -x,
        "relax.square": lambda x: x * x,
        "relax.sign": _sign,
        "relax.floor": te.floor,
        "relax.ceil": te.ceil,
        "relax.round": te.nearbyint,
        "relax.trunc": te.trunc,
    }


ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "relax.nn.leakyrelu": ("alpha",),
    "relax.nn.softplus": ("beta", "threshold"),
}
"""Attributes that an expression takes, by Relax operator."""
