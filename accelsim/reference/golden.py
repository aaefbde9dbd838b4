"""Golden tensors: what a layer should have produced, and whether that can prove anything.

What comes in: int8 tensors by layer. What goes out: `GoldenSet` and the names of constant goldens.
It must not know who computed them or what they are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from accelsim.artifacts import I8


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """Outputs of one golden in one mode, int8 domain, (n, h, w, c).

    `missing` gives, for a layer without a golden, the reason; `causes` why a layer's golden may be
    other than its integers, where that was computed.
    """

    source: str  # "integer" | "torch" | "tvm"
    mode: str  # "accumulated" | "isolated"
    gate: bool  # whether a difference from it fails the run
    tensors: Mapping[str, I8]  # tensor name → values
    missing: Mapping[str, str] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)


def is_constant(values: I8) -> bool:
    """Whether a golden has fewer than two distinct values and so proves next to nothing."""
    return values.size == 0 or bool(np.all(values == values.reshape(-1)[0]))


def constant_goldens(goldens: GoldenSet) -> tuple[str, ...]:
    """Names of the tensors whose golden is constant, in order."""
    return tuple(name for name, values in goldens.tensors.items() if is_constant(values))
