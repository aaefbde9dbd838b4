"""Products of two activations: the second one is loaded as weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from accelsim.artifacts import Layer, MatMul, TensorExtent
from accelsim.errors import ModelError
from accelsim.schedule.activation_weights import ActivationWeights
from accelsim.schedule.build import Builder
from accelsim.schedule.conv_tiling import ConvShape, choose
from accelsim.schedule.matrix import MatrixJob, emit, facts
from accelsim.schedule.operators import Operator
from accelsim.schedule.parameters import is_shared
from accelsim.schedule.view import View, check_strides, merged, tensor_view
from accelsim.schedule.window import Axis


def schedule_matmul(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of all products of a batch; returns the facts of one."""
    matmul = layer.compute
    assert isinstance(matmul, MatMul)
    lanes = builder.config.lanes
    a, b, target = (tensor_view(tensors[n], lanes) for n in (*layer.inputs[:2], layer.output))
    if b.shape[1:] == (1, 1) and not _fits(matmul, a, b, target):
        b = _matrix(b)
        if a.shape[1:] == (1, 1):
            a, target = _matrix(a), _matrix(target)
    _check(layer.name, matmul, a, b, target)
    check_strides(layer.name, b)
    if not is_shared(matmul.requantize):
        raise ModelError(f"layer {layer.name}: a product of two activations has one multiplier")
    macs = prod(target.shape) * target.channels * a.channels
    if b.shape[:2] == (1, 1):
        a, target = merged(a, target)
    rows = target.shape[2]
    shape = ConvShape(
        1, Axis(1, 1, 1, 1, 0), Axis(rows, rows, 1, 1, 0), (1, 1), a.blocks, target.blocks
    )
    tiling = choose(shape, builder.config, layer.name)
    tiles, found = 0, {}
    for n, h in product(range(target.shape[0]), range(target.shape[1])):
        batch = (n if b.shape[0] > 1 else 0, h if b.shape[1] > 1 else 0, 0)
        job = MatrixJob(
            builder,
            index,
            layer.name,
            _one(a, (n, h, 0)),
            _one(target, (n, h, 0)),
            shape,
            tiling,
            ActivationWeights(_one(b, batch), matmul.transpose_b),
            None,
            matmul.requantize,
            matmul.a_zero_point,
            matmul.b_zero_point,
        )
        tiles, found = emit(job, tiles), facts(job)
    return {"tiles": tiles, "macs": macs, **found}


def _one(view: View, at: tuple[int, int, int]) -> View:
    """One matrix of a batch."""
    return view.every(at, (1, 1, 1), (1, 1, view.shape[2]))


def _matrix(view: View) -> View:
    """A tensor of two axes: its images are the rows of one matrix."""
    return replace(view, shape=(1, 1, view.shape[0]), strides=(0, 0, view.strides[0]))


def _fits(matmul: MatMul, a: View, b: View, target: View) -> bool:
    """Whether the shapes are those of a product."""
    rows, columns = b.shape[2], b.channels
    inner, outer = (columns, rows) if matmul.transpose_b else (rows, columns)
    batches = all(size in (1, full) for size, full in zip(b.shape[:2], a.shape[:2], strict=True))
    same = (inner, outer) == (a.channels, target.channels)
    return same and batches and a.shape == target.shape


def _check(name: str, matmul: MatMul, a: View, b: View, target: View) -> None:
    """Raise ModelError where the shapes are not those of a product."""
    if not _fits(matmul, a, b, target):
        raise ModelError(
            f"layer {name}: {(*a.shape, a.channels)} by {(*b.shape, b.channels)} is no product of "
            f"shape {(*target.shape, target.channels)}"
        )


OPERATORS = (Operator(MatMul, schedule_matmul),)
