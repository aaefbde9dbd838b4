"""Elementwise float functions of one quantized tensor, evaluated on all 256 of its values.

What comes in: the last float operator of an island. What goes out: its 256 float32 results and the
chain of operators that gave them, or why there is no table. Arithmetic is float32, one operator
after the other, as PyTorch computes it; transcendental functions are float64 rounded to float32. It
must not know the NPU's table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import F32
from accelsim.legalize.frame import Frame, Leaf, leaf_of
from accelsim.legalize.graph import Node
from accelsim.legalize.tflite_functions import TOTAL

Operands = list[F32]
Function = Callable[[Operands, Any], Any]
Chain = tuple[tuple[str, tuple[str | float, ...]], ...]
"""Operators in order, each with its operands: "x", the place of an earlier one, or a number."""
MANY = "lookup"
"""What a layer of several operators is called, if the chain has no name of its own."""


@dataclass(frozen=True, slots=True)
class Results:
    """float32 results for the stored int8 values -128 to 127 of one leaf."""

    leaf: Leaf
    reals: F32  # (256,)
    chain: Chain

    @property
    def function(self) -> str:
        """The name of the chain."""
        if self.chain in NAMED:
            return NAMED[self.chain]
        return FUNCTIONS[f"relax.{self.chain[0][0]}"] if len(self.chain) == 1 else MANY


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a function of one tensor has no table."""

    reason: str


def results(frame: Frame, node: Node) -> Results | Unusable | None:
    """The function that ends in `node`; None where it is not elementwise on one tensor."""
    walk = _Walk(frame, node.shape)
    reals = walk.value(node.var)
    if reals is None or walk.leaf is None or not walk.chain:
        return None
    low, high = (limit - walk.leaf.quantization.shift for limit in walk.leaf.quantization.limits)
    total = frame.rounding == "tflite" and FUNCTIONS.get(node.op) in TOTAL
    if np.isnan(reals[low + 128 : high + 129]).any() and not total:
        return Unusable(f"{node.op.removeprefix('relax.')} has no value for some of its inputs")
    return Results(
        walk.leaf, np.nan_to_num(reals, nan=0.0, posinf=np.inf, neginf=-np.inf), tuple(walk.chain)
    )


class _Walk:
    """Evaluates operators from an island's end to its leaf."""

    def __init__(self, frame: Frame, shape: tuple[int, ...]) -> None:
        self.frame = frame
        self.shape = shape
        self.leaf: Leaf | None = None
        self.chain: list[tuple[str, tuple[str | float, ...]]] = []
        self._known: dict[Any, F32 | None] = {}
        self._places: dict[Any, str] = {}

    def value(self, expr: Any) -> F32 | None:
        """256 results or one number; None where it is neither."""
        graph = self.frame.graph
        number = graph.constant(expr)
        if number is None and isinstance(getattr(expr, "value", None), int | float):
            number = np.asarray(expr.value)
        if number is not None:
            return number.reshape(1).astype(np.float32) if number.size == 1 else None
        node = graph.producer(expr)
        if node is None or node.shape != self.shape:
            return None
        if node.var not in self._known:
            self._known[node.var] = self._compute(node)
        return self._known[node.var]

    def _compute(self, node: Node) -> F32 | None:
        if node.op == "relax.dequantize":
            return self._of_leaf(node)
        function = _COMPUTED.get(node.op)
        if function is None:
            return None
        operands = [self.value(argument) for argument in node.args]
        if any(operand is None for operand in operands):
            return None
        attributes = [
            float(getattr(node.value.attrs, name)) for name in _ATTRIBUTES.get(node.op, ())
        ]
        places = [self._place(argument) for argument in node.args]
        self.chain.append((node.op.removeprefix("relax."), (*places, *attributes)))
        self._places[node.var] = str(len(self.chain))
        with np.errstate(all="ignore"):
            result = function(list(operands), node.value.attrs)  # type: ignore[arg-type]
        return np.asarray(result, np.float32)

    def _place(self, expr: Any) -> str | float:
        """How a chain names an operand that has a value."""
        node = self.frame.graph.producer(expr)
        if node is None or node.op == "constant":
            (number,) = self.value(expr)  # type: ignore[misc]
            return float(number)
        return self._places.get(node.var, "x")

    def _of_leaf(self, node: Node) -> F32 | None:
        leaf = leaf_of(self.frame, node.var)
        if leaf is None or (self.leaf is not None and not leaf.var.same_as(self.leaf.var)):
            return None
        self.leaf = leaf
        centred = np.arange(-128, 128, dtype=np.int32) - leaf.quantization.int8_zero_point
        return centred.astype(np.float32) * leaf.quantization.scale


def _exactly(function: Callable[[NDArray[np.float64]], Any]) -> Function:
    """A function of one operand in float64, rounded once."""
    return lambda x, _: np.asarray(function(x[0].astype(np.float64)), np.float32)


