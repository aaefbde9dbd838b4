"""Conversion of quantize and dequantize.

What comes in: quantized_decomposed nodes of an exported program, and its constants. What goes out:
`relax.quantize` and `relax.dequantize`, with integer weights. It must not know layers or names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import fx
from tvm import relax

from accelsim.errors import ModelError
from accelsim.quantize.constants import Constants

Converter = Callable[[fx.Node, Any], Any]

_RANGES = {"uint8": (0, 255), "int8": (-128, 127)}


def level_converters(constants: Any) -> dict[str, Converter]:
    """By the names of exported operators; they look up `constants` when they are called."""
    table: dict[str, Converter] = {}
    for kind, convert in (("quantize", _quantize), ("dequantize", _dequantize)):
        for overload in ("default", "tensor", "tensor2"):
            run = partial(convert, constants=constants, channel=False)
            table[f"{kind}_per_tensor.{overload}"] = run
        per_channel = partial(convert, constants=constants, channel=True)
        table[f"{kind}_per_channel.default"] = per_channel
    return table


def _qparams(node: fx.Node, constants: Constants, channel: bool) -> tuple[Any, Any, int, str]:
    """Scale constant, zero point constant, axis and dtype of a quantize or dequantize node."""
    scale = torch.as_tensor(constants.need(node.args[1], node, "scale"))
    zero = torch.as_tensor(constants.need(node.args[2], node, "zero point"))
    dtype = str(node.args[6 if channel else 5]).removeprefix("torch.")
    if dtype not in _RANGES:
        raise ModelError(
            f"model {constants.model} quantizes '{node.name}' to {dtype}; use uint8 or int8"
        )
    shape = (-1,) if channel else ()
    scales = scale.to(torch.float32).reshape(shape).numpy()
    zeros = zero.to(torch.int32).reshape(shape).numpy()
    axis = int(node.args[3]) if channel else 0  # type: ignore[arg-type]
    return relax.const(scales, "float32"), relax.const(zeros, "int32"), axis, dtype


def _quantize(node: fx.Node, importer: Any, constants: Constants, channel: bool) -> Any:
    scale, zero, axis, dtype = _qparams(node, constants, channel)
    value = constants.find(node.args[0])
    if value is not None:  # a weight: PyTorch's own quantize gives its integers
        arguments = [constants.find(argument) for argument in node.args]
        target: Any = node.target
        return relax.const(target(*arguments).numpy(), dtype)
    builder = importer.block_builder
    data = importer.env[node.args[0]]
    output = builder.emit(relax.op.quantize(data, scale, zero, axis=axis, out_dtype=dtype))
    first = 4 if channel else 3
    low, high = int(node.args[first]), int(node.args[first + 1])  # type: ignore[arg-type]
    if (low, high) != _RANGES[dtype]:
        output = builder.emit(relax.op.clip(output, low, high))
    return output


def _dequantize(node: fx.Node, importer: Any, constants: Constants, channel: bool) -> Any:
    scale, zero, axis, dtype = _qparams(node, constants, channel)
    value = constants.find(node.args[0])
    data = importer.env[node.args[0]] if value is None else relax.const(value.numpy(), dtype)
    return importer.block_builder.emit(relax.op.dequantize(data, scale, zero, axis=axis))
