"""Pools, reductions over axes, and the places of extremes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.activation import activated
from accelsim.quantize.tflite.graph import Graph, Value, shape_of
from accelsim.quantize.tflite.windows import padding, pair

op = relax.op


def pool(graph: Graph, operator: TfliteOperator, function: Callable[..., Any]) -> Value:
    """Windows over height and width; an average counts what is inside."""
    source = graph.tensor(operator, 0)
    if len(source.shape) != 4:
        raise graph.wrong(f"takes (n, h, w, c), and its input is {source.shape}")
    kernel, stride = pair(graph, operator, "kernel"), pair(graph, operator, "stride")
    around = padding(graph, operator, source.shape[1:3], kernel, stride)
    call = function(
        graph.real(operator),
        pool_size=list(kernel),
        strides=list(stride),
        padding=list(around),
        layout="NHWC",
        out_layout="NHWC",
    )
    return activated(graph, operator, graph.emit(call))


def reduction(graph: Graph, operator: TfliteOperator, function: Callable[..., Any]) -> Value:
    """Over the axes that the second input lists."""
    rank = len(graph.tensor(operator, 0).shape)
    axes = graph.integers(operator, 1)
    if not all(-rank <= axis < rank for axis in axes):
        raise graph.wrong(f"reduces axes {axes} of {rank}")
    chosen = sorted({axis % rank for axis in axes})
    keep = bool(operator.options["keep_dims"])
    return graph.emit(function(graph.real(operator), axis=chosen, keepdims=keep))


def place(graph: Graph, operator: TfliteOperator, function: Callable[..., Any]) -> Value:
    """The number of the first largest or smallest element of one axis."""
    value, axes = graph.real(operator), graph.integers(operator, 1)
    if len(axes) != 1:
        raise graph.wrong(f"looks along the axes {axes}")
    axis = graph.axis(axes[0], len(shape_of(value)))
    return graph.emit(function(value, axis=axis, keepdims=False))


CONVERTERS = {
    "ARG_MAX": partial(place, function=op.argmax),
    "ARG_MIN": partial(place, function=op.argmin),
    "AVERAGE_POOL_2D": partial(pool, function=partial(op.nn.avg_pool2d, count_include_pad=False)),
    "MAX_POOL_2D": partial(pool, function=op.nn.max_pool2d),
    "MEAN": partial(reduction, function=op.mean),
    "SUM": partial(reduction, function=op.sum),
    "REDUCE_MAX": partial(reduction, function=op.max),
    "REDUCE_MIN": partial(reduction, function=op.min),
    "REDUCE_PROD": partial(reduction, function=op.prod),
}
