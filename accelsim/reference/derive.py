"""Integer parameters of a layer, derived as the framework whose rounding counts derives them.

What comes in: a layer's site. What goes out: zero points, int32 biases, multipliers and clamp
limits. It must not know TVM, torch or how the compiler derives the same.

Of PyTorch's qnnpack engine every operation is float32, in this order (found by tie-seeking inputs:
any other order differs):

    bias       = rint(bias · (1 / (input_scale · weight_scale)))
    limit      = rint(zero_point + limit · (1 / output_scale))

The zero point of a limit is the stored one: the sum rounds in float32, and its ties by its parity.
TFLite's and ONNX Runtime's biases are integers in their models: the nearest to the quotient in
double precision. Their limits are divided in float32 and rounded before the zero point is added,
TFLite's half away from zero, ONNX Runtime's half to even.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from accelsim.artifacts import F32, I8, I32
from accelsim.errors import ModelError
from accelsim.reference.multipliers import product_scaling
from accelsim.reference.network import QuantizedTensor, ReferenceLayer
from accelsim.reference.scaling import Scaling
from accelsim.reference.site import Site

_ONE = np.float32(1)
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Clamp:
    """Output zero point and limits, int8 domain."""

    zero_point: int
    low: int
    high: int


def clamp_of(layer: ReferenceLayer, output: QuantizedTensor, rounding: str = "fp32") -> Clamp:
    """The quantizer's limits narrowed by the layer's own (ReLU, ReLU6)."""
    low, high = output.clamp_min, output.clamp_max
    lower, upper = (_quantized_limit(value, output, rounding) for value in layer.limits)
    return Clamp(output.zero_point, min(max(low, lower), high), max(min(high, upper), low))


def _quantized_limit(limit: float, output: QuantizedTensor, rounding: str) -> int:
    """Level of a real limit, int8 domain, far outside where it is infinite."""
    far = 1 << 20
    if np.isinf(limit):
        return far if limit > 0 else -far
    stored = output.zero_point + output.offset
    if rounding in ("tflite", "onnxruntime"):
        real = float(np.float32(limit) / output.scale)
        steps = np.copysign(np.floor(abs(real) + 0.5), real) if rounding == "tflite" else real
        level = stored + np.rint(steps)
    else:
        level = np.rint(np.float32(stored) + np.float32(limit) * (_ONE / output.scale))
    return int(np.clip(level, -far, far)) - output.offset


def ends_of(site: Site) -> dict[str, np.ndarray]:
    """Output zero point and limits as parameters of a kernel, int32 in the int8 domain."""
    clamp = clamp_of(site.layer, site.output, site.rounding)
    ends = {"zero_point": clamp.zero_point, "low": clamp.low, "high": clamp.high}
    return {name: np.array(value, np.int32) for name, value in ends.items()}


class Weighted(Protocol):
    """A product of an activation with weights (out_channels, …), and a float bias."""

    @property
    def weight(self) -> I8:
        """Integers."""

    @property
    def weight_scale(self) -> F32:
        """(out_channels,)."""

    @property
    def weight_zero_point(self) -> I32:
        """(out_channels,)."""

    @property
    def bias(self) -> F32:
        """(out_channels,), real."""

    @property
    def integer_bias(self) -> I32 | None:
        """(out_channels,), where the model has it in steps of input_scale · weight_scale."""


def affine_parameters(site: Site, core: Weighted, connected: bool) -> tuple[I32, Scaling]:
    """Bias int32 and scaling, one a channel; `connected` as in `product_scaling`.

    `ModelError` where an accumulator could leave int32 or a multiplier is not positive and normal.
    """
    source, output = site.inputs[0], site.output
    bias = _integer_bias(site, core)
    scales = (source.scale, core.weight_scale, output.scale)
    scaling = checked(site, product_scaling(site.rounding, *scales, connected))
    _check_accumulator(site.layer.name, core, source, bias)
    return bias, scaling


def _integer_bias(site: Site, core: Weighted) -> I32:
    """A bias that is stored in integers is taken as it is."""
    if core.integer_bias is not None:
        return core.integer_bias
    source = site.inputs[0]
    if site.rounding in ("tflite", "onnxruntime"):
        exact = np.float64(source.scale) * core.weight_scale.astype(np.float64)
        steps = np.rint(core.bias.astype(np.float64) / exact)
    else:
        product = source.scale * core.weight_scale
        steps = np.rint(core.bias * (_ONE / product)).astype(np.float64)
    if not np.all(np.abs(steps) <= _INT32_MAX):
        raise ModelError(f"layer '{site.layer.name}': a bias does not fit into int32 steps")
    return steps.astype(np.int32)


def checked(site: Site, scaling: Scaling) -> Scaling:
    """The same scaling. `ModelError` where a float multiplier is not positive and normal."""
    tiny = np.finfo(np.float32).tiny
    values = scaling.multiplier
    if scaling.mode == "fp32" and not np.all(np.isfinite(values) & (values >= tiny)):
        raise ModelError(
            f"layer '{site.layer.name}': a requantization multiplier is not positive and normal"
        )
    return scaling


def _check_accumulator(name: str, core: Weighted, source: QuantizedTensor, bias: I32) -> None:
    """Worst case per channel: every input at the end of its range that hurts most."""
    channels = core.weight.shape[0]
    zero = core.weight_zero_point.astype(np.int64).reshape(channels, 1)
    weight = np.abs(core.weight.reshape(channels, -1).astype(np.int64) - zero).sum(axis=1)
    reach = max(abs(-128 - source.zero_point), abs(127 - source.zero_point))
    worst = int((weight * reach + np.abs(bias.astype(np.int64))).max(initial=0))
    if worst > _INT32_MAX:
        raise ModelError(f"layer '{name}': an accumulator could reach {worst}, beyond int32")
