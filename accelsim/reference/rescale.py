"""Activations as they are, or in other steps: the arithmetic of moves and of float32 sums.

What comes in: a layer's site. What goes out: kernels. It must not know operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import UNLIMITED
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.multipliers import quotient_scaling
from accelsim.reference.site import Site


def move_kernel(site: Site) -> Kernel:
    """The input's values in the output's shape, clamped; in its steps where these differ."""
    if site.same_levels:
        return Kernel(_emit_move, clamp_values(site))
    if site.rounding == "tflite":
        return _fixed_kernel(site)
    if site.rounding == "onnxruntime":
        values = {**rescale_values(site), "output_scale": np.array(site.output.scale, np.float32)}
        del values["inverse"]
        return Kernel(_emit_quotient, values)
    return Kernel(emit_scaled_sum, rescale_values(site))


def _fixed_kernel(site: Site) -> Kernel:
    """TFLite's change of scale, or its ReLU."""
    single = site.layer.limits != UNLIMITED
    scaling = quotient_scaling(site.inputs[0].scale, site.output.scale, single)
    values: dict[str, np.ndarray] = {
        "input_zero_point": np.array(site.inputs[0].zero_point, np.int32),
        "bias": np.zeros(1, np.int32),
        **scaling.values(),
        **ends_of(site),
    }
    return Kernel(_emit_fixed, values, scaling.mode)


def _emit_fixed(emit: Emitter, x: list[Any], p: Values) -> Any:
    centred = emit.centred(x[0], p["input_zero_point"], 0, "int32")
    return emit.requantized(centred, p, emit.geometry)


def _emit_quotient(emit: Emitter, x: list[Any], p: Values) -> Any:
    """rint(((q - z)·s) / so), as ONNX's DequantizeLinear and QuantizeLinear."""
    centred = emit.centred(x[0], p["zero_point_0"], 0, "int32")

    def body(t: Any, i: Any) -> Any:
        total, scale, output_scale, zero_point, low, high = t
        steps = te.nearbyint(total[i].astype("float32") * scale[()] / output_scale[()])
        return finished(steps, zero_point, low, high)

    names = ("scale_0", "output_scale", "zero_point", "low", "high")
    return emit.compute(emit.shapes.core_output, body, centred, *(p[name] for name in names))


def clamp_values(site: Site) -> dict[str, np.ndarray]:
    """The limits alone, int8: of layers that keep the levels of their input."""
    return {name: ends_of(site)[name].astype(np.int8) for name in ("low", "high")}


def _emit_move(emit: Emitter, x: list[Any], p: Values) -> Any:
    return emit.clamped(emit.load(x[0]), p)


def rescale_values(site: Site) -> dict[str, np.ndarray]:
    """Parameters of `emit_scaled_sum`."""
    values: dict[str, np.ndarray] = {}
    for side, source in enumerate(site.inputs):
        values[f"zero_point_{side}"] = np.array(source.zero_point, np.int32)
        values[f"scale_{side}"] = np.array(source.scale, np.float32)
    inverse = np.array(np.float32(1) / site.output.scale, np.float32)
    return {**values, "inverse": inverse, **ends_of(site)}


def emit_scaled_sum(emit: Emitter, x: list[Any], p: Values) -> Any:
    """rint(Σ (q - z)·s · (1/so)): one input changes scale, two are added.

    Each product is stored by a loop nest of its own before the sum reads it.
    """
    terms = [
        emit.compute(
            emit.shapes.core[side],
            lambda t, i: t[0][i].astype("float32") * t[1][()],
            emit.centred(value, p[f"zero_point_{side}"], side, "int32"),
            p[f"scale_{side}"],
        )
        for side, value in enumerate(x)
    ]

    def body(t: Any, i: Any) -> Any:
        inverse, zero_point, low, high, *products = t
        total = products[0][i] if len(products) == 1 else products[0][i] + products[1][i]
        return finished(te.nearbyint(total * inverse[()]), zero_point, low, high)

    ends = (p["inverse"], p["zero_point"], p["low"], p["high"])
    return emit.compute(emit.shapes.core_output, body, *ends, *terms)
