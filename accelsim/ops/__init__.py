"""One operator's regression at every stage: arithmetic, simulator, RTL, RTL under stalls.

What comes in: an operator's name, a configuration and a seed. What goes out: compared elements and
mismatches by operator, stage and configuration. It must not know networks: a case is one layer.
"""

from __future__ import annotations

from accelsim.ops.batch import Batch
from accelsim.ops.case import Case, Spec
from accelsim.ops.registry import OPERATORS, Operator, specs_of
from accelsim.ops.stages import STAGES, Outcome, Stage
from accelsim.ops.values import make_case

__all__ = [
    "OPERATORS",
    "STAGES",
    "Batch",
    "Case",
    "Operator",
    "Outcome",
    "Spec",
    "Stage",
    "make_case",
    "specs_of",
]
