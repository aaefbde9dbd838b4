"""Scales and zero points of ONNX operators.

What comes in: names of a scale and a zero point. What goes out: `Levels`, checked. It must not know
what is quantized with them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accelsim.quantize.onnx.emitter import Array, Emitter, Levels, Stored, Weight

_LEAST, _LARGEST = 2.0**-100, 2.0**100


def levels_of(
    g: Emitter, scale: str, zero: str = "", dtype: str | None = None, *, axis: int = 0
) -> Levels:
    """The levels of constants. `dtype` is that of the integers where no zero point says it.

    Raises ModelError for scales that are not positive, finite and normal, zero points of another
    number or type.
    """
    factors, zeros = g.known(scale), g.known(zero)
    if factors is None or (zero and zeros is None):
        raise g.fail("has a scale that is known only at run time")
    if factors.dtype.kind != "f":
        raise g.fail(f"has a scale of {factors.dtype}")
    with np.errstate(over="ignore"):
        factors = factors.astype(np.float32)
    good = np.isfinite(factors) & (factors >= _LEAST) & (factors <= _LARGEST)
    if not factors.size or not good.all():
        wrong = factors.reshape(-1)[~good.reshape(-1)][:1]
        found = f"{float(wrong[0]):g}" if wrong.size else "empty"
        raise g.fail(f"has a scale that is {found}; scales must be positive and finite")
    kind = str(zeros.dtype) if zeros is not None else dtype or "uint8"
    if zeros is None:
        zeros = np.zeros(factors.shape, np.int32)
    if zeros.size not in (1, factors.size) or zeros.dtype.kind not in "iu":
        raise g.fail(f"has {zeros.size} zero points of {zeros.dtype} for {factors.size} scales")
    if dtype is not None and dtype != kind:
        raise g.fail(f"has a zero point of {kind} for integers of {dtype}")
    if factors.ndim > 1 or factors.size == 1:
        if factors.size > 1:
            raise g.fail("is quantized in blocks, which is not supported")
        factors = factors.reshape(())
    zeros = np.broadcast_to(zeros.reshape(-1).astype(np.int32), factors.shape or (1,))
    along = axis if factors.size > 1 else 0
    return Levels(factors, zeros.reshape(factors.shape).copy(), kind, along)


def integers(g: Emitter, name: str, scale: str, zero: str = "", *, axis: int = 0) -> Any:
    """A quantized tensor as a `Weight` or as a `Stored` with the levels with which it is read."""
    value = g.value(name)
    if isinstance(value, np.ndarray):
        if value.dtype.name not in ("int8", "uint8", "int32"):
            raise g.fail(f"reads {value.dtype} numbers; quantized tensors must be int8 or uint8")
        levels = levels_of(g, scale, zero, value.dtype.name, axis=axis)
        _refuse_axis(g, levels, value.shape)
        return _signed(value, levels)
    if not isinstance(value, Stored):
        raise g.fail(f"reads '{name}' as integers, and its levels are known only at run time")
    dtype = str(value.var.ty.dtype)
    levels = levels_of(g, scale, zero, dtype, axis=axis)
    if levels.scale.size != 1:
        raise g.fail("reads an activation with a scale for each channel")
    if value.levels is None:
        value = Stored(value.var, levels)
        g.values[name] = value
    elif not value.levels.same(levels):
        raise g.fail(
            f"reads '{name}' with scale {float(levels.scale):g} and zero point "
            f"{int(levels.zero)}, and it was quantized with {float(value.levels.scale):g} and "
            f"{int(value.levels.zero)}"
        )
    return value


def _signed(values: Array, levels: Levels) -> Weight:
    """uint8 constants as int8: an exact change of zero point."""
    if values.dtype != np.uint8:
        return Weight(values, levels)
    signed = (values.astype(np.int16) - 128).astype(np.int8)
    return Weight(signed, replace(levels, zero=levels.zero - np.int32(128), dtype="int8"))


def _refuse_axis(g: Emitter, levels: Levels, shape: tuple[int, ...]) -> None:
    if levels.scale.size == 1:
        return
    rank = len(shape)
    if not -rank <= levels.axis < rank or shape[levels.axis] != levels.scale.size:
        raise g.fail(f"has {levels.scale.size} scales along axis {levels.axis} of shape {shape}")
