"""Operators that put elements elsewhere: pads, joins, transpositions, repeats and resizes."""

from __future__ import annotations

from functools import partial

import numpy as np
from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.activation import activated
from accelsim.quantize.tflite.graph import Graph, Value, shape_of

op = relax.op
_REFLECT, _SYMMETRIC = 0, 1


def pad(graph: Graph, operator: TfliteOperator) -> Value:
    """By real zero, or by the constant that a third input gives."""
    fill = 0.0
    if graph.index(operator, 2) is not None:
        tensor = graph.tensor(operator, 2)
        if tensor.values is None or tensor.values.size != 1:
            raise graph.wrong(f"pads by '{tensor.name}', which is not one constant")
        fill = float(tensor.values.reshape(())[()])
        if tensor.quantized:
            centred = np.float32(fill) - np.float32(tensor.zero_points[0])
            fill = float(centred * tensor.scales[0])
    width = _widths(graph, operator)
    flat = [count for pair in width for count in pair]
    return graph.emit(op.nn.pad(graph.real(operator), flat, "constant", fill))


def mirror_pad(graph: Graph, operator: TfliteOperator) -> Value:
    """By the elements near each end, in reverse."""
    mode = operator.options["mode"]
    if mode not in (_REFLECT, _SYMMETRIC):
        raise graph.wrong(f"pads by the unknown mode {mode}")
    value, kind = graph.real(operator), "reflect" if mode == _REFLECT else "symmetric"
    for axis, (before, after) in enumerate(_widths(graph, operator)):
        size = shape_of(value)[axis]
        if max(before, after) > size - (mode == _REFLECT):
            raise graph.wrong(f"pads {size} elements by {max(before, after)} of them")
        if before or after:
            indices = np.pad(np.arange(size), (before, after), kind)  # type: ignore[call-overload]
            value = graph.taken(value, indices, axis)
    return value


def _widths(graph: Graph, operator: TfliteOperator) -> list[tuple[int, int]]:
    flat = graph.integers(operator, 1)
    rank = len(graph.tensor(operator, 0).shape)
    if len(flat) != 2 * rank or min(flat) < 0:
        raise graph.wrong(f"pads {rank} axes by {flat}")
    return list(zip(flat[::2], flat[1::2], strict=True))


def concatenation(graph: Graph, operator: TfliteOperator) -> Value:
    """Along one axis."""
    values = [graph.real(operator, place) for place in range(len(operator.inputs))]
    axis = graph.axis(int(str(operator.options["axis"])), len(shape_of(values[0])))
    return activated(graph, operator, graph.emit(op.concat(values, axis)))


def pack(graph: Graph, operator: TfliteOperator) -> Value:
    """Along a new axis."""
    values = [graph.real(operator, place) for place in range(len(operator.inputs))]
    axis = graph.axis(int(str(operator.options["axis"])), len(shape_of(values[0])) + 1)
    return graph.emit(op.stack(values, axis))


def transpose(graph: Graph, operator: TfliteOperator) -> Value:
    """Axes in another order."""
    rank, order = len(graph.tensor(operator, 0).shape), graph.integers(operator, 1)
    axes = [axis % rank for axis in order if -rank <= axis < rank]
    if sorted(axes) != list(range(rank)):
        raise graph.wrong(f"puts {rank} axes into the order {order}")
    return graph.emit(op.permute_dims(graph.real(operator), axes))


def tile(graph: Graph, operator: TfliteOperator) -> Value:
    """Every axis so many times."""
    shape, repeats = graph.tensor(operator, 0).shape, graph.integers(operator, 1)
    if len(repeats) != len(shape) or min(repeats) < 1:
        raise graph.wrong(f"repeats {shape} by {repeats}")
    return graph.emit(op.tile(graph.real(operator), list(repeats)))


def reverse(graph: Graph, operator: TfliteOperator) -> Value:
    """The elements of some axes in reverse."""
    value = graph.real(operator)
    rank = len(shape_of(value))
    for axis in sorted({graph.axis(one, rank) for one in graph.integers(operator, 1)}):
        value = graph.taken(value, np.arange(shape_of(value)[axis])[::-1], axis)
    return value


def broadcast(graph: Graph, operator: TfliteOperator) -> Value:
    """Axes of one element repeated, and new ones in front."""
    shape, wanted = graph.tensor(operator, 0).shape, graph.integers(operator, 1)
    ahead = len(wanted) - len(shape)
    full = (*(1,) * max(ahead, 0), *shape)
    if ahead < 0 or any(n not in (1, m) for n, m in zip(full, wanted, strict=True)):
        raise graph.wrong(f"repeats {shape} to {wanted}")
    value = graph.real(operator)
    if ahead:
        value = graph.emit(op.reshape(value, full))
    counts = [m // n for n, m in zip(full, wanted, strict=True)]
    return graph.emit(op.tile(value, counts))


def resize(graph: Graph, operator: TfliteOperator, method: str) -> Value:
    """Of height and width, to the size that the second input gives."""
    shape, size = graph.tensor(operator, 0).shape, graph.integers(operator, 1)
    if len(shape) != 4 or len(size) != 2 or min(size) < 1 or max(size) > 1 << 14:
        raise graph.wrong(f"resizes {shape} to {size}")
    corners = bool(operator.options["align_corners"])
    centres = bool(operator.options["half_pixel_centers"])
    if corners and centres:
        raise graph.wrong("aligns corners and centres at once")
    mode = "align_corners" if corners else "half_pixel" if centres else "asymmetric"
    call = op.image.resize2d(
        graph.real(operator),
        (size[0], size[1]),
        layout="NHWC",
        method=method,
        coordinate_transformation_mode=mode,
        rounding_method="round_prefer_ceil" if corners or centres else "floor",
    )
    return graph.emit(call)


CONVERTERS = {
    "BROADCAST_TO": broadcast,
    "CONCATENATION": concatenation,
    "MIRROR_PAD": mirror_pad,
    "PACK": pack,
    "PAD": pad,
    "PADV2": pad,
    "RESIZE_BILINEAR": partial(resize, method="linear"),
    "RESIZE_NEAREST_NEIGHBOR": partial(resize, method="nearest_neighbor"),
    "REVERSE_V2": reverse,
    "TILE": tile,
    "TRANSPOSE": transpose,
}
