"""Edge cases by operator: single rows and channels, lanes ± 1, more than each buffer holds.

What comes in: a configuration. What goes out: specs. It must not know values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, isqrt

from accelsim.ops.case import Spec
from accelsim.spec.config import Config

SAME = {"kernel": (3, 3), "padding": (1, 1)}


def _side(rows: int) -> int:
    """Side of a square of more than `rows` pixels."""
    return isqrt(rows) + 1


def conv_edges(config: Config) -> tuple[Spec, ...]:
    """A convolution of 3×3 with padding, bent in one respect a case."""
    lanes = config.lanes
    plain = Spec("plain", channels=lanes, outputs=lanes, size=(6, 7), **SAME)  # type: ignore[arg-type]
    blocks = _side(config.wgt_rows // (9 * lanes))
    wide = (config.par_rows // 2 + 1) * lanes
    return (
        plain,
        replace(plain, name="one_pixel", size=(1, 1)),
        replace(plain, name="one_row", size=(1, 9)),
        replace(plain, name="one_column", size=(9, 1)),
        replace(plain, name="one_channel", channels=1, outputs=1),
        replace(plain, name="lanes_minus_one", channels=lanes - 1, outputs=lanes - 1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1, outputs=lanes + 1),
        replace(plain, name="three_channels", channels=3, outputs=lanes + 4, kernel=(7, 7)),
        replace(plain, name="two_images", batch=2),
        replace(plain, name="stride", stride=(2, 3), size=(9, 10)),
        replace(plain, name="dilation", dilation=(2, 3), size=(9, 11)),
        replace(plain, name="even_kernel", kernel=(2, 4)),
        replace(plain, name="pointwise", kernel=(1, 1), padding=(0, 0)),
        replace(plain, name="beyond_activations", size=(_side(config.act_rows),) * 2),
        replace(plain, name="beyond_weights", channels=blocks * lanes, outputs=blocks * lanes),
        replace(plain, name="beyond_accumulators", size=(_side(config.acc_rows),) * 2),
        replace(
            plain,
            name="beyond_parameters",
            outputs=wide,
            kernel=(1, 1),
            padding=(0, 0),
            size=(1, 2),
        ),
        replace(plain, name="zero_points_low", zeros=(0, 0)),
        replace(plain, name="zero_points_high", zeros=(255, 255)),
        replace(plain, name="weight_zero_point", weight_zero=-128),
        replace(plain, name="per_channel", per_channel=True),
        replace(plain, name="saturating", spread=600.0),
        replace(plain, name="small_multiplier", spread=3.0),
        replace(plain, name="small_scales", input_scale=2.0**-14),
        replace(plain, name="ends_only", values="ends"),
        replace(plain, name="relu", relu=True),
    )


def depthwise_edges(config: Config) -> tuple[Spec, ...]:
    """The same for a depthwise convolution."""
    lanes = config.lanes
    dropped = {"three_channels", "pointwise", "beyond_weights", "beyond_parameters"}
    kept = [spec for spec in conv_edges(config) if spec.name not in dropped]
    blocks = ceil(config.wgt_rows / 27) + 1
    many = replace(kept[0], name="beyond_weights", channels=blocks * lanes, size=(2, 3))
    large = replace(kept[0], name="kernel_five", kernel=(5, 5), padding=(2, 2), channels=lanes + 2)
    return tuple(replace(spec, outputs=spec.channels) for spec in (*kept, many, large))


def linear_edges(config: Config) -> tuple[Spec, ...]:
    """Vectors of one element up to more than the buffers hold."""
    lanes = config.lanes
    plain = Spec("plain", channels=3 * lanes, outputs=2 * lanes, size=(1, 1))
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
        replace(plain, name="weight_zero_point", weight_zero=127),
        replace(plain, name="per_channel", per_channel=True),
        replace(plain, name="saturating", spread=600.0),
        replace(plain, name="ends_only", values="ends"),
        replace(plain, name="relu", relu=True),
    )


def flatten_edges(config: Config) -> tuple[Spec, ...]:
    """A map that a linear layer reads as a vector in (c, h, w) order."""
    lanes = config.lanes
    plain = Spec("plain", channels=lanes, outputs=lanes + 2, size=(3, 4))
    return (
        plain,
        replace(plain, name="one_pixel", size=(1, 1)),
        replace(plain, name="one_row", size=(1, 5)),
        replace(plain, name="one_channel", channels=1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1),
        replace(plain, name="two_images", batch=2),
        replace(plain, name="zero_points_high", zeros=(255, 0)),
    )


def _plain_edges(config: Config, plain: Spec, zeros: int) -> tuple[Spec, ...]:
    lanes = config.lanes
    return (
        plain,
        replace(plain, name="one_pixel", size=(1, 1)),
        replace(plain, name="one_row", size=(1, 9)),
        replace(plain, name="one_column", size=(9, 1)),
        replace(plain, name="one_channel", channels=1),
        replace(plain, name="lanes_minus_one", channels=lanes - 1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1),
        replace(plain, name="two_images", batch=2),
        replace(plain, name="beyond_activations", size=(_side(config.act_rows),) * 2),
        replace(plain, name="many_channels", channels=(config.par_rows // 2 + 1) * lanes),
        replace(plain, name="zero_points_low", zeros=(0,) * zeros),
        replace(plain, name="zero_points_high", zeros=(255,) * zeros),
        replace(plain, name="ends_only", values="ends"),
    )


def unary_edges(low: float, high: float) -> Callable[[Config], tuple[Spec, ...]]:
    """Edges of an elementwise clamp with these limits in input scales."""

    def edges(config: Config) -> tuple[Spec, ...]:
        plain = Spec("plain", channels=config.lanes, limits=(low, high))
        return _plain_edges(config, plain, 1)

    return edges


def add_edges(config: Config) -> tuple[Spec, ...]:
    """Sums of two maps."""
    plain = Spec("plain", channels=config.lanes)
    return (
        *_plain_edges(config, plain, 3),
        replace(plain, name="saturating", spread=600.0),
        replace(plain, name="relu", relu=True),
    )


def max_pool_edges(config: Config) -> tuple[Spec, ...]:
    """Windows of 3×3 with padding, and others."""
    plain = Spec("plain", channels=config.lanes, stride=(2, 2), size=(9, 8), **SAME)  # type: ignore[arg-type]
    return (
        *_plain_edges(config, plain, 1),
        replace(plain, name="no_overlap", kernel=(2, 2), padding=(0, 0)),
        replace(plain, name="stride_one", stride=(1, 1)),
        replace(plain, name="whole_map", kernel=(9, 8), padding=(0, 0), stride=(1, 1)),
        replace(plain, name="long_window", kernel=(1, 5), padding=(0, 2)),
    )


def global_pool_edges(config: Config) -> tuple[Spec, ...]:
    """Means over whole maps; near the zero point the sums lie on ties."""
    plain = Spec("plain", channels=config.lanes, size=(7, 7))
    large = {"beyond_activations": (_side(config.act_rows // 4),) * 2}
    edges = _plain_edges(config, plain, 1)
    return (
        *(replace(spec, size=large.get(spec.name, spec.size)) for spec in edges),
        replace(plain, name="near_ties", size=(4, 4), values="narrow"),
    )
