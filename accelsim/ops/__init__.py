"""One operator's regression at every stage: arithmetic, simulator, RTL, RTL under stalls.

What comes in: an operator's name, a configuration and a seed. What goes out: compared elements and
mismatches by operator, stage and configuration. It must not know networks: a case is one layer.
Operators are discovered: see `accelsim.ops.operators`.
"""

from __future__ import annotations

from accelsim.ops.batch import Batch
from accelsim.ops.case import Case, Spec
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.operators import known_operators, operator_of, register
from accelsim.ops.outcome import STAGES, Outcome, Stage
from accelsim.ops.specs import specs_of
from accelsim.ops.values import make_case

__all__ = [
    "STAGES",
    "Batch",
    "Case",
    "Facts",
    "Operator",
    "Outcome",
    "Spec",
    "Stage",
    "known_operators",
    "make_case",
    "operator_of",
    "register",
    "specs_of",
]
