"""Conversion of exported operators whose Relax form the rest of accelsim relies on.

What comes in: an `ExportedProgram` with quantized_decomposed nodes. What goes out: the Relax module
that TVM's importer makes of it, with integer weights and constants in place of parameters. It must
not know layers or names.

TVM's importer knows no quantized_decomposed operator, its hardtanh ignores positional limits, and
it takes the batch norm of an undecomposed program for one in training mode: these are replaced here
through its `custom_convert_map`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

from accelsim.errors import InputError, ModelError
from accelsim.importer.reasons import reason
from accelsim.quantize.move_converters import move_converters

Converter = Callable[[fx.Node, Any], Any]

_RANGES = {"uint8": (0, 255), "int8": (-128, 127)}
_registered: dict[str, Converter] = {}


def register_converter(operator: str, converter: Converter) -> None:
    """Convert an operator of PyTorch's by `converter(node, importer)`, instead of as TVM would.

    `operator` is its name with the overload, without a namespace: "flip.default". `importer.env`
    has the Relax values of the node's operands, and `importer.block_builder.emit` binds the result
    that the converter returns.

    Raises:
        InputError: the operator has a converter already, this package's or a registered one.
    """
    if operator in _registered or operator in _convert_map(None):
        raise InputError(f"a converter of {operator!r} is registered already")
    _registered[operator] = converter


def to_relax(program: torch.export.ExportedProgram, model: str) -> Any:
    """Import an exported QDQ program.

    Raises:
        ModelError: an operator without conversion, a dtype other than 8-bit integers behind a
            quantize, data-dependent scales, or dynamic shapes.
    """
    _reject_dynamic(program, model)
    try:
        return from_exported_program(
            program,
            unwrap_unit_return_tuple=True,
            run_ep_decomposition=False,
            custom_convert_map={**_registered, **_convert_map(_Constants(program, model))},
        )
    except ModelError:
        raise
    except Exception as error:  # TVM's importer asserts and raises many kinds
        raise ModelError(f"TVM cannot import model {model}: {reason(error)}") from error


def _reject_dynamic(program: torch.export.ExportedProgram, model: str) -> None:
    for node in program.graph.nodes:
        shape = getattr(node.meta.get("val"), "shape", ())
        if any(not isinstance(extent, int) for extent in shape):
            raise ModelError(
                f"model {model} has a dynamic shape {tuple(shape)} at '{node.name}'; "
                "export it with fixed shapes"
            )


class _Constants:
    """Values of parameter, buffer and constant nodes of a program."""

    def __init__(self, program: torch.export.ExportedProgram, model: str) -> None:
        self.model = model
        self._module = program.graph_module
        signature = program.graph_signature
        stored = {**program.state_dict, **program.constants}
        targets = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        self._values = {name: stored[str(target)] for name, target in targets.items()}

    def find(self, argument: Any) -> Any | None:
        """The value of a constant argument, or None when it is computed from inputs."""
        if not isinstance(argument, fx.Node):
            return argument
        if argument.op == "get_attr":
            return getattr(self._module, str(argument.target)).detach()
        value = self._values.get(argument.name)
        return None if value is None else value.detach()

    def need(self, argument: Any, node: fx.Node, what: str) -> Any:
        """Like `find`; raises ModelError where the value is not constant."""
        value = self.find(argument)
        if value is None:
            raise ModelError(
                f"model {self.model} computes the {what} of '{node.name}' at run time; "
                "only static quantization is supported"
            )
        return value


def _convert_map(constants: Any) -> dict[str, Converter]:
    """This package's converters, which look up `constants` when they are called."""

    def quantize(channel: bool) -> Converter:
        return lambda node, importer: _quantize(node, importer, constants, channel)

    def dequantize(channel: bool) -> Converter:
        return lambda node, importer: _dequantize(node, importer, constants, channel)

    table: dict[str, Converter] = {}
    for overload in ("default", "tensor", "tensor2"):
        table[f"quantize_per_tensor.{overload}"] = quantize(False)
        table[f"dequantize_per_tensor.{overload}"] = dequantize(False)
    table["quantize_per_channel.default"] = quantize(True)
    table["dequantize_per_channel.default"] = dequantize(True)
    for name in ("conv1d.default", "conv1d.padding", "conv2d.default", "conv2d.padding"):
        table[name] = partial(_convolution, constants=constants)
    table["convolution.default"] = partial(_convolution, constants=constants)
    for name in ("conv_transpose1d.default", "conv_transpose2d.input"):
        table[name] = partial(_conv_transpose, constants=constants)
    for name in ("avg_pool1d.default", "avg_pool2d.default"):
        table[name] = _average_pool
    for name in ("adaptive_max_pool1d.default", "adaptive_max_pool2d.default"):
        table[name] = _adaptive_max_pool
    table["amax.default"] = partial(_extremum, run=relax.op.max)
    table["amin.default"] = partial(_extremum, run=relax.op.min)
    table["linear.default"] = lambda node, importer: _linear(node, importer, constants)
    for name, limits in (
        ("hardtanh.default", (-1.0, 1.0)),
        ("hardtanh_.default", (-1.0, 1.0)),
        ("relu6.default", (0.0, 6.0)),
        ("relu6_.default", (0.0, 6.0)),
        ("clamp.default", (None, None)),
        ("clamp_.default", (None, None)),
    ):
        table[name] = partial(_clip, limits=limits)
    table["batch_norm.default"] = partial(_batch_norm, constants=constants)
    for name in ("mish.default", "mish_.default"):
        table[name] = _mish
    for name in ("flatten.using_ints", "view.default", "reshape.default"):
        table[name] = _reshape
    return table | move_converters()


