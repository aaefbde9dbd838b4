"""The operators that legalize knows: one module a family, found by looking into this folder.

To add an operator, add one module to this folder, with a constant `OPERATOR = Operator(...)`:

* `ops`: the names that a user sees and that layers carry, such as "conv2d". A name ends in a
  letter, and no other operator has it.
* `starts`: the Relax operators at which it starts to read, such as "relax.nn.conv2d": an island is
  what lies between dequantize and quantize, and is read from its last float operator backwards.
  ReLUs and clips before the quantize are taken off already, and are in the frame's limits. An
  island without any float operator starts at "relax.dequantize", an element of a tuple at
  "tuple_element".
* `compute`: the dataclass of `accelsim.artifacts.compute` that it makes, or None where it only
  renames elements, the NPU's bytes staying the same.
* `read(frame, node)`: the island as an `IntegerOp` (by `frame.operator_of`), or a `Rejection` whose
  reason completes "… stays on the host because …", or None where the island is not of its kind:
  an addition whose operand is no quantized activation may be some other operator's bias. What a
  node reads is a `leaf_of(frame, expr)`, a dequantized activation, or a `constant_leaf_of`; any
  number of leaves may be inputs. `legalize.layout` says which axis of a tensor is n, h, w or c.
  Every operator that claims a node's Relax operator is asked; the first `IntegerOp` counts, else
  the first `Rejection`, else a reason that names the float operator in the way.
* `expression(op, arguments)`: the same on a CPU, a tensor expression over (n, h, w, c). Sizes come
  from `op.compute`, numbers from `arguments.values`, which has the fields of the dataclass: equal
  shapes then share one function. `legalize.expressions` has what operators share.

Nothing else is to be done: parameters travel by `legalize.codec`, which knows every frozen
dataclass of whole and real numbers, arrays, text, tuples and other such dataclasses; a clip
afterwards is folded in where the dataclass has `clamp_min` and `clamp_max`, or a `requantize`.
`frame.rounding` says whose integers are wanted: "fp32", "qnnpack", "tflite" or "onnxruntime".

A team's own operators need no place in this folder: `register(operator)` adds them, before those
of this folder in order of registration, so that they may claim a node first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from accelsim.discovery import modules_in
from accelsim.errors import InputError
from accelsim.legalize.expressions import Arguments
from accelsim.legalize.frame import Frame
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection

Reader = Callable[[Frame, Node], IntegerOp | Rejection | None]


@dataclass(frozen=True, slots=True)
class Operator:
    """A family of operators, see the module's docstring."""

    ops: tuple[str, ...]
    starts: tuple[str, ...]
    compute: type | None
    read: Reader
    expression: Callable[[IntegerOp, Arguments], Any]


_registered: list[Operator] = []


def register(operator: Operator) -> None:
    """Add an operator. Raises InputError where a name is taken, missing or not usable."""
    _refuse_names(operator, operators())
    _registered.append(operator)


def operators() -> tuple[Operator, ...]:
    """Every operator in the order in which they are asked: registered ones, then by module."""
    return (*_registered, *_discovered())


def operator_named(op: str) -> Operator | None:
    """The operator that makes `op`, or None."""
    return next((operator for operator in operators() if op in operator.ops), None)


def operators_at(start: str) -> tuple[Operator, ...]:
    """The operators that claim islands whose last float operator is the Relax operator `start`."""
    return tuple(operator for operator in operators() if start in operator.starts)


@cache
def _discovered() -> tuple[Operator, ...]:
    found: list[Operator] = []
    for module in modules_in(__name__):
        operator: Operator = module.OPERATOR
        _refuse_names(operator, found)
        found.append(operator)
    return tuple(found)


def _refuse_names(operator: Operator, known: tuple[Operator, ...] | list[Operator]) -> None:
    """Raise InputError for a name that is taken, or from which callee names cannot be told."""
    if not operator.ops or not operator.starts:
        raise InputError("An operator needs at least one name and one Relax operator to start at.")
    taken = {op for other in known for op in other.ops}
    for op in operator.ops:
        if op in taken:
            raise InputError(f"An operator named '{op}' exists already; choose another name.")
        if not op.replace("_", "a").isalnum() or not op[-1].isalpha():
            raise InputError(
                f"The operator name '{op}' must be letters, digits and underscores, "
                "and end in a letter."
            )
