"""PReLU with one slope a channel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Spec
from accelsim.ops.edges import common_edges, rounded
from accelsim.ops.modules import Builder, constant
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.values import activation, choice, drawn, fitting_scale, output_zero
from accelsim.spec.config import Config

ERROR = 2.0**-22  # relative: two roundings of float32


@dataclass(frozen=True, slots=True)
class SlopeSpec(Spec):
    """Slopes are drawn up to `steepest`, of the signs in `signs` in turn."""

    steepest: float = 0.5
    signs: tuple[int, ...] = (1,)


def _edges(config: Config) -> tuple[SlopeSpec, ...]:
    plain = SlopeSpec("plain", channels=config.lanes)
    specs = (*common_edges(config, plain, 2), replace(plain, name="steep", steepest=4.0))
    mixed = replace(plain, name="all_signs", signs=(1, -1, 0), channels=2 * config.lanes + 3)
    specs = (
        *specs,
        mixed,
        replace(mixed, name="negative", signs=(-1,)),
        replace(mixed, name="zero", signs=(0,), few="half of the values are 0"),
        replace(mixed, name="signs_zero_low", zeros=(0, 0)),
        replace(mixed, name="signs_zero_high", zeros=(255, 255)),
    )
    return (*specs, *rounded(specs, ("plain", "steep", "all_signs"), ("onnxruntime",)))


def _draw(rng: np.random.Generator, config: Config) -> SlopeSpec:
    rounding = choice(rng, ("qnnpack", "fp32", "onnxruntime"))
    steepest = float(2.0 ** rng.uniform(-6, 3))
    signs = choice(rng, ((1,), (1, -1), (-1, 0, 1)))
    common = drawn(rng, config.lanes, 2)
    return SlopeSpec(**common, steepest=steepest, signs=signs, rounding=rounding)


def _make(rng: np.random.Generator, operator: str, spec: Any) -> Case:
    source = activation(rng, spec)
    sizes = rng.uniform(spec.steepest / 1000, spec.steepest, spec.channels)
    slopes = (sizes * np.resize(spec.signs, spec.channels)).astype(np.float32)
    real = _bent(torch.from_numpy(source.reals), slopes).numpy()
    scale = fitting_scale(real, spec)
    zero = output_zero(rng, spec, 1)
    return Case(operator, spec, (source,), scale, zero, arrays={"slopes": slopes})


def _bent(x: Any, slopes: Any) -> Any:
    return torch.nn.functional.prelu(x, torch.from_numpy(slopes).to(x.dtype))


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    return build.emit(relax.op.nn.prelu(sources[0], constant(case.arrays["slopes"], "float32"), 1))


OPERATORS = (
    Operator(
        "prelu",
        Facts(
            types="int8 or uint8 activations, float32 slopes",
            limits=("constant slopes of any sign, one or one a channel",),
            instructions=("load", "store", "pool", "add"),
            roundings=("qnnpack", "fp32", "onnxruntime"),
            exact=(),
            notes="a scale for each side of zero, slopes below 0 by a second sum; PyTorch rounds "
            "x·slope once more, seen at ties",
        ),
        _edges,
        _draw,
        _make,
        relax=_relax,
        torch=lambda case, sources: _bent(sources[0], case.arrays["slopes"]),
        error=lambda case, sources, result: result.abs() * ERROR,
        steps=1,
        spec=SlopeSpec,
    ),
)
