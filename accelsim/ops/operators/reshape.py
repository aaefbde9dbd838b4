"""Changes of shape alone: a map that a linear layer reads as a vector in (c, h, w) order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accelsim.ops.operator import Facts, Operator
from accelsim.ops.operators.linear import linear_product, quantized_linear, relax_linear
from accelsim.ops.values import drawn, size_between
from accelsim.ops.weights import WeightSpec, make_weighted, summation_error, torch_weighted
from accelsim.spec.config import Config


def flatten_edges(config: Config) -> tuple[WeightSpec, ...]:
    """Maps of one element up to several blocks of channels."""
    lanes = config.lanes
    plain = WeightSpec("plain", channels=lanes, outputs=lanes + 2, size=(3, 4))
    return (
        plain,
        replace(plain, name="one_pixel", size=(1, 1)),
        replace(plain, name="one_row", size=(1, 5)),
        replace(plain, name="one_channel", channels=1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1),
        replace(plain, name="two_images", batch=2),
        replace(plain, name="zero_points_high", zeros=(255, 0)),
    )


def _draw(rng: np.random.Generator, config: Config) -> WeightSpec:
    common: dict[str, Any] = drawn(rng, config.lanes, 2) | {"size": size_between(rng, 1, 6)}
    outputs = int(rng.integers(1, 3 * config.lanes))
    return WeightSpec(**common, outputs=outputs, per_channel=bool(rng.integers(2)))


OPERATORS = (
    Operator(
        "flatten",
        Facts(
            types="int8 or uint8 activations",
            limits=("in front of a linear layer",),
            instructions=("load", "store", "conv", "drain"),
            roundings=("qnnpack", "fp32"),
            exact=("PyTorch qnnpack", "ONNX Runtime"),
        ),
        flatten_edges,
        _draw,
        make_weighted,
        relax=relax_linear,
        torch=torch_weighted,
        quantized=quantized_linear,
        error=summation_error,
        product=linear_product,
        spec=WeightSpec,
    ),
)
