"""A team's own operators, converters, passes and host functions, without an edit of ours.

What comes in: pieces that the rooms know how to use. What goes out: nothing; a registered piece is
there for the rest of the process. A module that registers is imported before a network is: by the
file of the model, or by `nox -s ops -- NAME --extend FILE`. `examples/extension.py` registers one
piece of each kind. It must not know what any piece does.

* `register_operator`: an operator for the NPU, one piece a room, as that room's own are;
* `register_converter`: how an operator of PyTorch's, or a custom one, becomes Relax;
* `register_pass`: a pass over the QDQ module before its operators are read;
* `register_host_operator`: a function of NumPy arrays that a custom operator stands for on the
  host, in the compiled network and in the goldens alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax, te, tirx

from accelsim import legalize as legalizing
from accelsim import ops
from accelsim.artifacts import Layer
from accelsim.errors import InputError, ModelError
from accelsim.legalize import register_pass
from accelsim.ops.loading import load_extension
from accelsim.quantize.converters import register_converter
from accelsim.reference import operators as reference_operators
from accelsim.schedule import operators as schedule_operators

__all__ = [
    "load_extension",
    "register_converter",
    "register_host_operator",
    "register_operator",
    "register_pass",
]

HostFunction = Callable[..., NDArray[np.float32]]
RELAX_PREFIX = "relax.host."
PACKED_PREFIX = "accelsim.host."


def register_operator(
    *,
    legalize: legalizing.Operator,
    reference: reference_operators.Operator,
    schedule: schedule_operators.Operator | None = None,
    proof: ops.Operator | None = None,
) -> None:
    """Add an operator to every room that has to know it.

    `legalize` reads it from the QDQ module as integers; `reference` defines the same integers on
    its own, to be the golden; `schedule` makes instructions of it, and is None where its dataclass
    is one that has a schedule; `proof` is its regression for `nox -s ops`.

    Raises InputError, having added nothing, where a room has one of that name already.
    """
    if any(one.name == reference.name for one in reference_operators.operators()):
        raise InputError(f"the reference has an operator family {reference.name!r} already")
    if proof is not None and proof.name in ops.known_operators():
        raise InputError(f"the operator {proof.name!r} is there already: choose another name")
    if schedule is not None and _is_scheduled(schedule.compute):
        raise InputError(f"a scheduler of {schedule.compute.__name__} is registered already")
    if schedule is None and legalize.compute is not None and not _is_scheduled(legalize.compute):
        raise InputError(f"{legalize.compute.__name__} has no schedule: register one with it")
    legalizing.register(legalize)
    reference_operators.register(reference)
    if schedule is not None:
        schedule_operators.register(schedule)
    if proof is not None:
        ops.register(proof)


def register_host_operator(name: str, function: HostFunction) -> None:
    """Let the custom operator "name.overload" of PyTorch run on the host as `function`.

    `function` takes one float32 array for each operand and returns a float32 array of the shape
    that PyTorch computed; operands are tensors, numbers belong into the function. The compiled
    network, the integer reference and TVM's float golden all call it, so its layer has a golden;
    it stays on the host, and `verify` wants a waiver that names it, as for every such layer. A
    process that loads the compiled library by itself registers it too.

    Raises InputError where the operator has a converter already.
    """
    short = name.partition(".")[0]

    def convert(node: Any, importer: Any) -> Any:
        others = [one for one in (*node.args, *node.kwargs.values()) if one not in importer.env]
        if others:
            raise ModelError(f"the host operator {name} takes tensors alone, and got {others}")
        out = relax.TensorType([int(extent) for extent in node.meta["val"].shape], "float32")
        inputs = [importer.env[one] for one in node.args]
        operator = tvm.ir.Op.get(RELAX_PREFIX + short)
        return importer.block_builder.emit(relax.Call(operator, inputs, None, [out]))

    register_converter(name, convert)
    _register_relax(RELAX_PREFIX + short, PACKED_PREFIX + short)
    _register_packed(PACKED_PREFIX + short, function)


def _register_relax(operator: str, symbol: str) -> None:
    """A pure Relax operator whose type its calls state, and whose code calls a packed function."""

    def legalized(builder: Any, call: Any) -> Any:
        shape = tuple(int(extent) for extent in call.ty.shape)

        def external(*tensors: Any) -> Any:
            return te.extern(
                [shape],
                list(tensors),
                lambda inputs, outputs: tirx.call_packed(symbol, *inputs, *outputs),
                dtype="float32",
                name="host_function",
            )

        return builder.call_te(external, *call.args)

    tvm.ir.op._ffi_api.RegisterOp(operator, "a function of NumPy arrays on the host")
    tvm.ir.register_op_attr(operator, "FInferType", lambda call, context: call.ty_args[0])
    tvm.ir.register_op_attr(operator, "FPurity", True)
    tvm.ir.register_op_attr(operator, "FLegalize", legalized)


def _register_packed(symbol: str, function: HostFunction) -> None:
    """Let TVM's runtime find `function`: it is given the inputs, then the output to fill."""

    def packed(*tensors: Any) -> None:
        *inputs, output = tensors
        values = function(*(np.asarray(one.numpy()) for one in inputs))
        output.copyfrom(np.ascontiguousarray(values, dtype=np.float32))

    tvm.register_global_func(symbol, packed, override=True)


def _is_scheduled(compute: type) -> bool:
    layer = Layer("", "", (), (), "", object.__new__(compute))
    try:
        schedule_operators.find(layer)
    except ModelError:
        return False
    return True
