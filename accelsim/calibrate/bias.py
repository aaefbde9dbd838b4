"""Bias correction: rounding weights moves a layer's mean output, and its bias moves it back.

What comes in: a network with observers that have seen nothing yet. What goes out: a watcher that
sees the calibration data beside them, then corrects biases. It must not know graphs.

For a layer y = W·x + b with rounded weights W', the mean of (W - W')·x over samples and places is
added to b for each output channel, x as the float network has it; padding is part of it. Nagel et
al., "Data-free quantization through weight equalization and bias correction" (2019), section 4.2,
with measured inputs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

_KINDS = (nn.Conv1d, nn.Conv2d, nn.Linear)


class BiasCorrection:
    """Hooks on the layers of a prepared network, and the sums that they collect."""

    def __init__(self, prepared: fx.GraphModule) -> None:
        self._layers: dict[str, tuple[Any, torch.Tensor]] = {}  # module, W - W'
        self._sums: dict[str, torch.Tensor] = {}
        self._counts: dict[str, int] = {}
        self._hooks = []
        for node in prepared.graph.nodes:
            if node.op != "call_module" or str(node.target) in self._layers:
                continue
            outer = prepared.get_submodule(str(node.target))
            module = outer[0] if isinstance(outer, nn.Sequential) and len(outer) else outer
            recipe = getattr(outer, "qconfig", None)
            if recipe is None or not isinstance(module, _KINDS):
                continue
            path = str(node.target)
            weight = module.weight.detach()
            self._layers[path] = (module, weight - rounded(weight, recipe.weight()))
            self._hooks.append(module.register_forward_pre_hook(self._watching(path)))

    def apply(self) -> dict[str, float]:
        """Correct the biases; path of each layer → the largest correction."""
        self.close()
        found: dict[str, float] = {}
        for path, (module, _) in self._layers.items():
            if path not in self._sums:
                continue
            shift = (self._sums[path] / self._counts[path]).to(module.weight.dtype)
            before = torch.zeros_like(shift) if module.bias is None else module.bias.detach()
            module.bias = nn.Parameter(before + shift, requires_grad=False)
            found[path] = float(shift.abs().max())
        return found

    def close(self) -> None:
        """Stop watching."""
        for hook in self._hooks:
            hook.remove()

    def _watching(self, path: str) -> Any:
        def watch(module: Any, given: tuple[torch.Tensor, ...]) -> None:
            lost = self._layers[path][1]
            with torch.no_grad():
                if isinstance(module, nn.Linear):
                    moved = functional.linear(given[0], lost)
                    moved = moved.reshape(-1, moved.shape[-1])
                else:
                    moved = module._conv_forward(given[0], lost, None)
                    moved = moved.movedim(1, -1).reshape(-1, moved.shape[1])
            total = moved.double().sum(0)
            self._sums[path] = self._sums[path] + total if path in self._sums else total
            self._counts[path] = self._counts.get(path, 0) + len(moved)

        return watch


def rounded(weight: torch.Tensor, observer: Any) -> torch.Tensor:
    """A weight as it comes back from int8, with the scales that its observer gives it."""
    observer(weight)
    scale, zero = observer.calculate_qparams()
    limits = (observer.quant_min, observer.quant_max)
    if observer.qscheme in (torch.per_channel_symmetric, torch.per_channel_affine):
        result = torch.fake_quantize_per_channel_affine(
            weight, scale, zero.to(torch.int32), observer.ch_axis, *limits
        )
    else:
        result = torch.fake_quantize_per_tensor_affine(weight, float(scale), int(zero), *limits)
    return result
