"""Which layer costs the accuracy: one layer quantized alone, and all but one.

What comes in: a quantized network and samples, labelled or not. What goes out: a row for each
layer, the most expensive first. It must not know what is done about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from accelsim.calibrate.noise import Noise, decibels_of
from accelsim.calibrate.running import Batch, outputs_of
from accelsim.calibrate.switches import Switchboard, SwitchedLayer, switched_layers
from accelsim.metrics import Metric
from accelsim.quantize.fx_graph import FxQuantized

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LayerNoise:
    """A layer's own output in the quantized network against the float one."""

    name: str
    sqnr_db: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What quantizing one layer costs at the network's output.

    Losses are of the metric's first number, float minus quantized; None without labels.
    """

    name: str
    weighty: bool  # whether it has weights, so that it can stay in float
    alone_db: float  # SQNR with this layer quantized and no other
    weights_db: float | None  # the same of its weights only
    without_db: float  # SQNR with every layer quantized but this one
    alone_loss: float | None = None
    without_loss: float | None = None

    @property
    def rank(self) -> tuple[float, float]:
        """Sorts the most expensive layer first."""
        loss = self.alone_loss if self.alone_loss is not None else 0.0
        return (-loss, self.alone_db)


@dataclass(frozen=True, slots=True)
class Scale:
    """What to measure with: samples in batches, their labels, and a metric."""

    batches: Sequence[Batch]
    labels: np.ndarray | None
    metric: Metric | None
    model: str

    def numbers(self, outputs: tuple[np.ndarray, ...]) -> dict[str, float]:
        """The metric's numbers; none without labels."""
        if self.labels is None or self.metric is None:
            return {}
        return self.metric.measure(outputs, self.labels[: len(outputs[0])])

    def first(self, outputs: tuple[np.ndarray, ...]) -> float | None:
        """The number that counts; None without labels."""
        return next(iter(self.numbers(outputs).values()), None)


def layer_noise(quantized: FxQuantized, batches: Sequence[Batch]) -> tuple[LayerNoise, ...]:
    """SQNR of every layer's output with all layers quantized, in the network's order."""
    layers = switched_layers(quantized)
    board = Switchboard(quantized, layers)
    noises = {layer.name: Noise() for layer in layers if layer.quantize is not None}
    for batch in batches:
        inputs = tuple(torch.from_numpy(np.ascontiguousarray(array)) for array in batch)
        with board.quantizing(()):
            exact = board.values_of(inputs)
        rounded = board_values(board, layers, inputs)
        for name, noise in noises.items():
            noise.add(exact[name].numpy(), rounded[name].numpy())
    return tuple(LayerNoise(name, noise.decibels) for name, noise in noises.items())


def board_values(
    board: Switchboard, layers: Sequence[SwitchedLayer], inputs: tuple[torch.Tensor, ...]
) -> dict[str, torch.Tensor]:
    """What each layer gives with all of them quantized."""
    with board.quantizing([layer.name for layer in layers]):
        return board.values_of(inputs)


def sensitivities(
    quantized: FxQuantized, scale: Scale, progress: Progress
) -> Iterator[Sensitivity]:
    """One layer after the other, in the network's order."""
    layers = switched_layers(quantized)
    board = Switchboard(quantized, layers)
    names = [layer.name for layer in layers]

    def run(chosen: Sequence[str], weights_only: bool = False) -> tuple[np.ndarray, ...]:
        with board.quantizing(chosen, weights_only):
            return outputs_of(board.run, scale.batches, scale.model)

    exact = run(())
    best = scale.first(exact)
    for number, layer in enumerate(layers):
        progress(f"sensitivity: layer {number + 1} of {len(layers)}, {layer.name}")
        alone, without = run([layer.name]), run([name for name in names if name != layer.name])
        only = run([layer.name], weights_only=True) if layer.weighty else None
        yield Sensitivity(
            layer.name,
            layer.weighty,
            decibels_of(exact, alone),
            None if only is None else decibels_of(exact, only),
            decibels_of(exact, without),
            _loss(best, scale.first(alone)),
            _loss(best, scale.first(without)),
        )


def _loss(best: float | None, found: float | None) -> float | None:
    return None if best is None or found is None else best - found
