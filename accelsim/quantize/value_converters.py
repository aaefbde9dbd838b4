"""Conversion of exported clamps, reshapes and functions of one tensor.

What comes in: nodes of an exported program. What goes out: Relax calls. It must
not know layers or names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import fx
from tvm import relax

from accelsim.quantize.node_arguments import argument

Converter = Callable[[fx.Node, Any], Any]

_LIMITS: dict[str, tuple[float | None, float | None]] = {
    "hardtanh": (-1.0, 1.0),
    "relu6": (0.0, 6.0),
    "clamp": (None, None),
}


def value_converters() -> dict[str, Converter]:
    """By the names of exported operators."""
    table: dict[str, Converter] = {}
    for name, limits in _LIMITS.items():
        table[f"{name}.default"] = table[f"{name}_.default"] = partial(_clip, limits=limits)
    table["mish.default"] = table["mish_.default"] = _mish
    for name in ("flatten.using_ints", "view.default", "reshape.default"):
        table[name] = _reshape
    table["rsub.Scalar"] = table["rsub.Tensor"] = _reversed_difference
    table["t.default"] = _turned
    return table


def _clip(node: fx.Node, importer: Any, limits: tuple[float | None, float | None]) -> Any:
    low = argument(node, 1, "min_val" if "hardtanh" in str(node.target) else "min", limits[0])
    high = argument(node, 2, "max_val" if "hardtanh" in str(node.target) else "max", limits[1])
    low = -math.inf if low is None else float(low)
    high = math.inf if high is None else float(high)
    builder, value = importer.block_builder, importer.env[node.args[0]]
    if str(value.ty.dtype) == "float32":
        return builder.emit(relax.op.clip(value, low, high))
    for limit, run in ((low, relax.op.maximum), (high, relax.op.minimum)):
        if math.isfinite(limit):
            value = builder.emit(run(value, relax.const(limit, str(value.ty.dtype))))
    return value


def _mish(node: fx.Node, importer: Any) -> Any:
    builder, data = importer.block_builder, importer.env[node.args[0]]
    soft = builder.emit(relax.op.tanh(builder.emit(relax.op.nn.softplus(data))))
    return builder.emit(relax.op.multiply(data, soft))


def _reshape(node: fx.Node, importer: Any) -> Any:
    shape = [int(extent) for extent in node.meta["val"].shape]
    return importer.block_builder.emit(relax.op.reshape(importer.env[node.args[0]], shape))


def _reversed_difference(node: fx.Node, importer: Any) -> Any:
    """other - alpha · input."""
    builder, value = importer.block_builder, importer.env[node.args[0]]
    alpha = float(argument(node, 2, "alpha", 1))
    if alpha != 1:
        value = builder.emit(relax.op.multiply(value, relax.const(alpha, "float32")))
    other: Any = node.args[1]
    minuend = (
        importer.env[other] if isinstance(other, fx.Node) else relax.const(float(other), "float32")
    )
    return builder.emit(relax.op.subtract(minuend, value))


def _turned(node: fx.Node, importer: Any) -> Any:
    """The transpose of a matrix; of anything with fewer axes the same."""
    value = importer.env[node.args[0]]
    if len(node.meta["val"].shape) < 2:
        return value
    return importer.block_builder.emit(relax.op.permute_dims(value, [1, 0]))
