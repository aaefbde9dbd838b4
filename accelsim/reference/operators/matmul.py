"""Products of two activations: `relax.matmul`, each operand perhaps transposed before it.

What comes in: an island, or a layer's site. What goes out: its claim and kernel. It must not know
other families.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from accelsim.errors import ModelError
from accelsim.reference.derive import checked, ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values
from accelsim.reference.multipliers import product_scaling
from accelsim.reference.operators import Operator
from accelsim.reference.site import Site

op = relax.op
NEAR = 0.5 + 2.0**-10  # output steps from a product's real result to its integer, at most
Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """How the axes of both operands are turned before they are multiplied; () leaves them."""

    turns: tuple[Axes, Axes]


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the compiled function depends on beyond shapes."""

    turns: tuple[Axes, Axes]
    mode: str


def recognise(island: Island) -> Claim | None:
    """A product of two activations whose result nothing reshapes."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator != "relax.matmul":
        return None
    operands = [_turned(operand) for operand in node.operands]
    if any(operand is None for operand in operands) or node.shape != island.output.shape:
        return None
    (a, turn_a), (b, turn_b) = (operand for operand in operands if operand is not None)
    depth = a.shape[turn_a[-1] if turn_a else -1]
    return Claim(
        "matmul",
        Product((turn_a, turn_b)),
        (a, b),
        node.shape,
        island.ending.limits,
        math.prod(node.shape) * depth,
    )


def _turned(value: Any) -> tuple[Source, Axes] | None:
    """An activation and its permutation."""
    if isinstance(value, Source):
        return value, ()
    if not isinstance(value, Node) or value.operator != "relax.permute_dims":
        return None
    source = value.operands[0]
    if not isinstance(source, Source):
        return None
    rank, axes = len(source.shape), value.attrs.axes
    turn = range(rank)[::-1] if axes is None else (int(axis) % rank for axis in axes)
    return source, tuple(turn)


def kernel(site: Site) -> Kernel:
    """Σ (a - za)(b - zb) in int32, requantized."""
    core: Product = site.layer.core
    a, b = site.inputs
    turn, shape = core.turns[0], site.layer.core_shapes[0]
    depth = shape[turn[-1] if turn else -1]
    reach = [max(abs(-128 - one.zero_point), abs(127 - one.zero_point)) for one in (a, b)]
    if depth * reach[0] * reach[1] >= 2**31:
        raise ModelError(f"layer '{site.layer.name}': an accumulator could leave int32")
    values: dict[str, np.ndarray] = {
        "zero_point_0": np.array(a.zero_point, np.int16),
        "zero_point_1": np.array(b.zero_point, np.int16),
        "bias": np.zeros(1, np.int32),
    }
    scales = (a.scale, np.array([b.scale], np.float32))
    if site.rounding == "tflite":  # BATCH_MATMUL multiplies the scales in float32
        scales = (np.float32(a.scale * b.scale), np.ones(1, np.float32))
    scaling = checked(site, product_scaling(site.rounding, *scales, site.output.scale))
    values |= {**scaling.values(), **ends_of(site)}
    return Kernel(_emit, values, Geometry(core.turns, scaling.mode))


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    geometry: Geometry = emit.geometry
    sides = []
    for side, turn in enumerate(geometry.turns):
        value = emit.centred(x[side], p[f"zero_point_{side}"], side)
        sides.append(emit(op.permute_dims(value, list(turn))) if turn else value)
    return emit.requantized(emit(op.matmul(*sides, out_dtype="int32")), p, geometry.mode)


# PyTorch multiplies dequantized tensors in float32, and may fall on the other side of a tie.
OPERATOR = Operator(
    "matmul",
    recognise,
    kernel,
    distance=lambda site: NEAR,
    tensor_ranks=frozenset({2, 3, 4}),
)
