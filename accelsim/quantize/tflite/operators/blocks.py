"""Pixels to channels or images and back: DEPTH_TO_SPACE, SPACE_TO_DEPTH, BATCH_TO_SPACE_ND and
SPACE_TO_BATCH_ND."""

from __future__ import annotations

from math import prod

from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.graph import Graph, Value, shape_of

op = relax.op


def depth_to_space(graph: Graph, operator: TfliteOperator) -> Value:
    """Channels (row, column, c) of a pixel become a block of pixels."""
    (n, h, w, c), block = _blocks(graph, operator)
    if c % (block * block):
        raise graph.wrong(f"makes blocks of {block}×{block} pixels of {c} channels")
    inner = (n, h, w, block, block, c // (block * block))
    parts = graph.emit(op.reshape(graph.real(operator), inner))
    turned = graph.emit(op.permute_dims(parts, [0, 1, 3, 2, 4, 5]))
    return graph.emit(op.reshape(turned, (n, h * block, w * block, inner[5])))


def space_to_depth(graph: Graph, operator: TfliteOperator) -> Value:
    """Blocks of pixels become channels (row, column, c)."""
    (n, h, w, c), block = _blocks(graph, operator)
    if h % block or w % block:
        raise graph.wrong(f"cuts {h}×{w} pixels into blocks of {block}×{block}")
    inner = (n, h // block, block, w // block, block, c)
    parts = graph.emit(op.reshape(graph.real(operator), inner))
    turned = graph.emit(op.permute_dims(parts, [0, 1, 3, 2, 4, 5]))
    return graph.emit(op.reshape(turned, (n, h // block, w // block, block * block * c)))


def _blocks(graph: Graph, operator: TfliteOperator) -> tuple[tuple[int, int, int, int], int]:
    shape, block = graph.tensor(operator, 0).shape, int(str(operator.options["block_size"]))
    if len(shape) != 4 or not 1 <= block <= max(shape):
        raise graph.wrong(f"has blocks of {block} for an input of {shape}")
    return (shape[0], shape[1], shape[2], shape[3]), block


def space_to_batch(graph: Graph, operator: TfliteOperator) -> Value:
    """Pads, then takes every so many pixels into an image of their own."""
    _, block, pads = _batch_blocks(graph, operator)
    value = graph.real(operator)
    width = [0, 0, *(n for pair in pads for n in pair), 0, 0]
    if any(width):
        value = graph.emit(op.nn.pad(value, width, "constant", 0.0))
    n, h, w, c = shape_of(value)
    if h % block[0] or w % block[1]:
        raise graph.wrong(f"cuts {h}×{w} pixels into blocks of {block[0]}×{block[1]}")
    inner = (n, h // block[0], block[0], w // block[1], block[1], c)
    turned = graph.emit(op.permute_dims(graph.emit(op.reshape(value, inner)), [2, 4, 0, 1, 3, 5]))
    return graph.emit(op.reshape(turned, (n * prod(block), inner[1], inner[3], c)))


def batch_to_space(graph: Graph, operator: TfliteOperator) -> Value:
    """The inverse: images become every so many pixels of one, which is cropped."""
    (n, h, w, c), block, crops = _batch_blocks(graph, operator)
    if n % prod(block):
        raise graph.wrong(f"puts {n} images into blocks of {block[0]}×{block[1]}")
    inner = (*block, n // prod(block), h, w, c)
    parts = graph.emit(op.reshape(graph.real(operator), inner))
    turned = graph.emit(op.permute_dims(parts, [2, 3, 0, 4, 1, 5]))
    size = (h * block[0], w * block[1])
    value = graph.emit(op.reshape(turned, (inner[2], *size, c)))
    begins = [crop[0] for crop in crops]
    ends = [extent - crop[1] for extent, crop in zip(size, crops, strict=True)]
    if any(b >= e for b, e in zip(begins, ends, strict=True)):
        raise graph.wrong(f"crops {size[0]}×{size[1]} pixels by {crops}")
    if not any(n for crop in crops for n in crop):
        return value
    return graph.emit(op.strided_slice(value, [1, 2], begins, ends, [1, 1]))


def _batch_blocks(
    graph: Graph, operator: TfliteOperator
) -> tuple[tuple[int, int, int, int], tuple[int, int], list[tuple[int, int]]]:
    shape = graph.tensor(operator, 0).shape
    block, around = graph.integers(operator, 1), graph.integers(operator, 2)
    if len(shape) != 4 or len(block) != 2 or min(block) < 1 or len(around) != 4 or min(around) < 0:
        raise graph.wrong(f"has blocks {block} and edges {around} for an input of {shape}")
    edges = [(around[0], around[1]), (around[2], around[3])]
    return (shape[0], shape[1], shape[2], shape[3]), (block[0], block[1]), edges


CONVERTERS = {
    "BATCH_TO_SPACE_ND": batch_to_space,
    "DEPTH_TO_SPACE": depth_to_space,
    "SPACE_TO_BATCH_ND": space_to_batch,
    "SPACE_TO_DEPTH": space_to_depth,
}
