"""Pools, with and without a quantization of their own, and reductions."""

from __future__ import annotations

from typing import Any

from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, ints, shape_of
from accelsim.quantize.onnx.levels import integers, levels_of
from accelsim.quantize.onnx.operators.convolution import axes_of, padding_of, window_rank

op = relax.op
_LAYOUTS = {1: "NCW", 2: "NCHW"}


def pooled(g: Emitter, node: OnnxNode, x: Any, kind: str) -> Any:
    """A maximum or an average over windows of an emitted tensor."""
    rank = window_rank(g, shape_of(x))
    if "kernel_shape" not in node.attributes:
        raise g.fail("has no kernel_shape")
    kernel = axes_of(g, node, "kernel_shape", rank)
    attributes: dict[str, Any] = {
        "pool_size": kernel,
        "strides": axes_of(g, node, "strides", rank),
        "padding": padding_of(g, node, shape_of(x)[2:], kernel),
        "dilation": axes_of(g, node, "dilations", rank),
        "ceil_mode": bool(node.attributes.get("ceil_mode", 0)),
        "layout": _LAYOUTS[rank],
    }
    if kind == "avg":
        attributes["count_include_pad"] = bool(node.attributes.get("count_include_pad", 0))
    value = g.emit(getattr(op.nn, f"{kind}_pool{rank}d")(x, **attributes))
    expected = g.model.values.get(node.outputs[0])
    if expected is not None and expected.shape != shape_of(value):
        raise g.fail(f"gives the shape {expected.shape} by a rule of ceil_mode that TVM lacks")
    return value


def max_pool(g: Emitter, node: OnnxNode) -> Any:
    """MaxPool without its second result."""
    if len(node.outputs) > 1 and node.outputs[1]:
        raise g.fail("gives the places of its maxima, which is not supported")
    return pooled(g, node, g.real(node.input(0)), "max")


def average_pool(g: Emitter, node: OnnxNode) -> Any:
    """AveragePool."""
    return pooled(g, node, g.real(node.input(0)), "avg")


def global_pool(function: Any) -> Any:
    """A reduction of all axes behind the channels."""

    def convert(g: Emitter, node: OnnxNode) -> Any:
        x = g.real(node.input(0))
        axes = list(range(2, len(shape_of(x))))
        return g.emit(function(x, axis=axes, keepdims=True))

    return convert


def qlinear_average_pool(g: Emitter, node: OnnxNode) -> Any:
    """QLinearAveragePool."""
    _refuse_channels_last(g, node)
    x = g.operand(integers(g, node.input(0), *node.inputs[1:3]))
    return g.quantize(pooled(g, node, x, "avg"), levels_of(g, *node.inputs[3:5]))


def qlinear_global_average_pool(g: Emitter, node: OnnxNode) -> Any:
    """QLinearGlobalAveragePool."""
    _refuse_channels_last(g, node)
    x = g.operand(integers(g, node.input(0), *node.inputs[1:3]))
    value = g.emit(op.mean(x, axis=list(range(2, len(shape_of(x)))), keepdims=True))
    return g.quantize(value, levels_of(g, *node.inputs[3:5]))


def _refuse_channels_last(g: Emitter, node: OnnxNode) -> None:
    if node.attributes.get("channels_last", 0):
        raise g.fail("has its channels last, which is not supported")


def reduced_axes(g: Emitter, node: OnnxNode, rank: int) -> list[int] | None:
    """The axes of a reduction; None for all."""
    named = g.numbers(node.input(1), "axes") if node.input(1) else node.attributes.get("axes", ())
    axes = ints(named)
    if not axes and node.attributes.get("noop_with_empty_axes", 0):
        return []
    return [axis % rank for axis in axes] or None


def reduction(function: Any) -> Any:
    """A reduction over axes that an attribute or a constant names."""

    def convert(g: Emitter, node: OnnxNode) -> Any:
        x = g.real(node.input(0))
        axes = reduced_axes(g, node, len(shape_of(x)))
        if axes == []:
            return x
        return g.emit(function(x, axis=axes, keepdims=bool(node.attributes.get("keepdims", 1))))

    return convert


def qlinear_reduce_mean(g: Emitter, node: OnnxNode) -> Any:
    """QLinearReduceMean."""
    x = g.operand(integers(g, node.input(0), *node.inputs[1:3]))
    axes = [int(axis) % len(shape_of(x)) for axis in node.attributes.get("axes", ())] or None
    value = g.emit(op.mean(x, axis=axes, keepdims=bool(node.attributes.get("keepdims", 1))))
    return g.quantize(value, levels_of(g, *node.inputs[3:5]))


CONVERTERS = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": global_pool(op.mean),
    "GlobalMaxPool": global_pool(op.max),
    "ReduceMean": reduction(op.mean),
    "ReduceSum": reduction(op.sum),
    "ReduceMax": reduction(op.max),
    "ReduceMin": reduction(op.min),
    "ReduceProd": reduction(op.prod),
    "com.microsoft:QLinearAveragePool": qlinear_average_pool,
    "com.microsoft:QLinearGlobalAveragePool": qlinear_global_average_pool,
    "com.microsoft:QLinearReduceMean": qlinear_reduce_mean,
}
MOVES = ("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin")
