"""The stages of a case and what comes out of one.

What comes in: expected and actual arrays. What goes out: an `Outcome`. It must not know how either
was computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.ops.case import Case


class Stage(StrEnum):
    """In the order in which they are run: each relies on those before it."""

    FLOAT = "float"  # TVM's float operator against PyTorch's, within the bound of its rounding
    EXPANSION = "expansion"  # of a product: the sum of four raw products against the direct sum
    TORCH = "int8"  # the integer reference against PyTorch's quantized kernel
    LEGALIZED = "legalized"  # the compiler's integer form on TVM's CPU code against the reference
    SIM = "sim"  # instructions on the simulator against the reference
    RTL = "rtl"  # the same instructions on the RTL, records against the simulator's
    STALLS = "rtl-stalls"  # and with a memory that stalls at random


STAGES = tuple(Stage)
ARITHMETIC = (Stage.FLOAT, Stage.EXPANSION, Stage.TORCH, Stage.LEGALIZED)
DEFAULT_CONFIG = "edge8"  # whose cases prove the arithmetic


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case in one stage. `detail` says where it first differs, `cause` what explains it."""

    case: str
    stage: Stage
    config: str  # "" for arithmetic
    elements: int
    mismatches: int
    detail: str = ""
    cause: str = ""
    attributed: int = 0  # elements that differ, all of them by the computed `cause`
    instructions: tuple[str, ...] = ()  # names of those that the program of the case uses

    @property
    def failed(self) -> bool:
        """Whether it differs, or compared nothing."""
        return self.mismatches > 0 or self.elements == 0


def compared(
    case: Case,
    stage: Stage,
    expected: NDArray[Any],
    actual: NDArray[Any],
    wrong: NDArray[Any] | None = None,
) -> Outcome:
    """Element by element; `wrong` marks the elements that count as different."""
    if expected.shape != actual.shape:
        detail = f"shape {actual.shape}, expected {expected.shape}"
        return Outcome(case.name, stage, "", expected.size, max(expected.size, 1), detail)
    wrong = actual != expected if wrong is None else wrong
    detail = ""
    if wrong.any():
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        detail = f"element {at}: expected {expected[at]}, got {actual[at]}"
    return Outcome(case.name, stage, "", expected.size, int(wrong.sum()), detail)
