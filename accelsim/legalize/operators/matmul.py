"""Products of two activations, batched, the second one as it is or transposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te

from accelsim.artifacts import MatMul, Requantize
from accelsim.legalize.expressions import Activation, Arguments, output, requantized
from accelsim.legalize.frame import Frame, Leaf, hide, leaf_of, operator_of, reveal
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.multipliers import product_end
from accelsim.legalize.operators import Operator


@dataclass(frozen=True, slots=True)
class _Operand:
    """A leaf, whether its last two axes are exchanged, and the layers looked through."""

    leaf: Leaf
    transposed: bool = False
    absorbed: tuple[str, ...] = ()
    hidden: tuple[Any, ...] = ()


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A matmul of two activations."""
    if node.op != "relax.matmul":
        return None
    a, b = (_operand(frame, expr, node) for expr in node.args)
    if a is None or b is None:
        return None
    if a.transposed:
        return Rejection("its first operand is transposed, and has no layer of its own for it")
    if len(a.leaf.shape) < 2 or len(b.leaf.shape) not in (2, len(a.leaf.shape)):
        return Rejection(
            f"it multiplies {a.leaf.shape} by {b.leaf.shape}; the NPU has batches of equal rank"
        )
    for layout in (a.leaf.layout, b.leaf.layout, frame.layout):
        if not layout.endswith("c"):
            return Rejection("its tensors do not have their channels last")
    batches = zip(a.leaf.shape[:-2], b.leaf.shape[:-2], strict=False)
    if frame.shape[:-1] != a.leaf.shape[:-1] or any(of_b not in (1, n) for n, of_b in batches):
        return Rejection("its first operand is repeated for batches of the second one")
    source, factor = a.leaf.quantization, b.leaf.quantization
    depth = a.leaf.shape[-1]
    reach = [
        max(127 - zero, zero + 128) for zero in (source.int8_zero_point, factor.int8_zero_point)
    ]
    if depth * reach[0] * reach[1] >= 2**31:
        return Rejection(f"the int32 sum of {depth} products may overflow")
    requantize = _requantize(frame, source.scale, factor.scale)
    if isinstance(requantize, str):
        return Rejection(requantize)
    compute = MatMul(source.int8_zero_point, factor.int8_zero_point, b.transposed, requantize)
    hide(frame, b.hidden)
    reveal(frame, b.leaf.var)
    return operator_of(frame, "matmul", (a.leaf, b.leaf), compute, absorbed=b.absorbed)


def _requantize(frame: Frame, a: np.float32, b: np.float32) -> Requantize | str:
    """TFLite's BATCH_MATMUL multiplies the scales in float32."""
    one = np.ones(1, np.float32)
    end = Requantize(one, frame.quantization.int8_zero_point, *frame.int8_limits)
    output_scale = frame.quantization.scale
    if frame.rounding == "tflite":
        return product_end("tflite", np.float32(a * b), one, output_scale, end)
    return product_end(frame.rounding, a, b * one, output_scale, end)


def _operand(frame: Frame, expr: Any, core: Node) -> _Operand | None:
    """An operand of the product `core`, through a transposition of its last two axes."""
    graph = frame.graph
    node = graph.producer(expr)
    if _exchanges(node):
        assert node is not None
        leaf = leaf_of(frame, node.args[0])
        return None if leaf is None else _Operand(leaf, transposed=True)
    leaf = leaf_of(frame, expr)
    if leaf is None:
        return None
    if not core.args[1].same_as(expr):
        return _Operand(leaf)
    layer = _layer_before(graph, leaf, node, core)
    source = leaf_of(frame, layer.args[0]) if layer is not None and _exchanges(layer) else None
    if source is None or layer is None or not source.layout.endswith("c"):
        return _Operand(leaf)
    if not source.quantization.same_levels(leaf.quantization):
        return _Operand(leaf)
    return _Operand(source, True, (_name(graph, leaf),), (leaf.var,))


def _layer_before(graph: Graph, leaf: Leaf, dequantize: Node | None, core: Node) -> Node | None:
    """The one operator that makes a leaf which only `core` reads."""
    quantize = graph.producer(leaf.var)
    reader = graph.sole_user(leaf.var)
    if quantize is None or quantize.op != "relax.quantize" or reader is not dequantize:
        return None
    if dequantize is None or graph.sole_user(dequantize.var) is not core:
        return None
    return graph.producer(quantize.args[0])


def _name(graph: Graph, leaf: Leaf) -> str:
    return graph.by_var[leaf.var].name


def _exchanges(node: Node | None) -> bool:
    """Whether a node exchanges the last two axes and no others."""
    if node is None or node.op != "relax.permute_dims":
        return False
    rank, axes = len(node.shape), node.value.attrs.axes
    order = list(range(rank))[::-1] if axes is None else [int(axis) % rank for axis in axes]
    return order == [*range(rank - 2), rank - 1, rank - 2]


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """Σ_k (a - za)(b - zb), requantized; tensors of two axes are matrices, of more batches."""
    a, b = arguments.activations
    values, transposed = arguments.values, op.compute.transpose_b
    depth = te.reduce_axis((0, a.shape[3]), name="depth")

    def product(*index: Any) -> Any:
        *places, column = index
        left = a.tensor(*places, depth)
        matrix = (column, depth) if transposed else (depth, column)
        right = b.tensor(*_batches(b, places), *matrix)
        centred_a = left.astype("int32") - values.a_zero_point
        return te.sum(centred_a * (right.astype("int32") - values.b_zero_point), axis=depth)

    sums = te.compute(op.shape, product, name="accumulator")
    places = {letter: axis for axis, letter in enumerate(op.layout)}

    def element(*index: Any) -> Any:
        at = [index["nhwc".index(letter)] for letter in places]
        return requantized(sums(*at), values.requantize, index[3])

    return output(op, element, op.op)


def _batches(b: Activation, places: list[Any]) -> list[Any]:
    """Places of b's batches; one that b does not have is its only one."""
    batches = list(b.tensor.shape[:-2])
    return [0 if int(size) == 1 else place for size, place in zip(batches, places, strict=False)]


OPERATOR = Operator(
    ops=("matmul",),
    starts=("relax.matmul",),
    compute=MatMul,
    read=read,
    expression=expression,
)
