"""What operators over rows of channels share: cases whose channels are the last axis or the second.

What comes in: a configuration. What goes out: specs and inputs. It must not know an operator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from accelsim.ops.case import Activation, Spec
from accelsim.ops.edges import common_edges
from accelsim.ops.values import activation, choice, drawn
from accelsim.spec.config import Config

LONGEST = 128  # blocks of a row that one instruction takes


@dataclass(frozen=True, slots=True)
class RowSpec(Spec):
    """Channels come last, as in (n, s, c), or second, as in (n, c, h, w)."""

    last: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Of inputs and output."""
        if self.last:
            return (self.batch, *self.size, self.channels)
        return (self.batch, self.channels, *self.size)

    @property
    def axis(self) -> int:
        """Of the channels."""
        return -1 if self.last else 1


R = TypeVar("R", bound=RowSpec)


def row_edges(config: Config, plain: R, zeros: int, blocks: int) -> tuple[R, ...]:
    """The common edges, the longest rows of `blocks`, one step more than a block, and ranks."""
    lanes = config.lanes
    common = common_edges(config, plain, zeros)
    return (
        *(
            replace(spec, channels=blocks * lanes, size=spec.size[:1])
            if spec.name == "many_channels"
            else spec
            for spec in common
        ),
        replace(plain, name="two_blocks_and_one", channels=2 * lanes + 1),
        replace(plain, name="sequence", size=(9,), last=True, channels=3 * lanes - 1),
        replace(plain, name="channels_last", last=True),
        replace(plain, name="vector", size=(), channels=3 * lanes + 2),
        replace(plain, name="narrow", values="narrow"),
    )


def draw_rows(rng: np.random.Generator, config: Config, zeros: int) -> dict[str, Any]:
    """Fields of a random spec."""
    common = drawn(rng, config.lanes, zeros)
    size = choice(rng, (common["size"], common["size"][:1], ()))
    return common | {"size": size, "last": bool(rng.integers(2))}


def rows_of(rng: np.random.Generator, spec: RowSpec) -> Activation:
    """Rows of many kinds: uniform ones, some within a few steps, some equal, some with one peak."""
    source = activation(rng, spec)
    if spec.values != "uniform":
        return source
    rows = np.moveaxis(source.values, spec.axis, -1).reshape(-1, spec.channels).copy()
    kind = rng.integers(0, 8, (len(rows), 1))
    near = (rows.astype(np.int64) % 9) + rows[:, :1].astype(np.int64) - 4
    peak = np.where(np.arange(spec.channels) == spec.channels // 2, 255, rows // 8)
    made = np.select([kind == 0, kind == 1, kind == 2], [near, rows[:, :1], peak], rows)
    stored = np.clip(made, 0, 255).astype(np.uint8)
    moved = np.moveaxis(source.values, spec.axis, -1).shape
    return replace(source, values=np.moveaxis(stored.reshape(moved), -1, spec.axis).copy())
