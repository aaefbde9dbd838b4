"""PReLU of an activation, with slopes along its channels.

What comes in: an island, or a layer's site. What goes out: its claim and kernel. It must not know
other families.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import Claim, Island, Node, Source, Weight
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.multipliers import fixed_point
from accelsim.reference.operators import Operator
from accelsim.reference.scaling import MODES
from accelsim.reference.site import Site


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """One slope, or one a channel of the axis: real numbers, or integers of a scale."""

    values: np.ndarray
    axis: int
    scale: np.float32 | None = None


def recognise(island: Island) -> Claim | None:
    """A PReLU of one source with constant slopes."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator != "relax.nn.prelu":
        return None
    source, slopes = node.operands[:2]
    axis = int(node.attrs.axis) % max(len(node.shape), 1)
    if not isinstance(source, Source) or axis != source.tensor.axis:
        return None
    if island.rounding == "tflite":
        return _stored(node, source, slopes, axis, island)
    if not isinstance(slopes, np.ndarray):
        return None
    if not np.all(np.isfinite(slopes)):
        return None
    core = Slopes(slopes.reshape(-1).astype(np.float32), axis)
    return Claim("prelu", core, (source,), node.shape, island.ending.limits)


def _stored(node: Node, source: Source, slopes: Any, axis: int, island: Island) -> Claim | None:
    """A PReLU whose slopes are integers of one scale."""
    if not isinstance(slopes, Weight) or slopes.scale.size != 1:
        return None
    centred = slopes.values.reshape(-1).astype(np.int32) - np.int32(slopes.zero_point[0])
    core = Slopes(centred, axis, np.float32(slopes.scale[0]))
    return Claim("prelu", core, (source,), node.shape, island.ending.limits)


def kernel(site: Site) -> Kernel:
    """Each side of zero has a scale; their sum is rounded in output steps.

    TFLite scales values below zero times the integer slopes, and those above zero, in fixed point.
    """
    core: Slopes = site.layer.core
    source = site.inputs[0]
    if core.scale is not None:
        above = fixed_point(float(source.scale / site.output.scale))
        below = fixed_point(float(source.scale * core.scale / site.output.scale))
        words = {
            "input_zero_point": np.array(source.zero_point, np.int32),
            "slopes": core.values,
            **{f"{name}_above": value for name, value in above.values().items()},
            **{f"{name}_below": value for name, value in below.values().items()},
            **ends_of(site),
        }
        return Kernel(_emit_stored, words, core.axis)
    values = {
        "input_zero_point": np.array(source.zero_point, np.int32),
        "above": np.array(source.scale, np.float32),
        "below": source.scale * core.values,
        "inverse": np.array(np.float32(1) / site.output.scale, np.float32),
        **ends_of(site),
    }
    return Kernel(_emit, values, core.axis)


def _emit_stored(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Either side scaled in a loop nest of its own."""
    axis, shape = emit.geometry, emit.shapes.core_output
    centred = emit.centred(x[0], p["input_zero_point"], 0, "int32")

    def times_slope(t: Any, i: Any) -> Any:
        value, slopes = t
        return value[i] * slopes[i[axis] if int(slopes.shape[0]) > 1 else 0]

    products = emit.compute(shape, times_slope, centred, p["slopes"])

    def scaled(total: Any, side: str) -> Any:
        words = (p[f"{name}_{side}"] for name in ("multiplier", "shift"))
        return emit.compute(
            shape, lambda t, i: MODES["tflite"](t[0][i], t[1][0], t[2][0]), total, *words
        )

    def body(t: Any, i: Any) -> Any:
        value, above, below, zero_point, low, high = t
        steps = te.if_then_else(value[i] < 0, below[i], above[i])
        return finished(steps, zero_point, low, high)

    ends = (p["zero_point"], p["low"], p["high"])
    sides = scaled(centred, "above"), scaled(products, "below")
    return emit.compute(shape, body, centred, *sides, *ends)


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Products, their sum and its multiple are loop nests of their own: each rounds."""
    axis = emit.geometry
    centred = emit.centred(x[0], p["input_zero_point"], 0, "int32")

    def side(keep: Any, scaled: Any) -> Any:
        return lambda t, i: keep(t[0][i], 0).astype("float32") * scaled(t[1], i)

    def slope(one: Any, i: Any) -> Any:
        return one[i[axis] if int(one.shape[0]) > 1 else 0]

    shape = emit.shapes.core_output
    above = emit.compute(shape, side(te.max, lambda one, i: one[()]), centred, p["above"])
    below = emit.compute(shape, side(te.min, slope), centred, p["below"])
    total = emit.compute(shape, lambda t, i: t[0][i] + t[1][i], above, below)

    def body(t: Any, i: Any) -> Any:
        value, inverse, zero_point, low, high = t
        return finished(te.nearbyint(value[i] * inverse[()]), zero_point, low, high)

    ends = (p["inverse"], p["zero_point"], p["low"], p["high"])
    return emit.compute(shape, body, total, *ends)


def _distance(site: Site) -> float | None:
    """Half a step, and float32 roundings of three products of at most 256 steps."""
    return None if site.layer.core.scale is not None else 0.5 + 2.0**-12


# PyTorch's kernel applies the slope to positive values where the scale changes, and quantizes
# slopes, which the exported graph does not say.
OPERATOR = Operator(
    "prelu",
    recognise,
    kernel,
    distance=_distance,
    trusted=lambda site: False,
    tensor_ranks=frozenset(range(1, 5)),
)
