"""Linear layers: vectors times constant weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case
from accelsim.ops.edges import rounded
from accelsim.ops.modules import Builder, constant
from accelsim.ops.operator import Operator
from accelsim.ops.torch_kernels import quantized_weight
from accelsim.ops.values import drawn
from accelsim.ops.weights import (
    ROUNDED,
    WeightSpec,
    facts,
    make_weighted,
    summation_error,
    torch_weighted,
)
from accelsim.spec.config import Config

op = relax.op


def linear_edges(config: Config) -> tuple[WeightSpec, ...]:
    """Vectors of one element up to more than the buffers hold, some in other roundings."""
    specs = _linear_specs(config)
    return (*specs, *rounded(specs, ROUNDED))


def _linear_specs(config: Config) -> tuple[WeightSpec, ...]:
    lanes = config.lanes
    plain = WeightSpec("plain", channels=3 * lanes, outputs=2 * lanes, size=())
    deep = config.wgt_rows // 2 + lanes
    wide = (config.par_rows // 2 + 1) * lanes
    return (
        plain,
        replace(plain, name="one_input", channels=1),
        replace(plain, name="one_output", outputs=1),
        replace(plain, name="lanes_minus_one", channels=lanes - 1, outputs=lanes - 1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1, outputs=lanes + 1),
        replace(plain, name="five_rows", batch=5),
        replace(plain, name="beyond_weights", channels=deep, outputs=lanes + 1),
        replace(plain, name="beyond_parameters", outputs=wide),
        replace(plain, name="zero_points_low", zeros=(0, 0)),
        replace(plain, name="zero_points_high", zeros=(255, 255)),
        replace(plain, name="weight_zero_point", weight_zero=127, zeros=(128, 128)),
        replace(plain, name="per_channel", per_channel=True),
        replace(plain, name="saturating", spread=600.0, few="most of its outputs saturate"),
        replace(plain, name="smallest_scale", input_scale=2.0**-20),
        replace(plain, name="largest_scale", input_scale=2.0**4),
        replace(plain, name="full_accumulators", full=True, outputs=4 * lanes),
        replace(plain, name="ends_only", values="ends"),
        replace(plain, name="relu", relu=True),
    )


def draw_linear(rng: np.random.Generator, config: Config) -> WeightSpec:
    """Up to nine blocks of inputs, up to five rows."""
    common = drawn(rng, config.lanes, 2)
    common |= {"size": (), "batch": int(rng.integers(1, 6))}
    common["channels"] = int(rng.integers(1, 9 * config.lanes))
    outputs = int(rng.integers(1, 3 * config.lanes))
    return WeightSpec(**common, outputs=outputs, per_channel=bool(rng.integers(2)))


def relax_linear(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    """A linear layer, of a flattened map too."""
    assert case.weight is not None
    result = linear_product(build, case, sources[0], build.weight(case, quantized))
    return build.emit(op.add(result, constant(case.weight.bias, "float32")))


def linear_product(build: Builder, case: Case, x: Any, weight: Any) -> Any:
    """The product with the transposed weight alone, of any dtype."""
    if len(case.inputs[0].values.shape) > 2:
        assert case.weight is not None
        x = build.emit(op.reshape(x, (case.spec.batch, case.weight.values.shape[1])))
    return build.emit(op.matmul(x, build.emit(op.permute_dims(weight))))


def quantized_linear(case: Case, inputs: list[Any]) -> Any:
    """qnnpack's linear layer."""
    assert case.weight is not None
    kernels = torch.ops.quantized
    packed = kernels.linear_prepack(
        quantized_weight(case.weight), torch.from_numpy(case.weight.bias)
    )
    flat = inputs[0].contiguous().flatten(1)
    result = kernels.linear(flat, packed, float(case.scale), case.zero)
    return torch.relu(result) if case.spec.relu else result


OPERATORS = (
    Operator(
        "linear",
        facts("conv"),
        linear_edges,
        draw_linear,
        make_weighted,
        relax=relax_linear,
        torch=torch_weighted,
        quantized=quantized_linear,
        error=summation_error,
        product=linear_product,
        spec=WeightSpec,
    ),
)