def _argument(node: fx.Node, position: int, name: str, default: Any) -> Any:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def _qparams(node: fx.Node, constants: _Constants, channel: bool) -> tuple[Any, Any, int, str]:
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


def _quantize(node: fx.Node, importer: Any, constants: _Constants, channel: bool) -> Any:
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


def _dequantize(node: fx.Node, importer: Any, constants: _Constants, channel: bool) -> Any:
    scale, zero, axis, dtype = _qparams(node, constants, channel)
    value = constants.find(node.args[0])
    data = importer.env[node.args[0]] if value is None else relax.const(value.numpy(), dtype)
    return importer.block_builder.emit(relax.op.dequantize(data, scale, zero, axis=axis))


def _bias(argument: Any, importer: Any, constants: _Constants, shape: Sequence[int]) -> Any:
    value = constants.find(argument)
    if value is not None:
        return relax.const(value.to(torch.float32).reshape(tuple(shape)).numpy(), "float32")
    return importer.block_builder.emit(relax.op.reshape(importer.env[argument], tuple(shape)))


def _convolution(node: fx.Node, importer: Any, constants: _Constants) -> Any:
    named = "convolution" in str(node.target)
    if named and _argument(node, 6, "transposed", False) is True:
        return _transposed(node, importer, constants, output_padding=7, groups=8, dilation=5)
    dims = _axes(node, constants)
    kernel = node.args[1].meta["val"].shape[2:]  # type: ignore[union-attr]
    dilation = _per_axis(_argument(node, 5, "dilation", 1), dims)
    run = relax.op.nn.conv2d if dims == 2 else relax.op.nn.conv1d
    output = importer.block_builder.emit(
        run(
            importer.env[node.args[0]],
            importer.env[node.args[1]],
            strides=_per_axis(_argument(node, 3, "stride", 1), dims),
            padding=_padding(_argument(node, 4, "padding", 0), kernel, dilation),
            dilation=dilation,
            groups=_argument(node, 8 if named else 6, "groups", 1),
            out_dtype="float32",
        )
    )
    return _with_bias(node, importer, constants, output, dims)


def _conv_transpose(node: fx.Node, importer: Any, constants: _Constants) -> Any:
    return _transposed(node, importer, constants, output_padding=5, groups=6, dilation=7)


def _transposed(node: fx.Node, importer: Any, constants: _Constants, **position: int) -> Any:
    """A transposed convolution whose last arguments lie at these positions."""
    dims = _axes(node, constants)
    run = relax.op.nn.conv2d_transpose if dims == 2 else relax.op.nn.conv1d_transpose
    output = importer.block_builder.emit(
        run(
            importer.env[node.args[0]],
            importer.env[node.args[1]],
            strides=_per_axis(_argument(node, 3, "stride", 1), dims),
            padding=_per_axis(_argument(node, 4, "padding", 0), dims) * 2,
            output_padding=_per_axis(
                _argument(node, position["output_padding"], "output_padding", 0), dims
            ),
            dilation=_per_axis(_argument(node, position["dilation"], "dilation", 1), dims),
            groups=_argument(node, position["groups"], "groups", 1),
            out_dtype="float32",
        )
    )
    return _with_bias(node, importer, constants, output, dims)


def _axes(node: fx.Node, constants: _Constants) -> int:
    """Over how many axes a convolution goes."""
    dims = len(node.args[1].meta["val"].shape) - 2  # type: ignore[union-attr]
    if dims not in (1, 2):
        raise ModelError(
            f"model {constants.model} has a {dims}-dimensional convolution at '{node.name}'; only "
            "conv1d and conv2d are supported"
        )
    return dims


def _with_bias(node: fx.Node, importer: Any, constants: _Constants, output: Any, dims: int) -> Any:
    bias = _argument(node, 2, "bias", None)
    if bias is None:
        return output
    constant = _bias(bias, importer, constants, (1, -1, *(1,) * dims))
    return importer.block_builder.emit(relax.op.add(output, constant))


def _per_axis(value: Any, dims: int) -> list[int]:
    numbers = [int(value)] if isinstance(value, int) else [int(entry) for entry in value]
    return numbers * dims if len(numbers) == 1 else numbers


