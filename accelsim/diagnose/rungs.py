"""The network's outputs in each way of computing them, made comparable.

What comes in: outputs in the model's own dtypes. What goes out: `Rung`s. It must not know who
computed them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accelsim.calibrate.noise import decibels_of
from accelsim.diagnose.record import Rung
from accelsim.reference import Network

SHOWN = 3
Outputs = tuple[np.ndarray, ...]


def rung(
    name: str,
    title: str,
    outputs: Outputs | None,
    network: Network,
    exact: Outputs | None,
    note: str = "",
) -> Rung:
    """One rung; `exact` are the real outputs of the float network."""
    if outputs is None:
        return Rung(name, title, None, None, (), None, note)
    real = real_outputs(network, outputs)
    decibels = None
    if exact is not None and [one.shape for one in exact] == [one.shape for one in real]:
        decibels = decibels_of(exact, real)
    return Rung(name, title, real, classes_of(real), _top(real), decibels, note)


def real_outputs(network: Network, outputs: Outputs) -> Outputs:
    """Outputs as real numbers: those that are integers of a quantized tensor are dequantized."""
    found = []
    for place, output in enumerate(outputs):
        integers = network.tail is None and place < len(network.integer_outputs)
        if integers and network.integer_outputs[place] and output.dtype.kind in "iu":
            tensor = network.tensors[network.outputs[place]]
            zero_point = tensor.zero_point + tensor.offset
            output = (output.astype(np.float32) - zero_point) * tensor.scale
        found.append(np.asarray(output, np.float32))
    return tuple(found)


def classes_of(outputs: Outputs) -> tuple[int, ...] | None:
    """The class of each sample, where the one output has a score for each class."""
    if len(outputs) != 1 or outputs[0].ndim < 2:
        return None
    samples, *extents = outputs[0].shape
    classes = int(np.prod(extents))
    if samples == 0 or classes < 2 or max(extents) != classes:
        return None
    return tuple(int(one) for one in outputs[0].reshape(samples, -1).argmax(1))


def first_change(rungs: Sequence[Rung], label: int | None) -> str:
    """The first rung whose class is not the label, or else not that of the rung before."""
    before: tuple[int, ...] | None = None
    for one in rungs:
        if one.classes is None:
            continue
        wrong = label is not None and one.classes[0] != label
        if wrong or (before is not None and one.classes != before):
            return one.name
        before = one.classes
    return ""


def _top(outputs: Outputs) -> tuple[tuple[int, float], ...]:
    """Greatest elements of the first sample of the first output, by their place in it."""
    if not outputs or outputs[0].size == 0:
        return ()
    first = outputs[0][0] if outputs[0].ndim > 1 else outputs[0]
    values = first.reshape(-1)
    order = np.argsort(-values, kind="stable")[:SHOWN]
    return tuple((int(place), float(values[place])) for place in order)