def _exp(x: F32) -> F32:
    return np.exp(x.astype(np.float64)).astype(np.float32)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _softplus(x: Operands, attrs: Any) -> Any:
    wide, beta = x[0].astype(np.float64), float(attrs.beta)
    linear = wide * beta > float(attrs.threshold)
    return np.where(linear, wide, np.log1p(np.exp(np.where(linear, 0, wide * beta))) / beta)


def _selu(x: Any) -> Any:
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


_COMPUTED: Mapping[str, Function] = {
    "relax.sigmoid": lambda x, _: np.float32(1) / (np.float32(1) + _exp(-x[0])),
    "relax.tanh": _exactly(np.tanh),
    "relax.exp": _exactly(np.exp),
    "relax.log": _exactly(np.log),
    "relax.sqrt": _exactly(np.sqrt),
    "relax.rsqrt": _exactly(lambda x: 1 / np.sqrt(x)),
    "relax.erf": _exactly(_erf),
    "relax.sin": _exactly(np.sin),
    "relax.cos": _exactly(np.cos),
    "relax.tan": _exactly(np.tan),
    "relax.asin": _exactly(np.arcsin),
    "relax.acos": _exactly(np.arccos),
    "relax.atan": _exactly(np.arctan),
    "relax.sinh": _exactly(np.sinh),
    "relax.cosh": _exactly(np.cosh),
    "relax.asinh": _exactly(np.arcsinh),
    "relax.acosh": _exactly(np.arccosh),
    "relax.atanh": _exactly(np.arctanh),
    "relax.greater": lambda x, _: x[0] > x[1],
    "relax.less": lambda x, _: x[0] < x[1],
    "relax.where": lambda x, _: np.where(x[0] != 0, x[1], x[2]),
    "relax.nn.silu": _exactly(lambda x: x * _sigmoid(x)),
    "relax.nn.gelu": _exactly(lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))),
    "relax.nn.gelu_tanh": _exactly(_gelu_tanh),
    "relax.nn.selu": _exactly(_selu),
    "relax.nn.softplus": _softplus,
    "relax.nn.leakyrelu": lambda x, attrs: np.where(
        x[0] > 0, x[0], x[0] * np.float32(float(attrs.alpha))
    ),
    "relax.nn.relu": lambda x, _: np.maximum(x[0], np.float32(0)),
    "relax.clip": lambda x, _: np.minimum(np.maximum(x[0], x[1]), x[2]),
    "relax.add": lambda x, _: x[0] + x[1],
    "relax.subtract": lambda x, _: x[0] - x[1],
    "relax.multiply": lambda x, _: x[0] * x[1],
    "relax.divide": lambda x, _: x[0] / x[1],
    "relax.maximum": lambda x, _: np.maximum(x[0], x[1]),
    "relax.minimum": lambda x, _: np.minimum(x[0], x[1]),
    "relax.power": lambda x, _: np.power(x[0].astype(np.float64), x[1].astype(np.float64)),
    "relax.abs": lambda x, _: np.abs(x[0]),
    "relax.negative": lambda x, _: -x[0],
    "relax.square": lambda x, _: x[0] * x[0],
    "relax.sign": lambda x, _: np.sign(x[0]),
    "relax.floor": lambda x, _: np.floor(x[0]),
    "relax.ceil": lambda x, _: np.ceil(x[0]),
    "relax.round": lambda x, _: np.rint(x[0]),
    "relax.trunc": lambda x, _: np.trunc(x[0]),
}
_ATTRIBUTES = {
    "relax.nn.leakyrelu": ("alpha",),
    "relax.nn.softplus": ("beta", "threshold"),
}
_HARD: Chain = (("add", ("x", 3.0)), ("clip", ("1", 0.0, 6.0)), ("divide", ("2", 6.0)))
NAMED: Mapping[Chain, str] = {
    _HARD: "hard_sigmoid",
    (*_HARD, ("multiply", ("x", "3"))): "hard_swish",
    (
        *(("exp", ("x",)), ("subtract", (1.0, "1")), ("nn.relu", ("2",))),
        *(("multiply", (-1.0, "3")), ("nn.relu", ("x",)), ("add", ("4", "5"))),
    ): "elu",
    (("nn.softplus", ("x", 1.0, 20.0)), ("tanh", ("1",)), ("multiply", ("x", "2"))): "mish",
}
"""Chains that PyTorch's exported graph has in place of one operator, and its name."""
_ARITHMETIC = {
    *("relax.add", "relax.subtract", "relax.multiply", "relax.divide", "relax.maximum"),
    *("relax.minimum", "relax.clip", "relax.nn.relu", "relax.greater", "relax.less"),
    "relax.where",
}
FUNCTIONS: Mapping[str, str] = {
    op: MANY if op in _ARITHMETIC else op.removeprefix("relax.").removeprefix("nn.")
    for op in _COMPUTED
}
"""Relax operator → what a layer of this operator alone is called."""
