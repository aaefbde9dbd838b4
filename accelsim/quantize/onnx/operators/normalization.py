"""Softmax and the normalizations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Array, Emitter, constant, shape_of
from accelsim.quantize.onnx.levels import integers, levels_of

op = relax.op


def shares(g: Emitter, x: Any, axis: int, opset: int, function: Any) -> Any:
    """A softmax; before opset 13 over all axes from the given one on."""
    shape = shape_of(x)
    axis %= len(shape)
    if opset >= 13 or prod(shape[axis + 1 :]) == 1:
        return g.emit(function(x, axis))
    flat = g.emit(op.reshape(x, [prod(shape[:axis]), prod(shape[axis:])]))
    return g.emit(op.reshape(g.emit(function(flat, 1)), shape))


def softmax(function: Any) -> Any:
    """Softmax and LogSoftmax."""

    def convert(g: Emitter, node: OnnxNode) -> Any:
        opset = g.model.opsets[""]
        axis = node.attributes.get("axis", -1 if opset >= 13 else 1)
        return shares(g, g.real(node.input(0)), axis, opset, function)

    return convert


def qlinear_softmax(g: Emitter, node: OnnxNode) -> Any:
    """QLinearSoftmax, which carries the opset whose axes count."""
    opset = int(node.attributes.get("opset", g.model.opsets[""]))
    axis = node.attributes.get("axis", -1 if opset >= 13 else 1)
    x = g.operand(integers(g, *node.inputs[:3]))
    value = shares(g, x, axis, opset, op.nn.softmax)
    return g.quantize(value, levels_of(g, *node.inputs[3:5]))


def layer_norm(g: Emitter, node: OnnxNode) -> Any:
    """LayerNormalization over an axis and all behind it."""
    if any(node.outputs[1:]):
        raise g.fail("gives its mean or deviation, which is not supported")
    x = g.real(node.input(0))
    rank = len(shape_of(x))
    axes = list(range(node.attributes.get("axis", -1) % rank, rank))
    gain = _gain(g, node.input(1), [shape_of(x)[axis] for axis in axes], 1.0)
    offset = _gain(g, node.input(2), [shape_of(x)[axis] for axis in axes], 0.0)
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    return g.emit(op.nn.layer_norm(x, gain, offset, axes=axes, epsilon=epsilon))


def _gain(g: Emitter, name: str, shape: list[int], default: float) -> Any:
    if not name:
        return constant(np.full(shape, default, np.float32))
    value = g.known(name)
    if value is None:
        return g.real(name)
    return constant(np.broadcast_to(value, shape).astype(np.float32))


def batch_norm(g: Emitter, node: OnnxNode) -> Any:
    """BatchNormalization with stored statistics."""
    if node.attributes.get("training_mode", 0) or any(node.outputs[1:]):
        raise g.fail("is in training mode; export the model for inference")
    values: list[Array] = [g.numbers(name, "statistics") for name in node.inputs[1:5]]
    call = op.nn.batch_norm(
        g.real(node.input(0)),
        *(constant(value.astype(np.float32)) for value in values),
        axis=1,
        epsilon=float(node.attributes.get("epsilon", 1e-5)),
        training=False,
    )
    return g.emit(relax.TupleGetItem(g.emit(call), 0))


def instance_norm(g: Emitter, node: OnnxNode) -> Any:
    """InstanceNormalization over all axes behind the channels."""
    x = g.real(node.input(0))
    gain, offset = (g.numbers(name, "gains") for name in node.inputs[1:3])
    return g.emit(
        op.nn.instance_norm(
            x,
            constant(gain),
            constant(offset),
            axes=list(range(2, len(shape_of(x)))),
            channel_axis=1,
            epsilon=float(node.attributes.get("epsilon", 1e-5)),
        )
    )


CONVERTERS = {
    "Softmax": softmax(op.nn.softmax),
    "LogSoftmax": softmax(op.nn.log_softmax),
    "LayerNormalization": layer_norm,
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "com.microsoft:QLinearSoftmax": qlinear_softmax,
}
