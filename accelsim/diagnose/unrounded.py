"""The QDQ module without the rounding of activations: a float network for a quantized model.

What comes in: a QDQ module and its `Network`. What goes out: a function of the model's inputs that
gives the outputs and each layer's float output. Weights are the quantized ones, as real numbers.

A quantizer whose range begins at real 0 may stand for a ReLU, and one that also ends at 6 for a
ReLU6, which exporters fold into it: those limits stay. All other ranges go, so that a scale that is
too small shows as a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax

from accelsim.artifacts import QuantizedModel
from accelsim.reference.executable import machine_of
from accelsim.reference.graph import walk
from accelsim.reference.host import run
from accelsim.reference.network import Network, QuantizedTensor

Values = tuple[tuple[np.ndarray, ...], dict[str, np.ndarray]]


class Unrounded:
    """The compiled float network of a quantized model."""

    def __init__(self, quantized: QuantizedModel, network: Network) -> None:
        self.names = quantized.input_names
        self.dtypes = quantized.input_dtypes
        self.layers, self.machine = _compile(quantized.qdq, network)

    def run(self, inputs: Mapping[str, np.ndarray]) -> Values:
        """Outputs, and the floats of each quantized tensor by its name, in the model's layout."""
        given = [
            np.asarray(inputs[name], dtype)
            for name, dtype in zip(self.names, self.dtypes, strict=True)
        ]
        results = run(self.machine["main"], given)
        count = len(results) - len(self.layers)
        return results[:count], dict(zip(self.layers, results[count:], strict=True))


def _compile(module: Any, network: Network) -> tuple[list[str], Any]:
    """Names of the layers' tensors behind the outputs, and the machine."""
    function = module["main"]
    tensors = {var: name for name, var in walk(function, {}).variables.items()}
    builder = relax.BlockBuilder()
    bindings: list[Any] = []
    known: dict[Any, Any] = {}  # variable of the module → of the float network
    floats: dict[Any, Any] = {}  # variable of integers → the floats that they came from
    found: dict[str, Any] = {}  # tensor → its floats
    for binding in (one for block in function.body.blocks for one in block.bindings):
        value, name = binding.value, getattr(getattr(binding.value, "op", None), "name", "")
        first = value.args[0] if name else None
        if name == "relax.quantize" and isinstance(first, tvm.ir.Var):
            floats[binding.var] = known.get(first, first)
        elif name == "relax.clip" and first in floats:
            floats[binding.var] = floats[first]
        if name == "relax.dequantize" and first in floats:
            known[binding.var] = floats[first]
            continue
        new = relax.Var(binding.var.name, binding.var.ty)
        bindings.append(relax.VarBinding(new, _renamed(value, known)))
        known[binding.var] = new
        tensor = tensors.get(binding.var)
        if tensor is not None and binding.var in floats:
            limited = floats[binding.var]
            if tensor not in network.boundary:
                limited = _limited(limited, network.tensors[tensor])
            if limited is not floats[binding.var]:
                made = relax.Var(f"{binding.var.name}_float", floats[binding.var].ty)
                bindings.append(relax.VarBinding(made, builder.normalize(limited)))
                floats[binding.var] = made
            found[tensor] = floats[binding.var]
    body = function.body.body
    outputs = list(body.fields) if isinstance(body, tvm.ir.Tuple) else [body]
    every_tensor = (*network.boundary, *(one.output for one in network.layers))
    wanted = [name for name in every_tensor if name in found]
    returned = [*_leaves(outputs, known, bindings), *(found[name] for name in wanted)]
    result = builder.normalize(relax.Tuple(returned))
    main = relax.Function(
        function.params,
        relax.SeqExpr([relax.BindingBlock(bindings)], result),
        ret_ty=result.ty,
    )
    every = tvm.IRModule({"main": main.with_attr("global_symbol", "main")})
    every = relax.transform.DeadCodeElimination()(relax.transform.Normalize()(every))
    return wanted, machine_of(relax.transform.LegalizeOps()(every))


def _leaves(outputs: list[Any], known: Mapping[Any, Any], bindings: list[Any]) -> list[Any]:
    """The network's outputs one by one; an output that is a tuple is taken apart."""
    tuples = {one.var: one.value for one in bindings}
    found: list[Any] = []
    for output in outputs:
        new = known.get(output, output)
        value = tuples.get(new)
        found += list(value.fields) if isinstance(value, tvm.ir.Tuple) else [new]
    return found


def _limited(values: Any, tensor: QuantizedTensor) -> Any:
    """The values behind the limits of a ReLU or ReLU6 that the quantizer may stand for."""
    if tensor.clamp_min != tensor.zero_point:
        return values
    high = (tensor.clamp_max - tensor.zero_point) * float(tensor.scale)
    if abs(high - 6) <= float(tensor.scale):
        return relax.op.clip(values, 0.0, 6.0)
    return relax.op.nn.relu(values)


def _renamed(value: Any, known: Mapping[Any, Any]) -> Any:
    """An expression of a binding over the variables of the float network."""
    if isinstance(value, tvm.ir.Var):
        return known.get(value, value)
    if isinstance(value, tvm.ir.Tuple):
        return relax.Tuple([_renamed(one, known) for one in value.fields])
    if isinstance(value, tvm.ir.TupleGetItem):
        return relax.TupleGetItem(_renamed(value.tuple_value, known), value.index)
    if isinstance(value, tvm.ir.Call):
        arguments = [_renamed(one, known) for one in value.args]
        return relax.Call(value.op, arguments, value.attrs, value.ty_args)
    return value