def _padding(value: Any, kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Before every axis, then after. PyTorch's "same" puts the odd row or column at the end."""
    if value == "valid":
        return [0, 0] * len(kernel)
    if value == "same":
        total = [gap * (size - 1) for size, gap in zip(kernel, dilation, strict=True)]
        before = [amount // 2 for amount in total]
        return before + [amount - half for amount, half in zip(total, before, strict=True)]
    return _per_axis(value, len(kernel)) * 2


def _average_pool(node: fx.Node, importer: Any) -> Any:
    """An average whose padding counts, unless there is none.

    Without padding a window that hangs over the edge is divided by what is inside: by TVM only
    where padding does not count.
    """
    dims = 2 if "2d" in str(node.target) else 1
    kernel = _per_axis(node.args[1], dims)
    padding = _per_axis(_argument(node, 3, "padding", 0), dims)
    if _argument(node, 6, "divisor_override", None) is not None:
        raise ModelError(f"the average pool '{node.name}' has a divisor of its own")
    run = relax.op.nn.avg_pool2d if dims == 2 else relax.op.nn.avg_pool1d
    return importer.block_builder.emit(
        run(
            importer.env[node.args[0]],
            pool_size=kernel,
            strides=_per_axis(_argument(node, 2, "stride", None) or kernel, dims),
            padding=padding * 2,
            ceil_mode=_argument(node, 4, "ceil_mode", False),
            count_include_pad=any(padding) and _argument(node, 5, "count_include_pad", True),
        )
    )


def _adaptive_max_pool(node: fx.Node, importer: Any) -> Any:
    """(maxima, indices); indices are not had, and maxima stand in their place."""
    dims = 2 if "2d" in str(node.target) else 1
    sizes = node.args[0].meta["val"].shape[-dims:]  # type: ignore[union-attr]
    given: Any = node.args[1]
    numbers = [given] * dims if isinstance(given, int) or given is None else list(given)
    outputs = [size if n is None else int(n) for n, size in zip(numbers, sizes, strict=True)]
    if any(size % out for size, out in zip(sizes, outputs, strict=True)):
        raise ModelError(
            f"the adaptive maximum pool '{node.name}' has windows of different sizes: "
            f"{tuple(sizes)} elements for {tuple(outputs)} outputs"
        )
    window = [size // out for size, out in zip(sizes, outputs, strict=True)]
    run = relax.op.nn.max_pool2d if dims == 2 else relax.op.nn.max_pool1d
    maxima = importer.block_builder.emit(run(importer.env[node.args[0]], window, window))
    return relax.Tuple([maxima, maxima])


def _extremum(node: fx.Node, importer: Any, run: Callable[..., Any]) -> Any:
    axes = [int(axis) for axis in _argument(node, 1, "dim", ())] or None
    keep = bool(_argument(node, 2, "keepdim", False))
    return importer.block_builder.emit(run(importer.env[node.args[0]], axes, keepdims=keep))


def _linear(node: fx.Node, importer: Any, constants: _Constants) -> Any:
    builder = importer.block_builder
    weight = builder.emit(relax.op.permute_dims(importer.env[node.args[1]]))
    output = builder.emit(relax.op.matmul(importer.env[node.args[0]], weight, out_dtype="float32"))
    bias = _argument(node, 2, "bias", None)
    if bias is None:
        return output
    return builder.emit(relax.op.add(output, _bias(bias, importer, constants, (-1,))))


def _clip(node: fx.Node, importer: Any, limits: tuple[float | None, float | None]) -> Any:
    low = _argument(node, 1, "min_val" if "hardtanh" in str(node.target) else "min", limits[0])
    high = _argument(node, 2, "max_val" if "hardtanh" in str(node.target) else "max", limits[1])
    low = -math.inf if low is None else float(low)
    high = math.inf if high is None else float(high)
    return importer.block_builder.emit(relax.op.clip(importer.env[node.args[0]], low, high))


def _batch_norm(node: fx.Node, importer: Any, constants: _Constants) -> Any:
    weight, bias, mean, variance = (constants.find(argument) for argument in node.args[1:5])
    if node.args[5] or mean is None or variance is None:
        raise ModelError(
            f"model {constants.model} has a batch norm in training mode at '{node.name}'; call "
            "eval() before exporting"
        )
    values = [
        torch.ones_like(mean) if weight is None else weight,
        torch.zeros_like(mean) if bias is None else bias,
        mean,
        variance,
    ]
    outputs = importer.block_builder.emit(
        relax.op.nn.batch_norm(
            importer.env[node.args[0]],
            *(relax.const(value.to(torch.float32).numpy(), "float32") for value in values),
            axis=1,
            epsilon=float(node.args[7]),  # type: ignore[arg-type]
            training=False,
        )
    )
    return importer.block_builder.emit(relax.TupleGetItem(outputs, 0))


def _mish(node: fx.Node, importer: Any) -> Any:
    builder, data = importer.block_builder, importer.env[node.args[0]]
    soft = builder.emit(relax.op.tanh(builder.emit(relax.op.nn.softplus(data))))
    return builder.emit(relax.op.multiply(data, soft))


def _reshape(node: fx.Node, importer: Any) -> Any:
    shape = [int(extent) for extent in node.meta["val"].shape]
    return importer.block_builder.emit(relax.op.reshape(importer.env[node.args[0]], shape))
