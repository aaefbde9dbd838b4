"""Edge cases that most families share: single rows and channels, lanes ± 1, beyond buffers.

What comes in: a configuration and a plain spec. What goes out: specs. It must not know values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isqrt
from typing import TypeVar

from accelsim.ops.case import Spec
from accelsim.spec.config import Config

S = TypeVar("S", bound=Spec)
TWO_VALUES = "its inputs have two values"
OTHERS = ("tflite", "onnxruntime")  # roundings of frameworks other than PyTorch


def side_beyond(rows: int) -> int:
    """Side of a square of more than `rows` pixels."""
    return isqrt(rows) + 1


def square_beyond(rows: int) -> tuple[int, int]:
    """A (height, width) of more than `rows` pixels."""
    return (side_beyond(rows),) * 2


def common_edges(config: Config, plain: S, zeros: int) -> tuple[S, ...]:
    """`plain` bent in one respect a case; the operator has `zeros` zero points."""
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
        replace(plain, name="beyond_activations", size=square_beyond(config.act_rows)),
        replace(plain, name="many_channels", channels=(config.par_rows // 2 + 1) * lanes),
        replace(plain, name="zero_points_low", zeros=(0,) * zeros),
        replace(plain, name="zero_points_high", zeros=(255,) * zeros),
        replace(plain, name="ends_only", values="ends", few=TWO_VALUES),
        replace(plain, name="smallest_scale", input_scale=2.0**-20),
        replace(plain, name="largest_scale", input_scale=2.0**4),
    )


def rounded(
    specs: Iterable[S], names: tuple[str, ...], roundings: tuple[str, ...] = OTHERS
) -> tuple[S, ...]:
    """Those specs that have one of `names`, in other roundings, which their names say."""
    chosen = [spec for spec in specs if spec.name in names]
    return tuple(
        replace(spec, name=f"{spec.name}_{rounding}", rounding=rounding)
        for rounding in roundings
        for spec in chosen
    )
