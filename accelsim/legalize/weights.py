"""Constant weights and biases of products, and the convolution that they make.

What comes in: expressions of a QDQ graph. What goes out: int8 weights, biases, and a `Conv2d` or
the reason why the NPU cannot have it. It must not know which operator multiplies.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.artifacts import F32, I8, I32, Requantize
from accelsim.errors import ModelError
from accelsim.legalize.frame import Frame, Leaf
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import Rejection
from accelsim.legalize.multipliers import bias_steps, product_end
from accelsim.legalize.qnnpack import reason_accumulator_overflows
from accelsim.quantize.layouts import image_layout

_RENAMING = ("relax.reshape", "relax.expand_dims", "relax.squeeze")
_NEAR = 2.0**-20  # relative: a bias's scale is the product of two others, rounded somewhere

LARGEST_EXPANDED = 1 << 24
"""Weights that the groups of a convolution may need when it runs as one convolution."""


@dataclass(frozen=True, slots=True)
class Weight:
    """Weights of one zero point, and one scale for each output channel."""

    values: I8  # in the graph's layout
    scale: F32  # (out_channels,)
    zero_point: int


@dataclass(frozen=True, slots=True)
class Bias:
    """A float bias, or one in steps of the accumulator."""

    reals: F32 | None  # (out_channels,)
    steps: I32 | None = None
    scale: F32 | None = None  # of the steps


@dataclass(frozen=True, slots=True)
class Product:
    """What a sum of products with weights is made of."""

    bias: I32
    weight_zero_point: int
    input_zero_point: int
    requantize: Requantize


def core_and_bias(
    graph: Graph, node: Node, cores: Collection[str]
) -> tuple[Node, Bias | None] | None:
    """The operator of `cores` at the end of an island, and the bias added to it; None if none."""
    if node.op in cores:
        return node, None
    if node.op != "relax.add":
        return None
    for value, other in (tuple(node.args), tuple(node.args)[::-1]):
        core = graph.producer(value)
        if core is not None and core.op in cores:
            axis = -1 if core.op == "relax.matmul" else image_layout(core.value).index("c")
            bias = _bias_of(graph, other, core.shape, axis % len(core.shape))
            if bias is not None:
                return core, bias
    return None


def _bias_of(graph: Graph, expr: Any, shape: tuple[int, ...], axis: int) -> Bias | None:
    """A constant with one number a channel of a tensor of `shape`, or None."""
    extents = (shape[axis], *(1,) * (len(shape) - 1 - axis))
    if tuple(expr.ty.shape) not in (extents, *((1,) * n + extents for n in range(1, len(shape)))):
        return None
    node = graph.producer(expr)
    while node is not None and node.op in _RENAMING:
        expr = node.args[0]
        node = graph.producer(expr)
    reals = graph.constant(expr)
    if reals is not None:
        return Bias(reals.astype(np.float32).reshape(-1))
    if node is None or node.op != "relax.dequantize":
        return None
    steps, scale, zero_point = (graph.constant(argument) for argument in node.args[:3])
    if steps is None or scale is None or zero_point is None or zero_point.any():
        return None
    if steps.dtype != np.int32:
        return None
    return Bias(None, steps.reshape(-1), scale.astype(np.float32).reshape(-1))


def weight_of(graph: Graph, expr: Any, name: str, axis: int = 0) -> Weight | Rejection:
    """Dequantized constant weights whose output channels lie along `axis`."""
    node = graph.producer(expr)
    if node is None or node.op != "relax.dequantize":
        return Rejection("its weights are not quantized")
    values = graph.constant(node.args[0])
    scale, zero_point = graph.constant(node.args[1]), graph.constant(node.args[2])
    if values is None or scale is None or zero_point is None:
        return Rejection("its weights are not constants")
    if values.dtype not in (np.int8, np.uint8):
        raise ModelError(f"Layer {name!r} has {values.dtype} weights; they must be int8 or uint8.")
    if len(set(zero_point.reshape(-1).tolist())) != 1:
        return Rejection("its weights have a different zero point in each channel")
    outputs = values.shape[axis]
    along = int(node.value.attrs.axis) % values.ndim == axis % values.ndim
    if scale.size not in (1, outputs) or (scale.size > 1 and not along):
        return Rejection("its weights are not quantized per output channel")
    shift = 128 if values.dtype == np.uint8 else 0
    return Weight(
        values=(values.astype(np.int16) - shift).astype(np.int8),
        scale=np.broadcast_to(scale.astype(np.float32).reshape(-1), (outputs,)).copy(),
        zero_point=int(zero_point.reshape(-1)[0]) - shift,
    )


def product_of(
    frame: Frame,
    leaf: Leaf,
    weight: Weight,
    kernels: I8,
    bias: Bias | None,
    *,
    connected: bool = False,
) -> Product | Rejection:
    """The arithmetic of a product with `kernels`, output channels first.

    `connected` as in `legalize.multipliers.product_end`.
    """
    source, target = leaf.quantization, frame.quantization
    steps = _bias_in_steps(frame.rounding, bias, source.scale, weight)
    if isinstance(steps, str):
        return Rejection(steps)
    end = Requantize(np.ones(1, np.float32), target.int8_zero_point, *frame.int8_limits)
    requantize = product_end(
        frame.rounding, source.scale, weight.scale, target.scale, end, connected=connected
    )
    if isinstance(requantize, str):
        return Rejection(requantize)
    reason = reason_accumulator_overflows(kernels, weight.zero_point, steps, source.int8_zero_point)
    if reason is not None:
        return Rejection(reason)
    return Product(steps, weight.zero_point, source.int8_zero_point, requantize)


def _bias_in_steps(
    rounding: str, bias: Bias | None, input_scale: np.float32, weight: Weight
) -> I32 | str:
    """A bias that the model has in integers is taken as it is."""
    if bias is None:
        return np.zeros(weight.scale.size, np.int32)
    if bias.steps is None or bias.scale is None:
        assert bias.reals is not None
        return bias_steps(rounding, bias.reals, input_scale, weight.scale)
    if not np.allclose(bias.scale, input_scale * weight.scale, rtol=_NEAR, atol=0):
        return "its integer bias has another scale than its accumulator"
    return bias.steps


def without_groups(values: I8, zero_point: int, groups: int) -> I8 | Rejection:
    """Weights (out, in / groups, …) of one ungrouped convolution.

    Outside its group a weight is the zero point.
    """
    if values.size * groups > LARGEST_EXPANDED:
        return Rejection(f"its {groups} groups are too large to run as one convolution")
    outputs, per_group, *kernel = values.shape
    dense = np.full((outputs, per_group * groups, *kernel), zero_point, dtype=np.int8)
    rows = outputs // groups
    for group in range(groups):
        out = slice(group * rows, (group + 1) * rows)
        dense[out, group * per_group : (group + 1) * per_group] = values[out]
    return dense
