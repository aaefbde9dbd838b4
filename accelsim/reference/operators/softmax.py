"""Softmax over the channels in TFLite's int8 arithmetic, whatever rounding the network has.

An output in other levels than TFLite's has them as a change of scale behind that would give them.

What comes in: an island, or a layer's site. What goes out: its claim and kernel. Exponentials come
from gemmlowp's fixed point for each of the 256 differences from the largest element, their sum's
reciprocal from three Newton steps. It must not know other families.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import UNLIMITED, Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.multipliers import quantize_multiplier
from accelsim.reference.network import QuantizedTensor
from accelsim.reference.operators import Operator
from accelsim.reference.site import Site

LONGEST = 4096  # elements of a row
HUGE = 2.0**64  # a step of a mask, beside which float32 has no score
HIDDEN = 1 / 64  # of 1/256: what elements 255 levels below the largest may have
MOST = 2.0  # steps from the real result of an output in levels of its own
FACTORS = tuple(math.exp(-(2.0**k)) for k in range(-2, 5))  # of the bits of a multiple of 1/4


@dataclass(frozen=True, slots=True)
class Softmax:
    """Over `axis` of the logical shape, of values times `beta`; `masked` by a second source."""

    axis: int
    beta: float = 1.0
    masked: bool = False


def recognise(island: Island) -> Claim | None:
    """A softmax over channels, from 0 in steps of 1/256, of a scale that TFLite has."""
    node, output = island.ending.value, island.output
    if not isinstance(node, Node) or node.operator != "relax.nn.softmax":
        return None
    (source,), beta, mask = node.operands, 1.0, None
    if isinstance(source, Node) and source.operator == "relax.add":
        source, mask = _mask_apart(*source.operands)
        if mask is None:
            return None
    if isinstance(source, Node) and source.operator in ("relax.multiply", "relax.divide"):
        divides = source.operator == "relax.divide"
        source, factor = source.operands
        beta = float(factor.item()) if isinstance(factor, np.ndarray) and factor.size == 1 else 0.0
        beta = 1 / beta if divides and beta > 0 else beta
    axis = int(node.attrs.axis) % len(node.shape)
    if not isinstance(source, Source) or source.shape != source.tensor.shape:
        return None
    clipped = (output.clamp_min, output.clamp_max) != (-128, 127)
    far = _far(output, axis, mask is not None)
    near = _plain(output) or (island.rounding != "tflite" and far <= MOST)
    steps = near and beta * float(source.tensor.scale) > 2.0**-26
    fits = axis == source.tensor.axis and node.shape[axis] <= LONGEST
    if clipped or not (steps and fits and island.ending.limits == UNLIMITED):
        return None
    if mask is None:
        return Claim("softmax", Softmax(axis, beta), (source,), node.shape, UNLIMITED)
    spread = zip(mask.shape, node.shape, strict=True)
    along = mask.shape == mask.tensor.shape and mask.tensor.axis == axis
    if not along or mask.shape[axis] == 1 or any(one not in (1, full) for one, full in spread):
        return None
    if 256 * node.shape[axis] * math.exp(-255 * beta * float(source.tensor.scale)) > HIDDEN:
        return None
    core = Softmax(axis, beta, masked=True)
    return Claim("masked_softmax", core, (source, mask), node.shape, UNLIMITED)


def _mask_apart(first: Any, second: Any) -> tuple[Any, Source | None]:
    """Scores and the mask that is added to them, whose highest level is 0 and the others huge."""
    for scores, mask in ((first, second), (second, first)):
        if isinstance(mask, Source) and len(mask.shape) == len(getattr(scores, "shape", ())):
            tensor = mask.tensor
            if tensor.zero_point == 127 and float(tensor.scale) >= HUGE:
                return scores, mask
    return first, None


def kernel(site: Site) -> Kernel:
    """Differences become Q5.26 by a mantissa and a shift; beyond `reach` they count as infinite."""
    scale = site.layer.core.beta * float(site.inputs[0].scale)
    real = min(scale * 2.0**26, 2.0**31 - 1)
    mantissa, shift = quantize_multiplier(real)
    reach = math.floor(31 * 2.0 ** (26 - shift))
    values = {"mantissa": mantissa, "shift": shift, "reach": min(reach, 255)}
    named = {name: np.array(value, np.int64) for name, value in values.items()}
    if not _plain(site.output):
        named["inverse"] = np.array(np.float32(1) / site.output.scale, np.float32)
        named["output_scale"] = np.array(site.output.scale, np.float32)
        named |= ends_of(site)
    core = site.layer.core
    return Kernel(_emit, named, (core.axis, site.rounding == "onnxruntime", core.masked))


def _plain(output: QuantizedTensor) -> bool:
    """Whether it has TFLite's levels: 1/256 from the lowest value on."""
    return float(output.scale) == 2.0**-8 and output.zero_point == -128


