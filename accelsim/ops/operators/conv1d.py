"""Convolution over one axis: a keyword spotter's first layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accelsim.ops.edges import rounded
from accelsim.ops.operators.convolution import convolution, draw_conv
from accelsim.ops.weights import GROUPS, ConvSpec, facts
from accelsim.spec.config import Config


def conv1d_edges(config: Config) -> tuple[ConvSpec, ...]:
    """A convolution over one axis, with three taps and padding, bent in one respect a case."""
    lanes = config.lanes
    plain = ConvSpec(
        "plain", channels=lanes, outputs=lanes, size=(19,), **_line(kernel=3, padding=1)
    )
    specs = (
        plain,
        replace(plain, name="one_element", size=(1,)),
        replace(plain, name="one_channel", channels=1, outputs=1),
        replace(plain, name="lanes_minus_one", channels=lanes - 1, outputs=lanes - 1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1, outputs=lanes + 1),
        replace(plain, name="three_images", batch=3),
        replace(plain, name="stride", stride=(3,)),
        replace(plain, name="dilation", dilation=(4,)),
        replace(plain, name="largest_kernel", kernel=(16,), padding=(8,)),
        replace(plain, name="uneven_padding", extra=(2,)),
        replace(plain, name="groups", channels=12, outputs=6, groups=3),
        replace(plain, name="beyond_activations", size=(config.act_rows + 9,)),
        replace(plain, name="zero_points_low", zeros=(0, 0)),
        replace(plain, name="zero_points_high", zeros=(255, 255)),
        replace(plain, name="per_channel", per_channel=True),
        replace(plain, name="ends_only", values="ends"),
        replace(plain, name="relu", relu=True),
    )
    return (*specs, *rounded(specs, ("plain", "per_channel", "relu")))


def _line(**values: int) -> dict[str, Any]:
    """The attributes of a convolution over one axis."""
    plain = {"kernel": 1, "stride": 1, "padding": 0, "dilation": 1, "extra": 0}
    return {name: (value,) for name, value in (plain | values).items()}


def draw_conv1d(rng: np.random.Generator, config: Config) -> ConvSpec:
    """The same over one axis."""
    spec = draw_conv(rng, config)
    names = ("size", "kernel", "stride", "padding", "dilation", "extra")
    return replace(spec, **{name: getattr(spec, name)[1:] for name in names})


OPERATORS = (convolution("conv1d", conv1d_edges, draw_conv1d, facts("conv", "16 taps", GROUPS)),)
