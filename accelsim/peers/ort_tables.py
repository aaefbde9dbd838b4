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


def _thresholded(v: Array, a: Mapping[str, float]) -> Array:
    return np.where(v > F32(a["alpha"]), v, F32(0))


def _shrink(v: Array, a: Mapping[str, float]) -> Array:
    inner = np.where(v > F32(a["lambd"]), v - F32(a["bias"]), F32(0))
    return np.where(v < -F32(a["lambd"]), v + F32(a["bias"]), inner)


def _number(value: float) -> Any:
    return relax.const(value, "float32")


def _softsign(build: Any, values: list[Any]) -> Any:
    raised = build.emit(relax.op.add(build.emit(relax.op.abs(values[0])), _number(1.0)))
    return build.emit(relax.op.divide(values[0], raised))


FUNCTIONS: Mapping[str, tuple[Function, qdq.Body | None]] = {
    "Abs": (lambda v, _: np.abs(v), qdq.call(relax.op.abs)),
    "Neg": (lambda v, _: -v, qdq.call(relax.op.negative)),
    "Floor": (lambda v, _: np.floor(v), qdq.call(relax.op.floor)),
    "Ceil": (lambda v, _: np.ceil(v), qdq.call(relax.op.ceil)),
    "Round": (lambda v, _: np.rint(v), qdq.call(relax.op.round)),
    "Softsign": (lambda v, _: v / (F32(1) + np.abs(v)), _softsign),
    "ThresholdedRelu": (_thresholded, None),
    "Shrink": (_shrink, None),
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
    form = None if body is None else draw.compiled("x", y, body)
    return Trial(region, inputs, {"y0": stored(y)}, compiled=form)


TABLES: dict[str, Maker] = {f"QDQ{name}": partial(between, operator=name) for name in FUNCTIONS}
