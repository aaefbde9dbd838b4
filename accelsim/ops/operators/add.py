"""The sum of two maps with scales of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Spec
from accelsim.ops.edges import common_edges
from accelsim.ops.modules import Builder
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.values import UNIFORM_DEVIATION, activation, drawn, output_zero
from accelsim.spec.config import Config


def add_edges(config: Config) -> tuple[Spec, ...]:
    """Sums of two maps."""
    plain = Spec("plain", channels=config.lanes)
    return (
        *common_edges(config, plain, 3),
        replace(plain, name="saturating", spread=600.0),
        replace(plain, name="relu", relu=True),
    )


def _draw(rng: np.random.Generator, config: Config) -> Spec:
    return Spec(**drawn(rng, config.lanes, 3), relu=bool(rng.integers(2)))


def _make(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    inputs = tuple(activation(rng, spec, side) for side in range(2))
    deviation = np.sqrt(sum(float(one.scale) ** 2 for one in inputs)) * UNIFORM_DEVIATION
    scale = np.float32(deviation / spec.spread)
    return Case(operator, spec, inputs, scale, output_zero(rng, spec, 2))


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    return build.emit(relax.op.add(*sources))


def _quantized(case: Case, inputs: list[Any]) -> Any:
    run = torch.ops.quantized.add_relu if case.spec.relu else torch.ops.quantized.add
    return run(*inputs, float(case.scale), case.zero)


OPERATORS = (
    Operator(
        "add",
        Facts(
            types="two int8 or uint8 activations",
            limits=("both operands of one shape",),
            instructions=("load", "store", "add"),
            roundings=("qnnpack", "fp32"),
            exact=("PyTorch qnnpack",),
        ),
        add_edges,
        _draw,
        _make,
        relax=_relax,
        torch=lambda case, sources: sources[0] + sources[1],
        quantized=_quantized,
    ),
)
