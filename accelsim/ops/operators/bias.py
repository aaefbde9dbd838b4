"""A float32 number for each channel, added to a tensor or subtracted from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Spec
from accelsim.ops.edges import rounded
from accelsim.ops.modules import Builder, constant
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.rows import RowSpec, draw_rows, row_edges
from accelsim.ops.values import activation, choice, fitting_scale, output_zero
from accelsim.spec.config import Config

ROUNDINGS = ("qnnpack", "fp32", "onnxruntime")
BLOCKS = 9  # more than a slot of parameters of the smallest configuration holds
FEW = {
    "one_channel": "one number is a function of single elements",
    "narrow": "inputs within three steps of their zero point",
    "one_pixel": "one pixel has few values",
}


@dataclass(frozen=True, slots=True)
class BiasSpec(RowSpec):
    """Numbers `spread` over `reach` times the deviation of the input; some are 0."""

    reach: float = 1.0
    minus: bool = False


def _edges(config: Config) -> tuple[BiasSpec, ...]:
    plain = BiasSpec("plain", channels=config.lanes)
    specs = [
        replace(spec, few=FEW.get(spec.name, spec.few))
        for spec in row_edges(config, plain, 2, BLOCKS)
    ]
    specs += [
        replace(plain, name="minus", minus=True),
        replace(plain, name="larger_than_inputs", reach=30.0),
        replace(plain, name="smaller_than_inputs", reach=2.0**-12),
        replace(plain, name="relu", relu=True),
    ]
    return (*specs, *rounded(specs, ("plain", "sequence", "minus"), ("onnxruntime",)))


def _draw(rng: np.random.Generator, config: Config) -> BiasSpec:
    fields = draw_rows(rng, config, 2) | {"rounding": choice(rng, ROUNDINGS)}
    reach = float(2.0 ** rng.uniform(-6, 4))
    return BiasSpec(**fields, reach=reach, minus=bool(rng.integers(2)), relu=bool(rng.integers(2)))


def _make(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    assert isinstance(spec, BiasSpec)
    source = activation(rng, spec)
    width = spec.reach * (float(source.reals.std()) or 1.0)
    numbers = rng.normal(0, width, spec.channels).astype(np.float32)
    numbers[rng.random(spec.channels) < 0.1] = 0
    arrays = {"numbers": numbers}
    case = Case(operator, spec, (source,), np.float32(1), 0, arrays=arrays)
    total = _torch(case, [torch.from_numpy(source.reals)]).numpy()
    return replace(case, scale=fitting_scale(total, spec), zero=output_zero(rng, spec, 1))


def _numbers(case: Case) -> np.ndarray:
    """One a channel, in a shape that is broadcast to the input's."""
    shape = [1] * len(case.spec.shape)
    spec: Any = case.spec
    shape[spec.axis] = spec.channels
    return case.arrays["numbers"].reshape(shape)


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    join = relax.op.subtract if spec.minus else relax.op.add
    return build.emit(join(sources[0], constant(_numbers(case), "float32")))


def _torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    numbers = torch.from_numpy(_numbers(case)).to(sources[0].dtype)
    return sources[0] - numbers if spec.minus else sources[0] + numbers


OPERATORS = (
    Operator(
        "bias",
        Facts(
            types="int8 or uint8 activations, float32 numbers",
            limits=("a constant with one number a channel, up to 2^100",),
            instructions=("load", "store", "add", "lookup"),
            roundings=ROUNDINGS,
            exact=(),
            notes="the numbers are scales of their signs, so the sum is that of float32; PyTorch's "
            "and ONNX Runtime's quantize behind it may round a tie to the other side",
        ),
        _edges,
        _draw,
        _make,
        relax=_relax,
        torch=_torch,
        steps=1,
        spec=BiasSpec,
    ),
)
