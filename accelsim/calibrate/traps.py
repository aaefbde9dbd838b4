"""Known traps of post-training quantization, each as one sentence or one warning.

What comes in: a float module, a network with observers, a quantized one. What goes out: nothing, a
ModelError, or sentences for the report. It must not know how observers choose a range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.calibrate.running import Batch
from accelsim.calibrate.switches import SwitchedLayer
from accelsim.errors import ModelError
from accelsim.quantize.calibrated import is_observer, never_saw_data
from accelsim.quantize.fx_graph import Prepared

SILENT = 1e-6  # a scale that stands for a tensor that is always zero


class _Finite(fx.Interpreter):
    """Runs a graph until an operator gives NaN or infinity."""

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared.module)
        self.names = prepared.user_names
        self.found: str | None = None

    def run_node(self, n: fx.Node) -> Any:
        """Run one node, observers apart."""
        if n.op == "call_module" and str(n.target).startswith("activation_post_process"):
            return self.fetch_args_kwargs_from_env(n)[0][0]
        value = super().run_node(n)
        real = isinstance(value, torch.Tensor) and value.is_floating_point()
        if self.found is None and real and not bool(torch.isfinite(value).all()):
            self.found = self.names.get(n.name, n.name)
        return value


def check_finite(prepared: Prepared, batches: Sequence[Batch]) -> None:
    """Raises ModelError naming the layer that first gives NaN or infinity in float."""
    runner = _Finite(prepared)
    for number, batch in enumerate(batches):
        with torch.no_grad():
            runner.run(*(torch.from_numpy(np.ascontiguousarray(array)) for array in batch))
        if runner.found is not None:
            raise ModelError(
                f"layer '{runner.found}' of model {prepared.model} gives NaN or infinity in float "
                f"on calibration batch {number}; no scale can hold that: give a finite number, in "
                "a mask one that lies below all scores, such as -60"
            )


def check_observers(prepared: Prepared) -> None:
    """Raises ModelError naming the operators whose observers saw no data."""
    unseen = []
    for node in prepared.module.graph.nodes:
        if node.op != "call_module":
            continue
        observer = prepared.module.get_submodule(str(node.target))
        if is_observer(observer) and never_saw_data(observer):
            watched = node.args[0]
            unseen.append(prepared.user_names.get(watched.name, watched.name))
    if unseen:
        raise ModelError(
            f"{len(unseen)} observers of model {prepared.model} never saw data, the first behind "
            f"'{unseen[0]}'; calibrate before converting, with data that reaches every layer"
        )


def check_scales(layers: Sequence[SwitchedLayer], model: str) -> list[str]:
    """Warnings about layers that hold nothing but zeros.

    Raises ModelError for a scale that is NaN, infinite, zero or negative.
    """
    warnings = []
    for layer in layers:
        if layer.quantize is not None:
            scale = float(layer.quantize.args[1])  # type: ignore[arg-type]
            _check(scale, f"the output of layer '{layer.name}'", model)
            if scale < SILENT:
                warnings.append(
                    f"layer '{layer.name}' gives zeros only on the calibration data: it is dead, "
                    "or the data does not reach it"
                )
        for module in layer.modules:
            for scale in weight_scales(module):
                _check(scale, f"the weights of layer '{layer.name}'", model)
            if float(module.weight.detach().abs().max()) == 0:  # type: ignore[operator]
                warnings.append(f"layer '{layer.name}' has weights that are all zero")
    return warnings


def weight_scales(module: nn.Module) -> list[float]:
    """Scales of a reference module's weights: one, or one for each output channel."""
    found: Any = module.weight_scale
    return [float(one) for one in found.reshape(-1)]


def _check(scale: float, what: str, model: str) -> None:
    if not math.isfinite(scale) or scale <= 0:
        raise ModelError(
            f"{what} of model {model} got the scale {scale}; the calibration data or the weights "
            "hold NaN or infinity"
        )
