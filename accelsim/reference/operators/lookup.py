"""Any elementwise function of one activation: a chain of float operators with numbers.

What comes in: an island, or a layer's site. What goes out: its claim and kernel. The function is
computed by TVM for each of the 256 values that an activation can have, in float32 operator by
operator (transcendental ones in float64, rounded to float32), and then looked up. It must not know
other families.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.operators import Operator
from accelsim.reference.site import Site

Step = tuple[str, tuple[int, ...], tuple[float, ...]]  # operator, earlier values, attributes
FARTHEST = 2.0**20  # steps: beyond every limit, and whole numbers in float32


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Steps in order; value 0 is the activation, value -1 - k is number k."""

    steps: tuple[Step, ...]
    numbers: tuple[float, ...]


@dataclass(slots=True)
class _Reader:
    """Steps read so far."""

    shape: tuple[int, ...]
    source: Source | None = None
    steps: list[Step] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)

    def place(self, value: Any) -> int | None:
        """Where a value stands, or None if it is no elementwise value of one source."""
        if isinstance(value, np.ndarray):
            if value.size != 1:
                return None
            self.numbers.append(float(value.reshape(())))
            return -len(self.numbers)
        if isinstance(value, Source):
            known = self.source is None or self.source.tensor.name == value.tensor.name
            if not known or value.shape != self.shape:
                return None
            self.source = value
            return 0
        if not isinstance(value, Node) or value.shape != self.shape:
            return None
        if id(value) not in self.places:
            if value.operator not in _steps():
                return None
            operands = [self.place(operand) for operand in value.operands]
            found = tuple(operand for operand in operands if operand is not None)
            if len(found) != len(operands):
                return None
            names = _ATTRIBUTES.get(value.operator, ())
            attributes = tuple(float(getattr(value.attrs, name)) for name in names)
            self.steps.append((value.operator, found, attributes))
            self.places[id(value)] = len(self.steps)
        return self.places[id(value)]


def recognise(island: Island) -> Claim | None:
    """Elementwise operators, clamps at the end left to the limits, on one source and numbers."""
    node = island.ending.value
    if not isinstance(node, Node) or island.rounding == "tflite":
        return None  # TFLite's functions have integer arithmetic of their own
    reader = _Reader(node.shape)
    if reader.place(node) is None or reader.source is None:
        return None
    core = Elementwise(tuple(reader.steps), tuple(reader.numbers))
    op = node.operator.removeprefix("relax.").removeprefix("nn.")
    name = op if len(core.steps) == 1 and len(node.operands) == 1 else "lookup"
    return Claim(name, core, (reader.source,), node.shape, island.ending.limits)


def kernel(site: Site) -> Kernel:
    """The 256 results, then a lookup."""
    core: Elementwise = site.layer.core
    source = site.inputs[0]
    values = {
        "input_zero_point": np.array(source.zero_point, np.int32),
        "scale": np.array(source.scale, np.float32),
        "numbers": np.array(core.numbers or (0.0,), np.float32),
        "output_scale": np.array(site.output.scale, np.float32),
        **ends_of(site),
    }
    return Kernel(_emit, values, (core.steps, site.rounding == "onnxruntime"))


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Each step is a loop nest of its own: nothing is fused into one rounding."""
    steps, quotient = emit.geometry
    start = emit.compute(
        (256,),
        lambda t, i: (i[0] - 128 - t[0][()]).astype("float32") * t[1][()],
        *(p["input_zero_point"], p["scale"]),
    )
    known = [start]
    for operator, operands, attributes in steps:
        known.append(_emit_step(emit, p, (operator, operands, attributes), known))
    inverse = emit.compute(
        (), lambda t, i: tirx.const(1.0, "float32") / t[0][()], p["output_scale"]
    )

    def scaled(t: Any, i: Any) -> Any:
        return t[0][i] / t[1][()] if quotient else t[0][i] * t[2][()]

    quotients = emit.compute((256,), scaled, known[-1], p["output_scale"], inverse)

    def rounded(t: Any, i: Any) -> Any:
        far = tirx.const(FARTHEST, "float32")
        steps_of = te.max(te.min(te.nearbyint(t[0][i]), far), -far)
        return finished(steps_of, *t[1:])

    ends = (p["zero_point"], p["low"], p["high"])
    table = emit.compute((256,), rounded, quotients, *ends)
    return emit.compute(
        emit.shapes.core_output,
        lambda t, i: t[1][t[0][i].astype("int32") + 128],
        *(emit.load(x[0]), table),
    )


def _emit_step(emit: Emitter, p: Values, step: Step, known: list[Any]) -> Any:
    operator, operands, attributes = step

    def body(t: Any, i: Any) -> Any:
        numbers, *tensors = t
        taken = iter(tensors)
        values = [next(taken)[i] if o >= 0 else numbers[-1 - o] for o in operands]
        return _steps()[operator](*values, *attributes)

    return emit.compute((256,), body, p["numbers"], *(known[o] for o in operands if o >= 0))


def _double(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """In float64, rounded to float32 once."""
    return lambda x: function(x.astype("float64")).astype("float32")


def _number(value: float, like: Any) -> Any:
    return tirx.const(value, str(getattr(like, "dtype", None) or like.ty.dtype))


def _logistic(x: Any) -> Any:
    one = _number(1.0, x)
    return one / (one + te.exp(-x))


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


def _steps() -> Mapping[str, Callable[..., Any]]:
    return {
        "relax.sigmoid": _double(_logistic),
        "relax.tanh": _double(_library("tanh")),
        "relax.exp": _double(te.exp),
        "relax.log": _double(te.log),
        "relax.sqrt": _double(te.sqrt),
        "relax.rsqrt": _double(lambda x: _number(1.0, x) / te.sqrt(x)),
        "relax.erf": _double(_library("erf")),
        "relax.sin": _double(_library("sin")),
        "relax.cos": _double(_library("cos")),
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


_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "relax.nn.leakyrelu": ("alpha",),
    "relax.nn.softplus": ("beta", "threshold"),
}

OPERATOR = Operator("lookup", recognise, kernel, rank=1, tensor_ranks=frozenset(range(1, 5)))