def _far(output: QuantizedTensor, axis: int, masked: bool) -> float:
    """See docs/normalization.md."""
    share = 1 + output.shape[axis] / 4096 + 1 / 1024 + HIDDEN * masked
    return float(0.5 + 2.0**-12 + share / (256 * float(output.scale)))


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    (axis, quotient, masked), shape = emit.geometry, emit.shapes.core_output
    rows = tuple(1 if k == axis else extent for k, extent in enumerate(shape))
    value = emit.load(x[0])

    def row_of(index: Any) -> Any:
        return tuple(0 if k == axis else i for k, i in enumerate(index))

    def along(index: Any, place: Any) -> Any:
        return tuple(place if k == axis else i for k, i in enumerate(index))

    def largest(t: Any, i: Any) -> Any:
        k = te.reduce_axis((0, shape[axis]), "k")
        return te.max(t[0][along(i, k)].astype("int32"), axis=k)

    def power(t: Any, i: Any) -> Any:
        return t[2][t[0][row_of(i)] - t[1][i].astype("int32")]

    def added(t: Any, i: Any) -> Any:
        k = te.reduce_axis((0, shape[axis]), "k")
        return te.sum(_rounded(t[0][along(i, k)], 12), axis=k)

    def share(t: Any, i: Any) -> Any:
        power_, scale, zeros = t[0][i], t[1][row_of(i)], t[2][row_of(i)]
        steps = _rounded(_product(power_, scale), 35 - zeros)
        return (te.min(steps, _wide(255)) - 128).astype("int8")

    if masked:
        keeps = emit.load(x[1], 1)
        most = emit.compute(rows, lambda t, i: _largest_kept(t, i, axis, shape), value, keeps)
        powers = emit.compute(
            shape,
            lambda t, i: _power_kept(t, i, row_of(i)),
            *(most, value, _table(emit, p), keeps),
        )
    else:
        most = emit.compute(rows, largest, value)
        powers = emit.compute(shape, power, most, value, _table(emit, p))
    total = emit.compute(rows, added, powers)
    zeros = emit.compute(rows, lambda t, i: tirx.clz(t[0][i]).astype("int64") - 32, total)
    scale = _reciprocal(
        emit, rows, emit.compute(rows, lambda t, i: t[0][i] << t[1][i], total, zeros)
    )
    shares = emit.compute(shape, share, powers, scale, zeros)
    return _levels(emit, shares, p, quotient) if "inverse" in p else shares


NONE_KEPT = -129  # below every level


def _mask_at(mask: Any, index: Any) -> Any:
    """Whether the mask, broadcast where its axis is 1, keeps an element."""
    places = (0 if int(size) == 1 else i for size, i in zip(mask.shape, index, strict=True))
    return mask[tuple(places)].astype("int32") == 127


def _largest_kept(t: Any, index: Any, axis: int, shape: tuple[int, ...]) -> Any:
    k = te.reduce_axis((0, shape[axis]), "k")
    place = tuple(k if at == axis else i for at, i in enumerate(index))
    level = te.if_then_else(_mask_at(t[1], place), t[0][place].astype("int32"), NONE_KEPT)
    return te.max(level, axis=k)


def _power_kept(t: Any, index: Any, row: Any) -> Any:
    """0 of what the mask hides and of what is 255 levels below the largest; 1 if all is hidden."""
    most, level = t[0][row], t[1][index].astype("int32")
    below = most - level
    inside = tirx.all(_mask_at(t[3], index), below < 255)
    place = te.if_then_else(inside, below, 0)
    hidden = te.if_then_else(most == NONE_KEPT, t[2][0], _wide(0))
    return te.if_then_else(inside, t[2][place], hidden)


def _levels(emit: Emitter, shares: Any, p: Values, quotient: bool) -> Any:
    """Shares of 1/256 from -128 on, in float32, in steps of the output: rounded to even."""
    shape = emit.shapes.core_output

    def real(t: Any, i: Any) -> Any:
        return (t[0][i].astype("int32") + 128).astype("float32") * tirx.const(2.0**-8, "float32")

    def level(t: Any, i: Any) -> Any:
        steps = t[0][i] / t[2][()] if quotient else t[0][i] * t[1][()]
        return finished(te.nearbyint(steps), *t[3:])

    names = ("inverse", "output_scale", "zero_point", "low", "high")
    reals = emit.compute(shape, real, shares)
    return emit.compute(shape, level, reals, *(p[name] for name in names))


