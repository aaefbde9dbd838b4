"""The sum of two activations of equal shape: `relax.add`.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tvm import te

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.multipliers import ADD_SHIFT, sum_scalings
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.rescale import emit_scaled_sum, rescale_values
from accelsim.reference.scaling import MODES
from accelsim.reference.site import Site
from accelsim.reference.torch_tensor import torch_target

QNNPACK_ADD = (
    "PyTorch's qnnpack adds with 22-bit integer multipliers and rounds ties away from zero; the "
    "reference rounds each float32 operation half to even"
)


@dataclass(frozen=True, slots=True)
class Add:
    """Sum of two dequantized tensors of equal shape."""


def recognise(island: Island) -> Claim | None:
    """Two sources of one shape, added."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator != "relax.add":
        return None
    a, b = node.operands
    if not isinstance(a, Source) or not isinstance(b, Source) or a.shape != b.shape:
        return None
    return Claim("add", Add(), (a, b), node.shape, island.ending.limits)


def kernel(site: Site) -> Kernel:
    """In float32, or as qnnpack's kernel where that is the rule and it is defined, or TFLite's."""
    scales = [source.scale for source in site.inputs]
    if site.rounding == "tflite":
        return _tflite_kernel(site)
    if site.rounding == "qnnpack" and qnnpack_adds(scales, site.output.scale):
        shift, factors = qnnpack_add_factors(scales, site.output.scale)
        steps = {"shift": shift, "mask": (1 << shift) - 1, "half": ((1 << shift) - 1) >> 1}
        zero_points = {f"zero_point_{i}": one.zero_point for i, one in enumerate(site.inputs)}
        named = {f"multiplier_{side}": factor for side, factor in enumerate(factors)}
        integers = {**zero_points, **named, **steps}
        values = {name: np.array(value, np.int32) for name, value in integers.items()}
        return Kernel(_emit_qnnpack, {**values, **ends_of(site)})
    return Kernel(emit_scaled_sum, rescale_values(site))


def _tflite_kernel(site: Site) -> Kernel:
    values: dict[str, np.ndarray] = {}
    scalings = sum_scalings(site.inputs[0].scale, site.inputs[1].scale, site.output.scale)
    for side, scaling in enumerate(scalings):
        values |= {f"{name}_{side}": value for name, value in scaling.values().items()}
    for side, source in enumerate(site.inputs):
        values[f"zero_point_{side}"] = np.array(source.zero_point, np.int32)
    return Kernel(_emit_tflite, {**values, **ends_of(site)})


def _emit_tflite(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Both operands raised by 20 places and requantized, and their sum requantized."""
    terms = [
        emit.centred(value, p[f"zero_point_{side}"], side, "int32") for side, value in enumerate(x)
    ]
    scale = MODES["tflite"]

    def body(t: Any, i: Any) -> Any:
        a, b, zero_point, low, high, *words = t
        first, second, both = ([one[0] for one in words[k : k + 2]] for k in (0, 2, 4))
        total = scale(a[i] << ADD_SHIFT, *first) + scale(b[i] << ADD_SHIFT, *second)
        return finished(scale(total, *both), zero_point, low, high)

    words = (p[f"{name}_{side}"] for side in range(3) for name in ("multiplier", "shift"))
    ends = (p["zero_point"], p["low"], p["high"])
    return emit.compute(emit.shapes.core_output, body, *terms, *ends, *words)


def qnnpack_adds(scales: Sequence[np.float32], output_scale: np.float32) -> bool:
    """Whether PyTorch's kernel is defined: it refuses ratios outside [2^-14, 2^8).

    If both are below 2^-10 it shifts by more than 31 places, which C does not define.
    """
    ratios = _ratios(scales, output_scale)
    in_range = all(2.0**-14 <= ratio < 2.0**8 for ratio in ratios)
    return bool(in_range and max(ratios) >= 2.0**-10)


def qnnpack_add_factors(
    scales: Sequence[np.float32], output_scale: np.float32
) -> tuple[int, tuple[int, int]]:
    """(shift, integer multipliers of 22 bits) with which qnnpack adds where it is defined."""
    ratios = _ratios(scales, output_scale)
    exponent = math.frexp(float(max(ratios)))[1] - 1
    shift = 21 - exponent
    first, second = (int(np.rint(ratio * np.float32(2.0**shift))) for ratio in ratios)
    return shift, (first, second)


def _ratios(scales: Sequence[np.float32], output_scale: np.float32) -> list[np.float32]:
    return [np.float32(scale) / np.float32(output_scale) for scale in scales]


def _emit_qnnpack(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Σ (q - z)·m in int32, divided by 2^shift with ties away from zero."""
    terms = [
        emit.centred(value, p[f"zero_point_{side}"], side, "int32") for side, value in enumerate(x)
    ]

    def body(t: Any, i: Any) -> Any:
        a, b, a_factor, b_factor, shift, half, mask, zero_point = t
        total = a[i] * a_factor[()] + b[i] * b_factor[()]
        remainder = (total & mask[()]) - te.if_then_else(total < 0, 1, 0)
        carry = te.if_then_else(remainder > half[()], 1, 0)
        return (total >> shift[()]) + carry + zero_point[()]

    names = ("multiplier_0", "multiplier_1", "shift", "half", "mask", "zero_point")
    value = emit.compute(emit.shapes.core_output, body, *terms, *(p[name] for name in names))
    return emit.clamped(value, p)


def _torch_covers(site: Site) -> bool:
    """PyTorch's sum is a golden of networks with its own rule of adding only."""
    return site.rounding == "qnnpack"


def _torch_run(site: Site, operands: list[Any]) -> Any:
    kernels: Any = torch.ops.quantized
    run = kernels.add_relu if site.layer.limits == (0.0, math.inf) else kernels.add
    return run(*operands, *torch_target(site.output))


OPERATOR = Operator(
    "add",
    recognise,
    kernel,
    TorchKernel(_torch_covers, _torch_run),
    causes={"qnnpack": QNNPACK_ADD},
)
