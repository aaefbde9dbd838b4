"""A change of scale alone: from a tensor's levels to others."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.ops.case import Case
from accelsim.ops.modules import Builder
from accelsim.ops.moves import MoveSpec, draw_of, move, move_edges, plain_of


def _fields(rng: np.random.Generator, spec: MoveSpec, lanes: int) -> dict[str, Any]:
    return {"ratio": float(2.0 ** rng.uniform(-3, 3))}


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    return sources[0]


def _torch(case: Case, sources: list[Any]) -> Any:
    return sources[0]


OPERATORS = (
    move(
        "requantize",
        MoveSpec,
        move_edges(plain_of(MoveSpec, ratio=1.3)),
        draw_of(MoveSpec, (2, 3, 4), _fields),
        (_relax, _torch),
        instructions=("load", "store", "pool", "lookup"),
    ),
)
