"""The values a layer's kernel is called with.

What comes in: a `Network`, a layer and its `Kernel`. What goes out: NumPy arrays in the order of
`parameters_of`. It must not know TVM objects.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from accelsim.reference.derive import affine_parameters, clamp_of, mean_multiplier
from accelsim.reference.network import Affine, Network, Pool, ReferenceLayer

ROUNDINGS = ("fp32", "qnnpack")


def arguments_of(network: Network, layer: ReferenceLayer, kind: str) -> dict[str, Any]:
    """Argument name → value, before it is cast to the kernel's dtype."""
    sources = [network.tensors[name] for name in layer.inputs]
    output = network.tensors[layer.output]
    clamp = clamp_of(layer, output)
    low, high = clamp.low - clamp.zero_point, clamp.high - clamp.zero_point
    limits: dict[str, Any] = {"zero_point": clamp.zero_point, "low": low, "high": high}
    if kind in ("conv2d", "linear"):
        core = layer.core
        assert isinstance(core, Affine)
        bias, multiplier = affine_parameters(network, layer)
        return limits | {
            "centred_weight": _centred(core),
            "input_zero_point": sources[0].zero_point,
            "bias": bias,
            "multiplier": multiplier,
        }
    if kind == "mean_pool":
        core = layer.core
        assert isinstance(core, Pool)
        multiplier = mean_multiplier(network, layer)
        window = np.ones(core.kernel, np.int16)
        return limits | {
            "input_zero_point": sources[0].zero_point,
            "multiplier": multiplier,
            "ones": window,
            "bias": 0,
        }
    if kind in ("max_pool", "move"):
        return {"low": clamp.low, "high": clamp.high}
    values: dict[str, Any] = {
        f"zero_point_{side}": source.zero_point for side, source in enumerate(sources)
    }
    if kind == "add_qnnpack":
        shift, factors = qnnpack_add_factors([s.scale for s in sources], output.scale)
        steps = {"shift": shift, "mask": (1 << shift) - 1, "half": ((1 << shift) - 1) >> 1}
        ends = {"zero_point": clamp.zero_point, "low": clamp.low, "high": clamp.high}
        named = {f"multiplier_{side}": factor for side, factor in enumerate(factors)}
        return {**values, **named, **steps, **ends}
    scales = {f"scale_{side}": source.scale for side, source in enumerate(sources)}
    return {**limits, **values, **scales, "inverse": np.float32(1) / output.scale}


def _centred(core: Affine) -> np.ndarray:
    """Weights minus zero points, int16: at most 9 bits."""
    zero_point = core.weight_zero_point.reshape((-1,) + (1,) * (core.weight.ndim - 1))
    return (core.weight.astype(np.int32) - zero_point).astype(np.int16)


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
