"""Linear layers over the last of three or four axes: a transformer's projections."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, sized
from accelsim.ops.edges import rounded
from accelsim.ops.modules import Builder, constant
from accelsim.ops.operator import Operator
from accelsim.ops.torch_kernels import quantized_weight
from accelsim.ops.values import MATRIX_ERROR, activation, choice, drawn, output_zero, weighted
from accelsim.ops.weights import WeightSpec, facts
from accelsim.spec.config import Config

op = relax.op


@dataclass(frozen=True, slots=True)
class RowsSpec(WeightSpec):
    """An input (batch, *rows, channels)."""

    rows: tuple[int, ...] = sized((6,), 1)


def rows_edges(config: Config) -> tuple[RowsSpec, ...]:
    """Rows of vectors of one element up to more than the buffers hold."""
    lanes = config.lanes
    plain = RowsSpec("plain", channels=2 * lanes, outputs=lanes, size=())
    specs = (
        plain,
        replace(plain, name="one_row", rows=(1,)),
        replace(plain, name="four_axes", rows=(3, 4), batch=2),
        replace(plain, name="three_images", batch=3),
        replace(plain, name="one_channel", channels=1, outputs=1),
        replace(plain, name="lanes_minus_one", channels=lanes - 1, outputs=lanes - 1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1, outputs=lanes + 1),
        replace(plain, name="beyond_activations", rows=(config.act_rows // 2 + 3,)),
        replace(plain, name="beyond_weights", channels=config.wgt_rows // 2 + lanes),
        replace(plain, name="zero_points_low", zeros=(0, 0)),
        replace(plain, name="zero_points_high", zeros=(255, 255)),
        replace(plain, name="weight_zero_point", weight_zero=127, zeros=(128, 128)),
        replace(plain, name="per_channel", per_channel=True),
        replace(plain, name="relu", relu=True),
    )
    return (*specs, *rounded(specs, ("plain", "per_channel")))


def _draw(rng: np.random.Generator, config: Config) -> RowsSpec:
    per_channel = bool(rng.integers(2))
    return RowsSpec(
        **drawn(rng, config.lanes, 2) | {"size": ()},
        outputs=int(rng.integers(1, 3 * config.lanes)),
        rows=choice(rng, ((1,), (7,), (2, 5), (3, 1))),
        per_channel=per_channel,
        weight_zero=0 if per_channel else int(rng.integers(-128, 128)),
    )


def _make(rng: np.random.Generator, operator: str, spec: Any) -> Case:
    source = activation(rng, spec, shape=(spec.batch, *spec.rows, spec.channels))
    shape, more = (spec.outputs, spec.channels), {"weight_zero": spec.weight_zero}
    weight, scale = weighted(rng, spec, shape, source, per_channel=spec.per_channel, **more)
    return Case(operator, spec, (source,), scale, output_zero(rng, spec, 1), weight)


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    assert case.weight is not None
    result = _product(build, case, sources[0], build.weight(case, quantized))
    return build.emit(op.add(result, constant(case.weight.bias, "float32")))


def _product(build: Builder, case: Case, x: Any, weight: Any) -> Any:
    return build.emit(op.matmul(x, build.emit(op.permute_dims(weight))))


def _torch(case: Case, sources: list[Any], magnitude: bool = False) -> Any:
    assert case.weight is not None
    x = sources[0]
    weight, bias = (torch.from_numpy(v).to(x.dtype) for v in (case.weight.reals, case.weight.bias))
    if magnitude:
        x, weight, bias = x.abs(), weight.abs(), bias.abs()
    return torch.nn.functional.linear(x, weight, bias)


def _error(case: Case, sources: list[Any], result: Any) -> Any:
    terms = case.spec.channels + 1
    return _torch(case, sources, magnitude=True) * (terms * MATRIX_ERROR)


def _quantized(case: Case, inputs: list[Any]) -> Any:
    assert case.weight is not None
    kernels = torch.ops.quantized
    packed = kernels.linear_prepack(
        quantized_weight(case.weight), torch.from_numpy(case.weight.bias)
    )
    result = kernels.linear(inputs[0], packed, float(case.scale), case.zero)
    return torch.relu(result) if case.spec.relu else result


OPERATORS = (
    Operator(
        "linear_rows",
        facts("conv", "three or four axes, the last one multiplied"),
        rows_edges,
        _draw,
        _make,
        relax=_relax,
        torch=_torch,
        quantized=_quantized,
        error=_error,
        product=_product,
        spec=RowsSpec,
    ),
)
