"""Where noise is made: each layer in int8 against the float network.

What comes in: float outputs of layers and int8 tensors. What goes out: a row for each layer that
both have. It must not know who computed them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from accelsim.artifacts import I8
from accelsim.calibrate.noise import Noise
from accelsim.diagnose.record import LayerRow
from accelsim.reference import Network, QuantizedTensor
from accelsim.reference.boundary import dequantize

LEVELS_DB = 50.0  # of a signal that fills 256 levels: what an int8 layer may lose on its own
HEARD_DB = 3.0  # noise that a layer adds beyond this is named


def layer_rows(
    network: Network, exact: Mapping[str, np.ndarray], levels: Mapping[str, I8]
) -> list[LayerRow]:
    """A row for each layer, in the network's order.

    Args:
        exact: float outputs by tensor name, in the model's layout; a model input's may be there.
        levels: int8 (n, h, w, c) by tensor name, of the whole network.
    """
    decibels = {
        name: _decibels(exact[name], levels[name], network.tensors[name])
        for name in network.boundary
        if name in exact and name in levels
    }
    rows = []
    for layer in network.layers:
        name = layer.output
        if name not in exact or name not in levels:
            continue
        tensor = network.tensors[name]
        decibels[name] = _decibels(exact[name], levels[name], tensor)
        before = min((decibels.get(one, LEVELS_DB) for one in layer.inputs), default=LEVELS_DB)
        lost = min(before, LEVELS_DB) - min(decibels[name], LEVELS_DB)
        share = clipped_share(exact[name], tensor)
        rows.append(LayerRow(layer.name, layer.op, decibels[name], lost, share))
    return rows


def range_of(tensor: QuantizedTensor) -> tuple[float, float]:
    """Least and greatest real number that a tensor holds."""
    scale = float(tensor.scale)
    low, high = tensor.clamp_min - tensor.zero_point, tensor.clamp_max - tensor.zero_point
    return low * scale, high * scale


def clipped_share(exact: np.ndarray, tensor: QuantizedTensor) -> float:
    """Share of float elements that lie more than half a step beyond the tensor's range."""
    low, high = range_of(tensor)
    half = float(tensor.scale) / 2
    return float(((exact < low - half) | (exact > high + half)).mean())


def noisiest(rows: list[LayerRow], count: int = 3) -> list[LayerRow]:
    """The layers that add most noise, the worst first."""
    loud = [row for row in rows if row.lost_db >= HEARD_DB]
    return sorted(loud, key=lambda row: -row.lost_db)[:count]


def _decibels(exact: np.ndarray, levels: I8, tensor: QuantizedTensor) -> float:
    noise = Noise()
    noise.add(exact.reshape(tensor.shape), dequantize(levels, tensor))
    return noise.decibels
