"""Conversion of exported convolutions and linear layers.

What comes in: nodes of an exported program and its constants. What goes out: Relax calls as
`accelsim.quantize` documents them. It must not know layers or names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx
from tvm import relax

from accelsim.errors import ModelError
from accelsim.quantize.constants import Constants
from accelsim.quantize.node_arguments import argument, per_axis

Converter = Callable[[fx.Node, Any], Any]


def weighted_converters(constants: Any) -> dict[str, Converter]:
    """By the names of exported operators; they look up `constants` when they are called."""
    table: dict[str, Converter] = {}
    for name in ("conv1d.default", "conv1d.padding", "conv2d.default", "conv2d.padding"):
        table[name] = partial(_convolution, constants=constants)
    table["convolution.default"] = partial(_convolution, constants=constants)
    for name in ("conv_transpose1d.default", "conv_transpose2d.input"):
        table[name] = partial(_conv_transpose, constants=constants)
    table["linear.default"] = partial(_linear, constants=constants)
    return table


def _bias(argument: Any, importer: Any, constants: Constants, shape: Sequence[int]) -> Any:
    value = constants.find(argument)
    if value is not None:
        return relax.const(value.to(torch.float32).reshape(tuple(shape)).numpy(), "float32")
    return importer.block_builder.emit(relax.op.reshape(importer.env[argument], tuple(shape)))


def _convolution(node: fx.Node, importer: Any, constants: Constants) -> Any:
    named = "convolution" in str(node.target)
    if named and argument(node, 6, "transposed", False) is True:
        return _transposed(node, importer, constants, output_padding=7, groups=8, dilation=5)
    dims = _axes(node, constants)
    kernel = node.args[1].meta["val"].shape[2:]  # type: ignore[union-attr]
    dilation = per_axis(argument(node, 5, "dilation", 1), dims)
    run = relax.op.nn.conv2d if dims == 2 else relax.op.nn.conv1d
    output = importer.block_builder.emit(
        run(
            importer.env[node.args[0]],
            importer.env[node.args[1]],
            strides=per_axis(argument(node, 3, "stride", 1), dims),
            padding=_padding(argument(node, 4, "padding", 0), kernel, dilation),
            dilation=dilation,
            groups=argument(node, 8 if named else 6, "groups", 1),
            out_dtype="float32",
        )
    )
    return _with_bias(node, importer, constants, output, dims)


def _conv_transpose(node: fx.Node, importer: Any, constants: Constants) -> Any:
    return _transposed(node, importer, constants, output_padding=5, groups=6, dilation=7)


def _transposed(node: fx.Node, importer: Any, constants: Constants, **position: int) -> Any:
    """A transposed convolution whose last arguments lie at these positions."""
    dims = _axes(node, constants)
    run = relax.op.nn.conv2d_transpose if dims == 2 else relax.op.nn.conv1d_transpose
    output = importer.block_builder.emit(
        run(
            importer.env[node.args[0]],
            importer.env[node.args[1]],
            strides=per_axis(argument(node, 3, "stride", 1), dims),
            padding=per_axis(argument(node, 4, "padding", 0), dims) * 2,
            output_padding=per_axis(
                argument(node, position["output_padding"], "output_padding", 0), dims
            ),
            dilation=per_axis(argument(node, position["dilation"], "dilation", 1), dims),
            groups=argument(node, position["groups"], "groups", 1),
            out_dtype="float32",
        )
    )
    return _with_bias(node, importer, constants, output, dims)


def _axes(node: fx.Node, constants: Constants) -> int:
    """Over how many axes a convolution goes."""
    dims = len(node.args[1].meta["val"].shape) - 2  # type: ignore[union-attr]
    if dims not in (1, 2):
        raise ModelError(
            f"model {constants.model} has a {dims}-dimensional convolution at '{node.name}'; only "
            "conv1d and conv2d are supported"
        )
    return dims


def _with_bias(node: fx.Node, importer: Any, constants: Constants, output: Any, dims: int) -> Any:
    bias = argument(node, 2, "bias", None)
    if bias is None:
        return output
    constant = _bias(bias, importer, constants, (1, -1, *(1,) * dims))
    return importer.block_builder.emit(relax.op.add(output, constant))


def _padding(value: Any, kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Before every axis, then after. PyTorch's "same" puts the odd row or column at the end."""
    if value == "valid":
        return [0, 0] * len(kernel)
    if value == "same":
        total = [gap * (size - 1) for size, gap in zip(kernel, dilation, strict=True)]
        before = [amount // 2 for amount in total]
        return before + [amount - half for amount, half in zip(total, before, strict=True)]
    return per_axis(value, len(kernel)) * 2


def _linear(node: fx.Node, importer: Any, constants: Constants) -> Any:
    builder = importer.block_builder
    weight = builder.emit(relax.op.permute_dims(importer.env[node.args[1]]))
    output = builder.emit(relax.op.matmul(importer.env[node.args[0]], weight, out_dtype="float32"))
    bias = argument(node, 2, "bias", None)
    if bias is None:
        return output
    return builder.emit(relax.op.add(output, _bias(bias, importer, constants, (-1,))))
