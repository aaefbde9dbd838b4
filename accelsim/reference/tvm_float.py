"""The QDQ module itself, in floats, as TVM computes it on the CPU.

What comes in: a `QuantizedModel` and its `Network`. What goes out: golden sets. It must not know
the integer definition: it shows how far the float form lies from it, and gates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

from accelsim.artifacts import QuantizedModel
from accelsim.errors import InputError
from accelsim.reference.boundary import on_levels, to_nhwc
from accelsim.reference.executable import FASTEST, machine_of
from accelsim.reference.golden import GoldenSet
from accelsim.reference.graph import walk
from accelsim.reference.network import Network


@dataclass(frozen=True, slots=True)
class TvmGolden:
    """The compiled QDQ function, which returns every layer's quantized output."""

    quantized: QuantizedModel
    network: Network
    machine: Any  # tvm relax VirtualMachine

    def accumulated(self, inputs: Mapping[str, np.ndarray]) -> GoldenSet:
        """Every layer's output from float inputs by name.

        `relax.quantize` divides by the scale where PyTorch multiplies by its inverse, so inputs
        are put on their own levels first, which both find again.
        """
        arguments = []
        inputs = {**inputs, **on_levels(self.network, inputs)}
        signature = zip(self.quantized.input_names, self.quantized.input_dtypes, strict=True)
        for name, dtype in signature:
            if name not in inputs:
                raise InputError(f"input '{name}' is missing")
            values = np.ascontiguousarray(inputs[name], dtype=dtype)
            arguments.append(tvm.runtime.tensor(values))
        results = self.machine["main"](*arguments)
        tensors = {
            layer.output: to_nhwc(result.numpy(), self.network.tensors[layer.output])
            for layer, result in zip(self.network.layers, results, strict=True)
        }
        return GoldenSet("tvm", "accumulated", False, tensors)


def build_tvm(
    quantized: QuantizedModel, network: Network, optimization: int = FASTEST
) -> TvmGolden:
    """Compile the QDQ module with every layer's quantized tensor as an output."""
    passes = tvm.transform.Sequential(
        [
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
        ]
    )
    module = passes(_with_all_outputs(quantized.qdq, network))
    return TvmGolden(quantized, network, machine_of(module, optimization))


def _with_all_outputs(module: Any, network: Network) -> Any:
    """`main` returning a tuple of every layer's tensor, in the order of `network.layers`."""
    function = module["main"]
    variables = walk(function, {}).variables
    bindings = [one for block in function.body.blocks for one in block.bindings]
    outputs = []
    for index, layer in enumerate(network.layers):
        inner = variables[layer.output]
        outer = relax.Var(f"layer{index}", inner.ty)
        bindings.append(relax.VarBinding(outer, inner))
        outputs.append(outer)
    result = relax.BlockBuilder().normalize(relax.Tuple(outputs))
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], result)
    returned = relax.Function(function.params, body, ret_ty=result.ty)
    every = tvm.IRModule({"main": returned.with_attr("global_symbol", "main")})
    return relax.transform.DeadCodeElimination()(relax.transform.Normalize()(every))
