"""Products of two activations, batched, with zero points on both: attention's, for one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Spec, sized
from accelsim.ops.edges import rounded
from accelsim.ops.modules import Builder
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.values import (
    MATRIX_ERROR,
    UNIFORM_DEVIATION,
    activation,
    choice,
    drawn,
    output_zero,
)
from accelsim.spec.config import Config

op = relax.op


@dataclass(frozen=True, slots=True)
class MatmulSpec(Spec):
    """(batches, rows, depth) by (batches, depth, columns), or by (batches, columns, depth).

    `channels` is the depth. Of batches that differ, those of the second operand are 1; it may also
    have no batches at all.
    """

    batches: tuple[int, ...] = sized((2, 3), ())
    second: tuple[int, ...] = sized((2, 3), ())
    rows: int = sized(5, 1)
    columns: int = sized(8, 1)
    transposed: bool = False

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of both operands."""
        matrix = (self.columns, self.channels) if self.transposed else (self.channels, self.columns)
        return (*self.batches, self.rows, self.channels), (*self.second, *matrix)


def matmul_edges(config: Config) -> tuple[MatmulSpec, ...]:
    """Small batches of matrices, bent in one respect a case."""
    lanes = config.lanes
    plain = MatmulSpec("plain", channels=2 * lanes, columns=lanes, size=())
    turned = replace(plain, name="transposed", transposed=True)
    single = replace(plain, batches=(), second=())
    few, saturates = "a row of few outputs", "most of its outputs saturate"
    deep = config.wgt_rows // 2 + lanes
    specs = (
        plain,
        turned,
        replace(single, name="two_axes"),
        replace(single, name="two_axes_transposed", transposed=True),
        replace(plain, name="three_axes", batches=(3,), second=(3,)),
        replace(turned, name="three_axes_transposed", batches=(3,), second=(3,)),
        replace(plain, name="one_row", rows=1),
        replace(turned, name="one_row_transposed", rows=1),
        replace(plain, name="one_channel", channels=1),
        replace(plain, name="one_column", columns=1),
        replace(turned, name="one_column_transposed", columns=1),
        replace(single, name="one_element", rows=1, columns=1, few=few),
        replace(plain, name="lanes_minus_one", channels=lanes - 1, columns=lanes - 1),
        replace(turned, name="lanes_plus_one", channels=lanes + 1, columns=lanes + 1),
        replace(plain, name="shared", second=(1, 1)),
        replace(plain, name="shared_by_heads", second=(2, 1)),
        replace(turned, name="second_of_two_axes", second=()),
        replace(single, name="beyond_activations", rows=config.act_rows // 2 + 3),
        replace(single, name="beyond_weights", channels=deep, zeros=(130, 120, 128)),
        replace(single, name="beyond_both", transposed=True, columns=deep),
        replace(plain, name="zero_points_low", zeros=(0, 0, 0)),
        replace(turned, name="zero_points_high", zeros=(255, 0, 255)),
        replace(plain, name="both_high", zeros=(255, 255, 0)),
        replace(plain, name="ends_only", values="ends"),
        replace(plain, name="smallest_scale", input_scale=2.0**-20),
        replace(plain, name="largest_scale", input_scale=2.0**4),
        replace(plain, name="saturating", spread=600.0, few=saturates),
        replace(plain, name="relu", relu=True, zeros=(130, 120, 90)),
    )
    return (*specs, *rounded(specs, ("plain", "transposed", "zero_points_high")))


def _draw(rng: np.random.Generator, config: Config) -> MatmulSpec:
    common = drawn(rng, config.lanes, 3) | {"size": (), "batch": 1}
    batches = choice(rng, ((), (2,), (2, 3), (3, 1)))
    shared = tuple(choice(rng, (1, n)) for n in batches)
    return MatmulSpec(
        **common,
        batches=batches,
        second=choice(rng, (batches, shared)),
        rows=int(rng.integers(1, 3 * config.lanes)),
        columns=int(rng.integers(1, 3 * config.lanes)),
        transposed=bool(rng.integers(2)),
    )


def _legal(spec: MatmulSpec) -> bool:
    """Whether the batches of the second operand are those of the first one, or 1."""
    batches = zip(spec.batches, spec.second, strict=False)
    return len(spec.second) in (0, len(spec.batches)) and all(s in (1, n) for n, s in batches)


def _make(rng: np.random.Generator, operator: str, spec: Any) -> Case:
    a, b = (activation(rng, spec, side, shape) for side, shape in enumerate(spec.shapes))
    offsets = [1 + abs(127.5 - one.zero) / UNIFORM_DEVIATION for one in (a, b)]
    step = float(a.scale) * float(b.scale) * UNIFORM_DEVIATION**2
    deviation = step * np.sqrt(spec.channels) * max(offsets)
    mean = step * spec.channels * (offsets[0] - 1) * (offsets[1] - 1)
    scale = np.float32(max(deviation, mean / 2) / spec.spread)
    return Case(operator, spec, (a, b), scale, output_zero(rng, spec, 2))


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    return _product(build, case, *sources)


def _product(build: Builder, case: Case, a: Any, b: Any) -> Any:
    spec: Any = case.spec
    if spec.transposed:
        rank = len(spec.shapes[1])
        b = build.emit(op.permute_dims(b, [*range(rank - 2), rank - 1, rank - 2]))
    return build.emit(op.matmul(a, b))


def _torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    a, b = sources
    return torch.matmul(a, b.transpose(-1, -2) if spec.transposed else b)


def _error(case: Case, sources: list[Any], result: Any) -> Any:
    """The bound of a sum of n products in any order: n·u·Σ|a·b| with unit round-off u."""
    return _torch(case, [one.abs() for one in sources]) * (case.spec.channels * MATRIX_ERROR)


OPERATORS = (
    Operator(
        "matmul",
        Facts(
            types="int8 or uint8 activations, int32 sums",
            limits=(
                "two to four axes, batches of the second operand 1 or those of the first",
                "the second operand may be transposed",
                "sums that cannot leave int32",
            ),
            instructions=("load", "store", "conv", "drain"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("ONNX Runtime", "LiteRT"),
            notes="PyTorch multiplies dequantized tensors in float32",
        ),
        matmul_edges,
        _draw,
        _make,
        relax=_relax,
        torch=_torch,
        error=_error,
        steps=1,
        product=_product,
        legal=_legal,
        spec=MatmulSpec,
    ),
)