def _reciprocal(emit: Emitter, rows: tuple[int, ...], raised: Any) -> Any:
    """2^31 / sum in Q0.31 of sums with a leading bit 31: Newton from 48/17 - 32/17 · d, d = sum/2.

    Steps are in Q2.29 and d in Q0.31.
    """
    half = emit.compute(rows, lambda t, i: t[0][i] >> 1, raised)
    first = _constant(48 / 17, 29)
    slope = -_constant(32 / 17, 29)
    x = emit.compute(rows, lambda t, i: _product(t[0][i], _wide(slope)) + first, half)
    for _ in range(3):
        error = emit.compute(
            rows, lambda t, i: _wide(1 << 29) - _product(t[0][i], t[1][i]), half, x
        )
        x = emit.compute(rows, lambda t, i: t[0][i] + _product(t[0][i], t[1][i]) * 4, x, error)
    return emit.compute(rows, lambda t, i: te.min(t[0][i] * 2, _wide(2**31 - 1)), x)


def _table(emit: Emitter, p: Values) -> Any:
    """exp(-d · scale) in Q0.31 for d = 0 to 255."""

    def scaled(t: Any, i: Any) -> Any:
        mantissa, shift, reach = (one[()] for one in t)
        difference = te.min(i[0].astype("int64"), reach)
        return _product(-(difference << shift), mantissa)

    def below_quarter(t: Any, i: Any) -> Any:
        return (t[0][i] & (2**24 - 1)) - 2**24

    words = (p["mantissa"], p["shift"], p["reach"])
    value = emit.compute((256,), scaled, *words)
    rest = emit.compute((256,), below_quarter, value)
    result = _near_eighth(emit, rest)
    quarters = emit.compute((256,), lambda t, i: (t[0][i] - t[1][i]) >> 24, rest, value)
    for bit, factor in enumerate(FACTORS):
        constant = _constant(factor, 31)

        def step(t: Any, i: Any, bit: int = bit, constant: int = constant) -> Any:
            chosen = ((t[1][i] >> bit) & 1) == 1
            return te.if_then_else(chosen, _product(t[0][i], _wide(constant)), t[0][i])

        result = emit.compute((256,), step, result, quarters)

    def finished(t: Any, i: Any) -> Any:
        inside = te.if_then_else(t[1][i] == 0, _wide(2**31 - 1), t[0][i])
        return te.if_then_else(i[0].astype("int64") <= t[2][()], inside, _wide(0))

    return emit.compute((256,), finished, result, value, p["reach"])


def _near_eighth(emit: Emitter, rest: Any) -> Any:
    """exp in Q0.31 of values in [-1/4, 0), Q5.26, by its series to the fourth power at -1/8."""

    def product(a: Any, b: Any) -> Any:
        return emit.compute((256,), lambda t, i: _product(t[0][i], t[1][i]), a, b)

    x = emit.compute((256,), lambda t, i: (t[0][i] << 5) + 2**28, rest)
    square = product(x, x)
    cube = product(square, x)
    fourth = emit.compute((256,), lambda t, i: _rounded(t[0][i], 2), product(square, square))
    third = _wide(_constant(1 / 3, 31))

    def tail(t: Any, i: Any) -> Any:
        fourth, cube, square = t[0][i], t[1][i], t[2][i]
        return _away(_product(fourth + cube, third) + square)

    def whole(t: Any, i: Any) -> Any:
        eighth = _constant(math.exp(-1 / 8), 31)
        return _product(t[0][i] + t[1][i], _wide(eighth)) + eighth

    half = emit.compute((256,), tail, fourth, cube, square)
    return emit.compute((256,), whole, x, half)


def _constant(real: float, places: int) -> int:
    return math.floor(real * 2.0**places + 0.5)


def _wide(value: int) -> Any:
    return tirx.const(value, "int64")


def _product(a: Any, b: Any) -> Any:
    """a·b / 2^31, ties up: what the doubling high multiply is for all but -1 · -1."""
    return (a * b + _wide(2**30)) >> 31


def _rounded(value: Any, places: Any) -> Any:
    """value / 2^places of a value that is not negative, ties up."""
    return (value + ((_wide(1) << places) >> 1)) >> places


def _away(value: Any) -> Any:
    """value / 2, ties away from zero."""
    return te.if_then_else(value < 0, -((1 - value) >> 1), (value + 1) >> 1)


def _distance(site: Site) -> float:
    """See docs/normalization.md."""
    masked: bool = site.layer.core.masked
    if not _plain(site.output):
        return _far(site.output, site.output.axis, masked)
    length = site.output.shape[site.output.axis]
    return 0.5 + length / 4096 + 1 / 1024 + HIDDEN * masked


OPERATOR = Operator(
    "softmax", recognise, kernel, distance=_distance, tensor_ranks=frozenset({2, 3, 4})
)
