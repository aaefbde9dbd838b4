"""Conversion of exported pools and reductions.

What comes in: nodes of an exported program. What goes out: Relax calls. It must not know layers or
names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import fx
from tvm import relax

from accelsim.quantize.node_arguments import argument, per_axis, shape_of

op = relax.op
Converter = Callable[[fx.Node, Any], Any]


def pool_converters() -> dict[str, Converter]:
    """By the names of exported operators."""
    return {
        **dict.fromkeys(("avg_pool1d.default", "avg_pool2d.default"), _average_pool),
        **dict.fromkeys(
            ("adaptive_max_pool1d.default", "adaptive_max_pool2d.default"), _adaptive_max_pool
        ),
        "amax.default": partial(_extremum, run=op.max),
        "amin.default": partial(_extremum, run=op.min),
        "prod.dim_int": partial(_extremum, run=op.prod),
    }


def _average_pool(node: fx.Node, importer: Any) -> Any:
    """An average whose padding counts, unless there is none.

    Without padding a window that hangs over the edge is divided by what is inside: by TVM only
    where padding does not count.
    """
    dims = 2 if "2d" in str(node.target) else 1
    kernel = per_axis(node.args[1], dims)
    padding = per_axis(argument(node, 3, "padding", 0), dims)
    divisor = argument(node, 6, "divisor_override", None)
    included = divisor is not None or (
        any(padding) and bool(argument(node, 5, "count_include_pad", True))
    )
    run = op.nn.avg_pool2d if dims == 2 else op.nn.avg_pool1d
    emit = importer.block_builder.emit
    averages = emit(
        run(
            importer.env[node.args[0]],
            pool_size=kernel,
            strides=per_axis(argument(node, 2, "stride", None) or kernel, dims),
            padding=padding * 2,
            ceil_mode=argument(node, 4, "ceil_mode", False),
            count_include_pad=included,
        )
    )
    if divisor is None:
        return averages
    ratio = math.prod(kernel) / int(divisor)
    return emit(op.multiply(averages, relax.const(ratio, "float32")))


def _adaptive_max_pool(node: fx.Node, importer: Any) -> Any:
    """(maxima, indices); indices are not had, and maxima stand in their place.

    Windows of different sizes are made of one: an element more than once changes no maximum.
    """
    dims = 2 if "2d" in str(node.target) else 1
    sizes = shape_of(node.args[0])[-dims:]
    given: Any = node.args[1]
    numbers = [given] * dims if isinstance(given, int) or given is None else list(given)
    outputs = [size if n is None else int(n) for n, size in zip(numbers, sizes, strict=True)]
    emit, value = importer.block_builder.emit, importer.env[node.args[0]]
    window = [size // out for size, out in zip(sizes, outputs, strict=True)]
    if any(size % out for size, out in zip(sizes, outputs, strict=True)):
        places = [adaptive_places(*pair) for pair in zip(sizes, outputs, strict=True)]
        window = [found.shape[1] for found in places]
        for axis, found in enumerate(places, len(shape_of(node.args[0])) - dims):
            taken = op.take(value, relax.const(found.reshape(-1), "int64"), axis, mode="fast")
            value = emit(taken)
    run = op.nn.max_pool2d if dims == 2 else op.nn.max_pool1d
    maxima = emit(run(value, window, window))
    return relax.Tuple([maxima, maxima])


def adaptive_places(size: int, outputs: int) -> NDArray[np.int64]:
    """(outputs, longest window): what the windows of an adaptive pool cover along one axis.

    Window i covers floor(i·size/outputs) to ceil((i+1)·size/outputs); shorter ones repeat their
    last element.
    """
    index = np.arange(outputs)
    first = index * size // outputs
    last = -(-(index + 1) * size // outputs) - 1
    steps = np.arange(int((last - first).max()) + 1)
    return np.asarray(np.minimum(first[:, None] + steps, last[:, None]), np.int64)


def _extremum(node: fx.Node, importer: Any, run: Callable[..., Any]) -> Any:
    given = argument(node, 1, "dim", ())
    axes = [given] if isinstance(given, int) else [int(axis) for axis in given] or None
    keep = bool(argument(node, 2, "keepdim", False))
    return importer.block_builder.emit(run(importer.env[node.args[0]], axes, keepdims=keep))
