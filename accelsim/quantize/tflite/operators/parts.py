"""Parts of a tensor: SPLIT, SPLIT_V, UNPACK, SLICE, STRIDED_SLICE and gathers."""

from __future__ import annotations

from math import prod

import numpy as np
from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.graph import Graph, Value, shape_of

op = relax.op


def unpack(graph: Graph, operator: TfliteOperator) -> list[Value]:
    """One output for each element of an axis."""
    shape = graph.tensor(operator, 0).shape
    axis = graph.axis(int(str(operator.options["axis"])), len(shape))
    sizes = [1] * shape[axis]
    return _parts(graph, operator, 0, axis, sizes, shape[:axis] + shape[axis + 1 :])


def split(graph: Graph, operator: TfliteOperator) -> list[Value]:
    """Equal parts; the axis is the first input, the tensor the second."""
    shape, count = graph.tensor(operator, 1).shape, len(operator.outputs)
    axis = _only_axis(graph, operator, 0, len(shape))
    if shape[axis] % count:
        raise graph.wrong(f"splits {shape[axis]} elements into {count} parts")
    return _parts(graph, operator, 1, axis, [shape[axis] // count] * count)


def split_v(graph: Graph, operator: TfliteOperator) -> list[Value]:
    """Parts of given sizes; -1 is what is left."""
    shape = graph.tensor(operator, 0).shape
    axis = _only_axis(graph, operator, 2, len(shape))
    sizes = list(graph.integers(operator, 1))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = shape[axis] - sum(sizes) - 1
    if min(sizes) < 1 or sum(sizes) != shape[axis] or len(sizes) != len(operator.outputs):
        raise graph.wrong(f"splits {shape[axis]} elements into {sizes}")
    return _parts(graph, operator, 0, axis, sizes)


def _only_axis(graph: Graph, operator: TfliteOperator, place: int, rank: int) -> int:
    found = graph.integers(operator, place)
    if len(found) != 1:
        raise graph.wrong(f"splits along the axes {found}")
    return graph.axis(found[0], rank)


def _parts(
    graph: Graph,
    operator: TfliteOperator,
    place: int,
    axis: int,
    sizes: list[int],
    shape: tuple[int, ...] | None = None,
) -> list[Value]:
    """Parts of an axis one after the other, each a layer that has its output's name."""
    found, start = [], 0
    for number, size in enumerate(sizes):
        with graph.layer(operator, number):
            value = graph.real(operator, place)
            part = graph.emit(op.strided_slice(value, [axis], [start], [start + size], [1]))
            found.append(part if shape is None else graph.emit(op.reshape(part, shape)))
        start += size
    return found


def slice_(graph: Graph, operator: TfliteOperator) -> Value:
    """From a beginning so many elements of each axis; -1 is all that follow."""
    shape = graph.tensor(operator, 0).shape
    begins, sizes = graph.integers(operator, 1), graph.integers(operator, 2)
    if not len(begins) == len(sizes) == len(shape):
        raise graph.wrong(f"takes {sizes} from {begins} on of {shape}")
    ends = [
        extent if size == -1 else begin + size
        for extent, begin, size in zip(shape, begins, sizes, strict=True)
    ]
    if any(not 0 <= b < e <= n for b, e, n in zip(begins, ends, shape, strict=True)):
        raise graph.wrong(f"takes {sizes} from {begins} on of {shape}")
    axes, ones = list(range(len(shape))), [1] * len(shape)
    return graph.emit(op.strided_slice(graph.real(operator), axes, list(begins), ends, ones))


def strided_slice(graph: Graph, operator: TfliteOperator) -> Value:
    """Every so many elements between two, and axes left out where one element is taken."""
    options = {name: int(str(value)) for name, value in operator.options.items()}
    if options["ellipsis_mask"] or options["new_axis_mask"]:
        raise graph.wrong("has an ellipsis or a new axis, which are not supported")
    value = graph.real(operator)
    shape = shape_of(value)
    begins, ends, strides = (graph.integers(operator, place) for place in (1, 2, 3))
    if not len(begins) == len(ends) == len(strides) <= len(shape) or 0 in strides:
        raise graph.wrong(f"slices {shape} from {begins} to {ends} by {strides}")
    kept = list(shape)
    for axis, (begin, end, step) in enumerate(zip(begins, ends, strides, strict=True)):
        shrunk = options["shrink_axis_mask"] >> axis & 1
        chosen = _range(options, axis, shape[axis], (begin, end, step))
        if not chosen:
            raise graph.wrong(f"slices nothing of axis {axis} of {shape}")
        kept[axis] = 0 if shrunk else len(chosen)
        if chosen == range(shape[axis]):
            continue
        if chosen.step > 0:
            bounds = ([axis], [chosen.start], [chosen[-1] + 1], [chosen.step])
            value = graph.emit(op.strided_slice(value, *bounds))
        else:
            value = graph.taken(value, np.array(chosen), axis)
    result = tuple(extent for extent in kept if extent)
    return value if shape_of(value) == result else graph.emit(op.reshape(value, result))


def _range(options: dict[str, int], axis: int, size: int, numbers: tuple[int, int, int]) -> range:
    """Elements of one axis that a strided slice takes."""
    begin, end, step = numbers
    if options["shrink_axis_mask"] >> axis & 1:
        first = begin % size if -size <= begin < size else size
        return range(first, first + 1) if first < size else range(0)
    if options["offset"]:
        end += begin
    start = None if options["begin_mask"] >> axis & 1 else begin
    stop = None if options["end_mask"] >> axis & 1 else end
    return range(size)[slice(start, stop, step)]


def gather(graph: Graph, operator: TfliteOperator) -> Value:
    """Elements of one axis by constant numbers."""
    tensor, shape = graph.tensor(operator, 1), graph.tensor(operator, 0).shape
    axis = graph.axis(int(str(operator.options["axis"])), len(shape))
    numbers = np.reshape(graph.integers(operator, 1), tensor.shape)
    if operator.options["batch_dims"] or (numbers < 0).any() or (numbers >= shape[axis]).any():
        raise graph.wrong(f"gathers {tensor.shape} numbers of axis {axis} of {shape}")
    return graph.taken(graph.real(operator), numbers, axis)


def gather_nd(graph: Graph, operator: TfliteOperator) -> Value:
    """Elements by constant numbers of the first axes."""
    tensor, shape = graph.tensor(operator, 1), graph.tensor(operator, 0).shape
    numbers = np.reshape(graph.integers(operator, 1), tensor.shape)
    depth = tensor.shape[-1] if tensor.shape else 0
    extents = shape[:depth]
    if not 1 <= depth <= len(shape) or (numbers < 0).any() or (numbers >= extents).any():
        raise graph.wrong(f"gathers {tensor.shape} numbers of {shape}")
    flat = np.ravel_multi_index(tuple(np.moveaxis(numbers, -1, 0)), extents)
    rows = graph.emit(op.reshape(graph.real(operator), (prod(extents), *shape[depth:])))
    return graph.taken(rows, flat, 0)


CONVERTERS = {
    "GATHER": gather,
    "GATHER_ND": gather_nd,
    "SLICE": slice_,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "STRIDED_SLICE": strided_slice,
    "UNPACK": unpack,
}
