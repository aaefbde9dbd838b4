"""Sum and difference of two activations, or of one and a constant.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from tvm import te

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import Claim, Island, Node
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.multipliers import ADD_SHIFT, sum_scalings
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.pairs import Pair, at, pair_of, pair_tensors, pair_values, scales_of
from accelsim.reference.scaling import MODES
from accelsim.reference.site import Site
from accelsim.reference.torch_tensor import torch_target

QNNPACK_ADD = (
    "PyTorch's qnnpack adds with 22-bit integer multipliers and rounds ties away from zero; the "
    "reference rounds each float32 operation half to even"
)


def recognise(island: Island) -> Claim | None:
    """Two operands, one of them perhaps a constant, added or subtracted."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator not in ("relax.add", "relax.subtract"):
        return None
    found = pair_of(node)
    if found is None:
        return None
    pair, sources = found
    if pair.reals is not None and island.rounding == "tflite":
        return None
    name = node.operator.removeprefix("relax.")
    return Claim(name, pair, sources, node.shape, island.ending.limits)


def kernel(site: Site) -> Kernel:
    """In float32, or as qnnpack's kernel where that is the rule and it is defined, or TFLite's."""
    pair: Pair = site.layer.core
    subtract = pair.operator == "relax.subtract"
    if pair.reals is not None:
        values = {**pair_values(site), **ends_of(site), "reals": pair.reals}
        values["scale_0"] = np.array(site.inputs[0].scale, np.float32)
        values["inverse"] = np.array(np.float32(1) / site.output.scale, np.float32)
        return Kernel(_emit_float, values, subtract)
    scales = scales_of(site)
    values = {**pair_values(site), **ends_of(site)}
    if site.rounding == "tflite":
        for side, scaling in enumerate(sum_scalings(*scales, site.output.scale)):
            values |= {f"{name}_{side}": value for name, value in scaling.values().items()}
        return Kernel(_emit_tflite, values, subtract)
    if site.rounding == "qnnpack" and not subtract and qnnpack_adds(scales, site.output.scale):
        shift, factors = qnnpack_add_factors(scales, site.output.scale)
        steps = {"shift": shift, "mask": (1 << shift) - 1, "half": ((1 << shift) - 1) >> 1}
        integers = {**steps, **{f"multiplier_{side}": one for side, one in enumerate(factors)}}
        named = {name: np.array(value, np.int32) for name, value in integers.items()}
        return Kernel(_emit_qnnpack, {**values, **named})
    floats = {f"scale_{side}": np.array(one, np.float32) for side, one in enumerate(scales)}
    inverse = np.array(np.float32(1) / site.output.scale, np.float32)
    return Kernel(_emit_float, {**values, **floats, "inverse": inverse}, subtract)


def _emit_float(emit: Emitter, x: list[Any], p: Values) -> Any:
    """rint(((a - za)·sa ± (b - zb)·sb) · (1/so)).

    Each product is stored by a loop nest of its own before the sum reads it.
    """
    products = [
        emit.compute(
            tuple(int(size) for size in term.ty.shape),
            lambda t, i: t[0][i].astype("float32") * t[1][()],
            *(term, p[f"scale_{side}"]),
        )
        for side, term in enumerate(pair_tensors(emit, x, p))
    ]
    if "reals" in p:
        products.append(p["reals"])
    subtract = emit.geometry

    def body(t: Any, i: Any) -> Any:
        a, b, inverse, zero_point, low, high = t
        total = at(a, i) - at(b, i) if subtract else at(a, i) + at(b, i)
        return finished(te.nearbyint(total * inverse[()]), zero_point, low, high)

    ends = (p["inverse"], p["zero_point"], p["low"], p["high"])
    return emit.compute(emit.shapes.core_output, body, *products, *ends)


def _emit_tflite(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Both operands raised by 20 places and requantized, and their sum requantized."""
    scale, subtract = MODES["tflite"], emit.geometry

    def body(t: Any, i: Any) -> Any:
        a, b, zero_point, low, high, *words = t
        first, second, both = ([one[0] for one in words[k : k + 2]] for k in (0, 2, 4))
        left = scale(at(a, i) << ADD_SHIFT, *first)
        right = scale(at(b, i) << ADD_SHIFT, *second)
        total = left - right if subtract else left + right
        return finished(scale(total, *both), zero_point, low, high)

    words = (p[f"{name}_{side}"] for side in range(3) for name in ("multiplier", "shift"))
    ends = (p["zero_point"], p["low"], p["high"])
    return emit.compute(emit.shapes.core_output, body, *pair_tensors(emit, x, p), *ends, *words)


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

    def body(t: Any, i: Any) -> Any:
        a, b, a_factor, b_factor, shift, half, mask, zero_point = t
        total = at(a, i) * a_factor[()] + at(b, i) * b_factor[()]
        remainder = (total & mask[()]) - te.if_then_else(total < 0, 1, 0)
        carry = te.if_then_else(remainder > half[()], 1, 0)
        return (total >> shift[()]) + carry + zero_point[()]

    names = ("multiplier_0", "multiplier_1", "shift", "half", "mask", "zero_point")
    terms = pair_tensors(emit, x, p)
    value = emit.compute(emit.shapes.core_output, body, *terms, *(p[name] for name in names))
    return emit.clamped(value, p)


def _torch_covers(site: Site) -> bool:
    """PyTorch's sum of two tensors is a golden of networks with its own rule of adding only."""
    pair = site.layer.core
    shapes = {tensor.shape for tensor in (*site.inputs, site.output)}
    plain = (
        pair.constant is None
        and pair.reals is None
        and pair.operator == "relax.add"
        and len(shapes) == 1
    )
    return site.rounding == "qnnpack" and plain


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
    tensor_ranks=frozenset(range(1, 5)),
)
