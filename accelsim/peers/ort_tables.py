"""Elementwise operators of ONNX Runtime between DequantizeLinear and QuantizeLinear.

What comes in: a random generator. What goes out: a `Trial` with ONNX Runtime's output on all 256
values. These are operators whose float32 results are exact, so their tables are, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from tvm import relax

from accelsim.artifacts import Lookup
from accelsim.peers import qdq
from accelsim.peers.case import Trial, chain, shape4
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.onnx_model import Array, Step, stored
from accelsim.peers.ort_draw import F32, Draw
from accelsim.peers.ort_pointwise import table

Function = Callable[[Array, Mapping[str, float]], Array]
Body = Callable[[Any, list[Any], Mapping[str, float]], Any]


def _thresholded(v: Array, a: Mapping[str, float]) -> Array:
    return np.where(v > F32(a["alpha"]), v, F32(0))


def _shrink(v: Array, a: Mapping[str, float]) -> Array:
    inner = np.where(v > F32(a["lambd"]), v - F32(a["bias"]), F32(0))
    return np.where(v < -F32(a["lambd"]), v + F32(a["bias"]), inner)


def _chosen(build: Any, condition: Any, value: Any, other: Any) -> Any:
    return build.emit(relax.op.where(build.emit(condition), value, other))


def _thresholded_body(build: Any, values: list[Any], a: Mapping[str, float]) -> Any:
    above = relax.op.greater(values[0], _number(a["alpha"]))
    return _chosen(build, above, values[0], _number(0.0))


def _shrink_body(build: Any, values: list[Any], a: Mapping[str, float]) -> Any:
    value, bias = values[0], _number(a["bias"])
    less, more = (build.emit(one(value, bias)) for one in (relax.op.subtract, relax.op.add))
    above = relax.op.greater(value, _number(a["lambd"]))
    inner = _chosen(build, above, less, _number(0.0))
    return _chosen(build, relax.op.less(value, _number(-a["lambd"])), more, inner)


def _number(value: float) -> Any:
    return relax.const(value, "float32")


def _softsign(build: Any, values: list[Any], _: Mapping[str, float]) -> Any:
    raised = build.emit(relax.op.add(build.emit(relax.op.abs(values[0])), _number(1.0)))
    return build.emit(relax.op.divide(values[0], raised))


def _called(function: Any) -> Body:
    return lambda build, values, _: qdq.call(function)(build, values)


FUNCTIONS: Mapping[str, tuple[Function, Body]] = {
    "Abs": (lambda v, _: np.abs(v), _called(relax.op.abs)),
    "Neg": (lambda v, _: -v, _called(relax.op.negative)),
    "Floor": (lambda v, _: np.floor(v), _called(relax.op.floor)),
    "Ceil": (lambda v, _: np.ceil(v), _called(relax.op.ceil)),
    "Round": (lambda v, _: np.rint(v), _called(relax.op.round)),
    "Softsign": (lambda v, _: v / (F32(1) + np.abs(v)), _softsign),
    "ThresholdedRelu": (_thresholded, _thresholded_body),
    "Shrink": (_shrink, _shrink_body),
}
DRAWN = {"ThresholdedRelu": ("alpha",), "Shrink": ("lambd", "bias")}


def between(rng: Generator, operator: str) -> Trial:
    """One operator, with random scales, zero points and attributes."""
    draw, (function, body) = Draw(rng), FUNCTIONS[operator]
    low, high = draw.limits
    x = rng.permuted(np.arange(low, high + 1)).astype(draw.dtype).reshape(1, 4, 4, 16)
    draw.inputs["x"] = x
    for name in "xy":
        draw.scale(name)
        draw.zero(name)
    attributes = {key: float(F32(rng.uniform(0.05, 0.9))) for key in DRAWN.get(operator, ())}
    y = draw.run(
        Step("DequantizeLinear", ["x", "sx", "zx"], "real"),
        Step(operator, ["real"], "result", attributes=attributes),
        Step("QuantizeLinear", ["result", "sy", "zy"]),
    )
    op = Lookup(table(draw, lambda v: function(v, attributes)))
    region, inputs = chain("onnxruntime", stored(x), (op, shape4(stored(x))))
    form = draw.compiled("x", y, lambda build, values: body(build, values, attributes))
    return Trial(region, inputs, {"y0": stored(y)}, compiled=form)


TABLES: dict[str, Maker] = {f"QDQ{name}": partial(between, operator=name) for name in FUNCTIONS}
