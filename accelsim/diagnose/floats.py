"""The float network, whole and layer by layer, whatever form the model came in.

What comes in: a source model and its quantized forms. What goes out: a function of the inputs. It
must not know what is made of the values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils import _pytree as pytree

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.calibrate.switches import Switchboard, switched_layers
from accelsim.diagnose.unrounded import Unrounded, Values
from accelsim.quantize.calibrated import has_observers
from accelsim.quantize.fx_graph import FxQuantized
from accelsim.reference import Network

FLOAT = "the float model"
FOLDED = "the float model that was calibrated, without its observers"
UNROUNDED = "the quantized graph on TVM without rounding; the model came without floats"


@dataclass(frozen=True, slots=True)
class FloatRun:
    """Outputs and layers of the float network from the model's inputs by name."""

    title: str
    run: Callable[[Mapping[str, np.ndarray]], Values]


def float_run(
    source: SourceModel, quantized: QuantizedModel, fx: FxQuantized | None, network: Network
) -> FloatRun:
    """The float model itself where there is one, else the quantized one without rounding."""
    if fx is None:
        return FloatRun(UNROUNDED, Unrounded(quantized, network).run)
    board = Switchboard(fx, switched_layers(fx))
    module = None if has_observers(source.float_module) else source.float_module

    def run(inputs: Mapping[str, np.ndarray]) -> Values:
        given = tuple(
            torch.from_numpy(np.ascontiguousarray(inputs[name])) for name in quantized.input_names
        )
        with warnings.catch_warnings(), torch.no_grad(), board.quantizing(()):
            warnings.simplefilter("ignore")
            layers = {name: one.numpy() for name, one in board.values_of(given).items()}
            outputs = board.run(*given) if module is None else module(*given)
        return tuple(leaf.numpy() for leaf in pytree.tree_leaves(outputs)), layers

    return FloatRun(FLOAT if module is not None else FOLDED, run)
