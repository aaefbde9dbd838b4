"""Batch norm with constant statistics that stands alone: a line of its own for each channel.

What comes in: an island, or a layer's site. What goes out: its claim and kernel. PyTorch's kernel
rounds a float product and sum; here the offset is in 1/64 of an input step. It must not know other
families.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values
from accelsim.reference.operators import Operator
from accelsim.reference.site import Site

PARTS = 64  # of an input step
FEW = 65536.0  # parts of an output step, where a channel has one value
ERROR = 2.0**-12  # output steps: float32 of the accumulator, the multiplier and their product


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """factor·x + offset by channel of the axis, float64."""

    factor: np.ndarray
    offset: np.ndarray
    axis: int


def recognise(island: Island) -> Claim | None:
    """The normalized tensor of a batch norm on one source."""
    chosen = island.ending.value
    if not isinstance(chosen, Node) or chosen.operator != "TupleGetItem":
        return None
    norm, index = chosen.operands
    if not isinstance(norm, Node) or norm.operator != "relax.nn.batch_norm" or int(index) != 0:
        return None
    source, *statistics = norm.operands
    axis = int(norm.attrs.axis) % max(len(chosen.shape), 1)
    if not isinstance(source, Source) or norm.attrs.training or island.rounding == "tflite":
        return None
    if axis != source.tensor.axis or source.shape != source.tensor.shape:
        return None
    if not all(isinstance(one, np.ndarray) for one in statistics[:4]):
        return None
    gain, shift, mean, variance = (one.astype(np.float64).flatten() for one in statistics[:4])
    factor = (gain if norm.attrs.scale else 1.0) / np.sqrt(variance + float(norm.attrs.epsilon))
    offset = (shift if norm.attrs.center else 0.0) - mean * factor
    core = Line(factor, offset, axis)
    return Claim("batch_norm", core, (source,), chosen.shape, island.ending.limits)


def _parts(site: Site) -> np.ndarray:
    """Output steps of one unit of each channel's accumulator."""
    core: Line = site.layer.core
    ratio = float(site.inputs[0].scale) * np.abs(core.factor) / float(site.output.scale)
    return np.where(core.factor == 0, 1 / FEW, ratio / PARTS)


def kernel(site: Site) -> Kernel:
    """±64 (x - zx) + offset in int32, requantized."""
    core: Line = site.layer.core
    parts = _parts(site)
    values = {
        "input_zero_point": np.array(site.inputs[0].zero_point, np.int16),
        "weight": (np.sign(core.factor) * PARTS).astype(np.int32),
        "bias": np.rint(core.offset / float(site.output.scale) / parts).astype(np.int32),
        "multiplier": parts.astype(np.float32),
        **ends_of(site),
    }
    return Kernel(_emit, values, core.axis)


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    axis = emit.geometry
    centred = emit.centred(x[0], p["input_zero_point"], 0, "int32")
    product = emit.compute(
        emit.shapes.core_output, lambda t, i: t[0][i] * t[1][i[axis]], centred, p["weight"]
    )
    return emit.requantized(product, p, "fp32")


def _distance(site: Site) -> float:
    """Half a step, and half a unit of the offset."""
    return float(0.5 + _parts(site).max() / 2 + ERROR)


OPERATOR = Operator(
    "batch_norm", recognise, kernel, distance=_distance, tensor_ranks=frozenset(range(1, 5))
)
