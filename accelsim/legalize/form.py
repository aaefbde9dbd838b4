"""The legalized form: an integer operator as one `call_tir` whose arguments say everything.

What comes in: integer operators. What goes out: the arguments of their calls, and back from a
call's name and constants to a dataclass of `accelsim.artifacts.compute`. Passes keep a call's
callee name and arguments and nothing else, so all parameters travel as constants:

    activations…, arrays of the dataclass…, parameters (int32), scales (float32)

`parameters` begins with the number of activations and a mark of the layer's name; then, of each
activation and of the output, the zero point and the layout; then the dataclass's whole numbers.
`scales` has one scale of each activation and of the output, then the dataclass's real numbers.
Which class it is follows from the operator's name in the callee's. It must not know Relax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from accelsim.legalize.codec import Encoded, encode, read
from accelsim.legalize.expressions import Activation, Arguments
from accelsim.legalize.integer_op import IntegerOp
from accelsim.legalize.operators import Operator, operator_named

PREFIX = "accelsim_"
_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class TensorForm:
    """What a call says of one of its tensors. The scale is for reports."""

    zero_point: int  # int8 domain
    layout: str
    scale: float


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a call's name and constants say."""

    op: str
    compute: Any  # None where the operator only renames
    inputs: tuple[TensorForm, ...]
    output: TensorForm


@dataclass(frozen=True, slots=True)
class _Header:
    """What stands before an operator's own numbers, encoded like them.

    `mark` is made of the layer's name: passes take two equal functions for one, and with them the
    names of two layers that compute the same.
    """

    mark: int
    zero_points: tuple[int, ...]  # of the activations, then of the output
    layouts: tuple[str, ...]


def operator_name(callee: str) -> str | None:
    """The operator of a PrimFunc name such as "accelsim_conv2d3", or None for other functions."""
    if not callee.startswith(PREFIX):
        return None
    name = callee.removeprefix(PREFIX).rstrip(_DIGITS).removesuffix("_")
    return name if operator_named(name) is not None else None


def constants_of(op: IntegerOp) -> tuple[np.ndarray, ...]:
    """The constant arguments of the operator's call, in order."""
    header, compute = encode(_header(op)), _encoded(op)
    quantizations = (*op.input_quantization, op.quantization)
    parameters = (len(op.inputs), len(header.ints), *header.ints, *compute.ints)
    scales = [quantization.scale for quantization in quantizations]
    return (
        *compute.arrays,
        np.array(parameters, np.int32),
        np.array([*scales, *compute.floats], np.float32),
    )


def activation_count(constants: Sequence[np.ndarray]) -> int:
    """How many activations stand before the constants of a call."""
    return int(constants[-2][0])


def arguments_of(op: IntegerOp, placeholders: Sequence[Any]) -> Arguments:
    """The placeholders of the operator's call, activations and constants, by what they mean."""
    count = len(op.inputs)
    *arrays, parameters, scales = placeholders[count:]
    activations = tuple(map(Activation, placeholders[:count], op.input_layouts))
    kind = _kind(op.op)
    if kind is None:
        return Arguments(activations, None)
    compute = _encoded(op)
    before = int(parameters.shape[0]) - len(compute.ints)
    ints = [parameters(before + place) for place in range(len(compute.ints))]
    floats = [scales(count + 1 + place) for place in range(len(compute.floats))]
    return Arguments(activations, read(kind, compute.ints, arrays, ints, floats))


def decode(op: str, constants: Sequence[np.ndarray]) -> Decoded:
    """The inverse of `constants_of`."""
    *arrays, parameters, scales = constants
    count, before, *ints = (int(value) for value in parameters)
    header = read(_Header, ints[:before], (), ints[:before], ())
    tensors = tuple(
        TensorForm(zero_point, layout, float(scale))
        for zero_point, layout, scale in zip(
            header.zero_points, header.layouts, scales[: count + 1], strict=True
        )
    )
    kind, own = _kind(op), ints[before:]
    compute = None if kind is None else read(kind, own, arrays, own, scales[count + 1 :])
    return Decoded(op, compute, tensors[:-1], tensors[-1])


def operator_of_name(op: str) -> Operator:
    """The operator family of a name. Raises LookupError if there is none."""
    found = operator_named(op)
    if found is None:
        raise LookupError(f"No operator makes {op!r}.")
    return found


def _kind(op: str) -> type | None:
    return operator_of_name(op).compute


def _encoded(op: IntegerOp) -> Encoded:
    return Encoded((), (), ()) if op.compute is None else encode(op.compute)


def _header(op: IntegerOp) -> _Header:
    quantizations = (*op.input_quantization, op.quantization)
    zero_points = tuple(quantization.int8_zero_point for quantization in quantizations)
    mark = crc32(op.name.encode()) >> 1  # within int32
    return _Header(mark, zero_points, (*op.input_layouts, op.layout))
