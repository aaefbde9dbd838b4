"""Layer normalization over the last axis in integers, whatever rounding the network has.

What comes in: an island, or a layer's site. What goes out: its claim and kernel. Sums of elements
and squares are exact; the reciprocal of the root has 31 bits, a normalized element 20 fraction
bits. It must not know other families.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.operators import Operator
from accelsim.reference.site import Site

LONGEST = 4096
FARTHEST = 4.0  # output steps from the real normalization, at most


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Gain and offset a channel, real, and what is added to the variance."""

    gain: np.ndarray
    offset: np.ndarray
    epsilon: float


@dataclass(frozen=True, slots=True)
class Words:
    """gain · 2^gain_bits and offset · 2^16 in output steps; ε in input steps² / channels²."""

    gain: np.ndarray
    offset: np.ndarray
    gain_bits: int
    epsilon: int
    missed: float  # of epsilon, by rounding


def recognise(island: Island) -> Claim | None:
    """Over the last axis, which is the channels', with constant gain and offset."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator != "relax.nn.layer_norm":
        return None
    source, gain, offset = node.operands
    rank = len(node.shape)
    if not isinstance(source, Source) or source.shape != source.tensor.shape:
        return None
    constant = isinstance(gain, np.ndarray) and isinstance(offset, np.ndarray)
    last = [int(axis) % rank for axis in node.attrs.axes] == [rank - 1]
    if not (constant and last and source.tensor.axis == rank - 1 and node.shape[-1] <= LONGEST):
        return None
    gains = gain if node.attrs.scale else np.ones_like(gain)
    offsets = offset if node.attrs.center else np.zeros_like(offset)
    core = LayerNorm(gains, offsets, float(node.attrs.epsilon))
    words = words_of(core, source.tensor.scale, island.output.scale)
    if words is None or farthest(core, words, island.output.scale) > FARTHEST:
        return None
    return Claim("layer_norm", core, (source,), node.shape, island.ending.limits)


def words_of(core: LayerNorm, source: np.float32, output: np.float32) -> Words | None:
    """The integers of a normalization, None where they do not fit.

    The gain has as many fraction bits, 24 at most, as leave its largest within 31 bits.
    """
    gain, offset = (one.astype(np.float64) / float(output) for one in (core.gain, core.offset))
    bits = min(24, 31 - math.frexp(float(np.abs(gain).max()))[1])
    places = np.rint(np.ldexp(offset, 16))
    if bits < 0 or np.abs(places).max() >= 2.0**31:
        return None
    exact = Fraction(core.epsilon) * gain.size**2 / Fraction(float(source)) ** 2
    shift = next((s for s in range(16) if round(exact / 2**s) < 2**31), None)
    if shift is None:
        return None
    epsilon = round(exact / 2**shift) * 2**shift
    gains = np.minimum(np.rint(np.ldexp(gain, bits)), 2.0**31 - 1)
    return Words(gains, places, bits, epsilon, abs(float(exact - epsilon)))


def farthest(core: LayerNorm, words: Words, output: np.float32) -> float:
    """Output steps between integers and reals at most: see docs/normalization.md."""
    channels = core.gain.size
    largest = math.sqrt(max(channels - 1, 0))
    spread = max(words.epsilon / 2, channels - 1, 1)
    moved = words.missed * largest * math.sqrt(spread) / (2 * (spread + words.epsilon) ** 1.5)
    element = largest * 2.0**-22.9 + 2.0**-21 + moved
    steps = float(np.abs(core.gain).max()) / float(output)
    return float(0.5 + steps * element + largest * 2.0 ** -(words.gain_bits + 1) + 2.0**-17)


def kernel(site: Site) -> Kernel:
    """All integers are parameters."""
    words = words_of(site.layer.core, site.inputs[0].scale, site.output.scale)
    assert words is not None  # or it would not be claimed
    values = {
        "gain": words.gain.astype(np.int64),
        "offset": words.offset.astype(np.int64),
        "gain_bits": np.array(words.gain_bits, np.int64),
        "epsilon": np.array(words.epsilon, np.int64),
    }
    return Kernel(_emit, {**values, **ends_of(site)})


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    shape = emit.shapes.core_output
    rows, count = (*shape[:-1], 1), shape[-1]
    value = emit.load(x[0])

    def summed(power: int) -> Any:
        def body(t: Any, i: Any) -> Any:
            k = te.reduce_axis((0, count), "k")
            element = t[0][(*i[:-1], k)].astype("int64")
            return te.sum(element if power == 1 else element * element, axis=k)

        return emit.compute(rows, body, value)

    def spread(t: Any, i: Any) -> Any:
        return t[1][i] * count - t[0][i] * t[0][i] + t[2][()]

    def height(t: Any, i: Any) -> Any:
        free = tirx.clz(t[0][i]).astype("int64") - 16  # below 2^48
        return te.min(free >> 1, _wide(23))

    def root(t: Any, i: Any) -> Any:
        raised = t[0][i] << (t[1][i] * 2)
        return te.floor(te.sqrt(raised.astype("float64"))).astype("int64")

    def corrected(t: Any, i: Any) -> Any:
        near, raised = t[0][i], t[1][i] << (t[2][i] * 2)
        over = te.if_then_else(near * near > raised, _wide(1), _wide(0))
        under = te.if_then_else((near + 1) * (near + 1) <= raised, _wide(1), _wide(0))
        return near - over + under

    def inverse(t: Any, i: Any) -> Any:
        return te.floordiv(_wide(2**54), te.max(t[0][i], _wide(1)))

    def normalized(t: Any, i: Any) -> Any:
        row = (*i[:-1], 0)
        centred = t[0][i].astype("int64") * count - t[1][row]
        places = _wide(34) - t[4][row]
        element = _rounded(centred * t[2][row], places)
        return te.if_then_else(t[3][row] == 0, _wide(0), element)

    def ended(t: Any, i: Any) -> Any:
        gain, offset, bits = t[1][i[-1]], t[2][i[-1]], t[3][()]
        total = t[0][i] * gain + (offset << (bits + 4))
        return finished(_rounded(total, bits + 20), *t[4:])

    total = summed(1)
    variance = emit.compute(rows, spread, total, summed(2), p["epsilon"])
    heights = emit.compute(rows, height, variance)
    near = emit.compute(rows, root, variance, heights)
    roots = emit.compute(rows, corrected, near, variance, heights)
    inverses = emit.compute(rows, inverse, roots)
    deviations = emit.compute(shape, normalized, value, total, inverses, variance, heights)
    names = ("gain", "offset", "gain_bits", "zero_point", "low", "high")
    return emit.compute(shape, ended, deviations, *(p[name] for name in names))


def _wide(value: int) -> Any:
    return tirx.const(value, "int64")


def _rounded(value: Any, places: Any) -> Any:
    """value / 2^places, ties up."""
    return (value + (_wide(1) << (places - 1))) >> places


def _distance(site: Site) -> float:
    core: LayerNorm = site.layer.core
    words = words_of(core, site.inputs[0].scale, site.output.scale)
    assert words is not None
    return farthest(core, words, site.output.scale)


OPERATOR = Operator(
    "layer_norm", recognise, kernel, distance=_distance, tensor_ranks=frozenset({2, 3, 4})
)
