"""Random models that move elements and change none.

What comes in: a random generator. What goes out: a `Trial` with LiteRT's outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from tvm import relax

from accelsim.artifacts import I8, Assemble, Layer, Piece, Region, Shape4, Tensor, Transpose
from accelsim.peers import qdq
from accelsim.peers.case import Trial, shape4
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.litert_draw import Graph, int8s, scale, trial, zero
from accelsim.peers.litert_model import (
    TfliteTensor,
    constant,
    tflite_model,
    tflite_outputs,
)
from accelsim.peers.shapes import all_of, four, picked


def shape_of(values: Sequence[int]) -> Shape4:
    """Four lengths."""
    n, h, w, c = (int(one) for one in values)
    return n, h, w, c


def random_shape(rng: Generator) -> Shape4:
    """Lengths of 1 to 12, more channels than lanes now and then."""
    n, h, w, c = (int(rng.integers(1, limit)) for limit in (3, 9, 9, 21))
    return n, h, w, c


def moved(
    sources: Sequence[I8],
    model: bytes,
    *outputs: tuple[Assemble | Transpose, Shape4],
    body: qdq.Body | None = None,
) -> Trial:
    """Layers that all read the same inputs, one an output of the model."""
    tensors, names = {}, []
    for number, values in enumerate(sources):
        names.append(f"x{number}")
        tensors[names[-1]] = Tensor(names[-1], shape4(values), 0, 1.0)
    layers = []
    for number, (op, shape) in enumerate(outputs):
        name = f"y{number}"
        tensors[name] = Tensor(name, shape, 0, 1.0)
        layers.append(Layer(name, "assemble", (name,), tuple(names), name, op))
    targets = tuple(layer.output for layer in layers)
    region = Region("litert", tensors, tuple(names), targets, tuple(layers))
    results = tflite_outputs(model, *sources)
    expected = {
        name: result.reshape(shape)
        for name, result, (_, shape) in zip(targets, results, outputs, strict=True)
    }
    inputs = dict(zip(names, sources, strict=True))
    if body is None:
        return Trial(region, inputs, expected)
    level = (0.5, 0)  # any scale: what moves keeps its level
    form = Graph((level,) * len(sources), level, body).compiled(sources, expected["y0"])
    return Trial(region, inputs, expected, compiled=form)


def chosen(take: Sequence[Any]) -> tuple[Assemble, Shape4]:
    """Elements of one input at index arrays, in that order, and the shape that they have."""
    return picked(take), shape_of([len(one) for one in take])


def pad(rng: Generator, mirrored: bool = False, valued: bool = False) -> Trial:
    """PAD with the zero point, PADV2 with a value, MIRROR_PAD with what lies inside."""
    shape = random_shape(rng)
    if mirrored:
        shape = shape_of([length + 3 for length in shape])
    before, after = rng.integers(0, 4, 4), rng.integers(0, 4, 4)
    out = shape_of([s + b + a for s, b, a in zip(shape, before, after, strict=True)])
    x, s, z = int8s(rng, *shape), scale(rng), zero(rng)
    tensor = TfliteTensor(shape, (s,), z)
    target = TfliteTensor(out, (s,), z)
    sizes = constant(np.stack([before, after], axis=1))
    fill = int(rng.integers(-128, 128)) if valued else z
    places = [np.arange(b, b + n) for b, n in zip(before, shape, strict=True)]
    op = Assemble((Piece(0, four(all_of(shape)), four(places)),), fill)
    if mirrored:
        model = tflite_model(
            "MIRROR_PAD", [tensor, sizes], [target], "MirrorPadOptions", version=2, mode=0
        )
        axes = zip(shape, before, after, strict=True)
        take = [np.pad(np.arange(n), (b, a), mode="reflect") for n, b, a in axes]
        return moved([x], model, chosen(take))
    if valued:
        value = TfliteTensor((1,), (s,), z, values=np.array([fill], np.int8))
        model = tflite_model("PADV2", [tensor, sizes, value], [target], "PadV2Options", version=2)
    else:
        model = tflite_model("PAD", [tensor, sizes], [target], "PadOptions", version=2)
    real = 0.5 * fill
    widths = np.stack([before, after], axis=1).ravel().tolist()
    body = qdq.call(relax.op.nn.pad, pad_width=widths, pad_value=real)
    return moved([x], model, (op, out), body=body)


def padv2(rng: Generator) -> Trial:
    """Padding with a value."""
    return pad(rng, valued=True)


def mirror_pad(rng: Generator) -> Trial:
    """Reflection."""
    return pad(rng, mirrored=True)


def concatenation(rng: Generator) -> Trial:
    """Two to four tensors along any axis."""
    axis, count = int(rng.integers(4)), int(rng.integers(2, 5))
    shape = list(random_shape(rng))
    shapes = [
        shape_of([*shape[:axis], int(rng.integers(1, 12)), *shape[axis + 1 :]])
        for _ in range(count)
    ]
    s, z = scale(rng), zero(rng)
    pieces, offset = [], 0
    for number, one in enumerate(shapes):
        places = all_of(one)
        places[axis] = places[axis] + offset
        pieces.append(Piece(number, four(all_of(one)), four(places)))
        offset += one[axis]
    out = shape_of([*shape[:axis], offset, *shape[axis + 1 :]])
    model = tflite_model(
        "CONCATENATION",
        [TfliteTensor(one, (s,), z) for one in shapes],
        [TfliteTensor(out, (s,), z)],
        "ConcatenationOptions",
        version=2,
        axis=axis,
    )

    def body(build: Any, values: list[Any]) -> Any:
        return build.emit(relax.op.concat(values, axis))

    sources = [int8s(rng, *one) for one in shapes]
    return moved(sources, model, (Assemble(tuple(pieces)), out), body=body)


def strided_slice(rng: Generator) -> Trial:
    """Steps of both signs on every axis."""
    shape = random_shape(rng)
    begins, ends, steps = [], [], []
    for length in shape:
        step = int(rng.choice([1, 2, 3, -1, -2]))
        low = int(rng.integers(0, length))
        high = int(rng.integers(low + 1, length + 1))
        begins.append(low if step > 0 else high - 1)
        ends.append(high if step > 0 else low - 1 - length if low == 0 else low - 1)
        steps.append(step)
    last = [
        e if e >= 0 else (None if e < -length else e) for e, length in zip(ends, shape, strict=True)
    ]
    take = [
        np.arange(length)[b:e:t] for length, b, e, t in zip(shape, begins, last, steps, strict=True)
    ]
    s, z = scale(rng), zero(rng)
    model = tflite_model(
        "STRIDED_SLICE",
        [TfliteTensor(shape, (s,), z), constant(begins), constant(ends), constant(steps)],
        [TfliteTensor(tuple(len(one) for one in take), (s,), z)],
        "StridedSliceOptions",
        version=2,
    )

    def body(build: Any, values: list[Any]) -> Any:
        first, stop = begins, [e if e >= 0 else -1 - n for e, n in zip(ends, shape, strict=True)]
        attributes = {"axes": [0, 1, 2, 3], "begin": first, "end": stop, "strides": steps}
        return build.emit(relax.op.strided_slice(values[0], **attributes))

    return moved([int8s(rng, *shape)], model, chosen(take), body=body)


def split(rng: Generator) -> Trial:
    """Equal parts along any axis."""
    axis, parts = int(rng.integers(4)), int(rng.integers(2, 4))
    shape = list(random_shape(rng))
    shape[axis] *= parts
    each = shape[axis] // parts
    out = (*shape[:axis], each, *shape[axis + 1 :])
    s, z = scale(rng), zero(rng)
    outputs = []
    for part in range(parts):
        take = all_of(shape)
        take[axis] = np.arange(part * each, (part + 1) * each)
        outputs.append(chosen(take))
    model = tflite_model(
        "SPLIT",
        [constant(axis), TfliteTensor(tuple(shape), (s,), z)],
        [TfliteTensor(out, (s,), z)] * parts,
        "SplitOptions",
        version=2,
        numSplits=parts,
    )
    return moved([int8s(rng, *shape)], model, *outputs)


def transpose(rng: Generator) -> Trial:
    """Any order of four axes."""
    shape = random_shape(rng)
    a, b, c, d = (int(v) for v in rng.permutation(4))
    out = shape_of([shape[a], shape[b], shape[c], shape[d]])
    s, z = scale(rng), zero(rng)
    model = tflite_model(
        "TRANSPOSE",
        [TfliteTensor(shape, (s,), z), constant([a, b, c, d])],
        [TfliteTensor(out, (s,), z)],
        "TransposeOptions",
        version=2,
    )
    body = qdq.call(relax.op.permute_dims, axes=[a, b, c, d])
    graph = Graph(((s, z),), (s, z), body)
    return trial(int8s(rng, *shape), model, Transpose((a, b, c, d)), out, graph)


def blocks(rng: Generator, gathered: bool) -> Trial:
    """SPACE_TO_DEPTH, or back."""
    size = int(rng.integers(2, 4))
    n, h, w, c = random_shape(rng)
    fine, coarse = (n, h * size, w * size, c), (n, h, w, c * size * size)
    shape, out = (fine, coarse) if gathered else (coarse, fine)
    pieces = []
    for number, (i, j) in enumerate(product(range(size), repeat=2)):
        spread = [np.arange(n), np.arange(i, h * size, size), np.arange(j, w * size, size)]
        sides = (
            four([*spread, np.arange(c)]),
            four([*all_of((n, h, w)), np.arange(number * c, (number + 1) * c)]),
        )
        take, place = sides if gathered else sides[::-1]
        pieces.append(Piece(0, take, place))
    s, z = scale(rng), zero(rng)
    name = "SPACE_TO_DEPTH" if gathered else "DEPTH_TO_SPACE"
    model = tflite_model(
        name,
        [TfliteTensor(shape, (s,), z)],
        [TfliteTensor(out, (s,), z)],
        "SpaceToDepthOptions" if gathered else "DepthToSpaceOptions",
        version=1,
        blockSize=size,
    )
    return moved([int8s(rng, *shape)], model, (Assemble(tuple(pieces)), out))


def space_to_depth(rng: Generator) -> Trial:
    """Blocks of pixels to channels."""
    return blocks(rng, gathered=True)


def depth_to_space(rng: Generator) -> Trial:
    """Channels to blocks of pixels."""
    return blocks(rng, gathered=False)


def resize_nearest(rng: Generator) -> Trial:
    """Any size, with asymmetric or half-pixel coordinates."""
    shape = random_shape(rng)
    target = [int(v) for v in rng.integers(1, 16, 2)]
    halves = bool(rng.integers(2))
    take = all_of(shape)
    for axis in (1, 2):
        ratio = np.float32(shape[axis]) / np.float32(target[axis - 1])
        middle = np.float32(0.5 if halves else 0)
        places = np.floor((np.arange(target[axis - 1], dtype=np.float32) + middle) * ratio)
        take[axis] = np.minimum(places.astype(np.int64), shape[axis] - 1)
    s, z = scale(rng), zero(rng)
    model = tflite_model(
        "RESIZE_NEAREST_NEIGHBOR",
        [TfliteTensor(shape, (s,), z), constant(target)],
        [TfliteTensor((shape[0], *target, shape[3]), (s,), z)],
        "ResizeNearestNeighborOptions",
        version=2,
        halfPixelCenters=halves,
    )
    return moved([int8s(rng, *shape)], model, chosen(take))


def gather(rng: Generator) -> Trial:
    """Given indices of one axis, repeated and in any order."""
    shape, axis = random_shape(rng), int(rng.integers(4))
    at = rng.integers(0, shape[axis], int(rng.integers(1, 20)))
    take = all_of(shape)
    take[axis] = at
    s, z = scale(rng), zero(rng)
    model = tflite_model(
        "GATHER",
        [TfliteTensor(shape, (s,), z), constant(at)],
        [TfliteTensor(tuple(len(one) for one in take), (s,), z)],
        "GatherOptions",
        version=2,
        axis=axis,
    )

    def body(build: Any, values: list[Any]) -> Any:
        indices = relax.const(at.astype(np.int64), "int64")
        return build.emit(relax.op.take(values[0], indices, axis))

    return moved([int8s(rng, *shape)], model, chosen(take), body=body)


def reshape(rng: Generator) -> Trial:
    """Height and width into one axis."""
    n, h, w, c = random_shape(rng)
    s, z = scale(rng), zero(rng)
    out = (n, 1, h * w, c)
    model = tflite_model(
        "RESHAPE",
        [TfliteTensor((n, h, w, c), (s,), z), constant(out)],
        [TfliteTensor(out, (s,), z)],
        "ReshapeOptions",
        newShape=list(out),
    )
    pieces = tuple(
        Piece(
            0,
            four([np.arange(n), [row], np.arange(w), np.arange(c)]),
            four([np.arange(n), [0], np.arange(row * w, (row + 1) * w), np.arange(c)]),
        )
        for row in range(h)
    )
    assert prod(out) == n * h * w * c
    return moved([int8s(rng, n, h, w, c)], model, (Assemble(pieces), out))


MOVES: dict[str, Maker] = {
    "pad": pad,
    "padv2": padv2,
    "mirror_pad": mirror_pad,
    "concatenation": concatenation,
    "strided_slice": strided_slice,
    "split": split,
    "transpose": transpose,
    "space_to_depth": space_to_depth,
    "depth_to_space": depth_to_space,
    "resize_nearest": resize_nearest,
    "gather": gather,
    "reshape": reshape,
}
