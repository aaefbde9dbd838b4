"""TFLite's int8 elementwise kernels, for all 256 values of an input, in TVM.

What comes in: an `Emitter` and parameters. What goes out: 256 output steps before the zero point.
It must not know how a function was recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.reference.kernels import Emitter, Values
from accelsim.reference.multipliers import fixed_point, quantize_multiplier
from accelsim.reference.scaling import MODES

SHORT = 15  # fraction bits of a 16-bit number
PLACES = 20  # fraction bits of RSQRT's 1/√x
ROOT_HALF = 1518500250  # √½ in Q0.31


def _c(name: str) -> Callable[[Any], Any]:
    """The C library's float32 function."""
    return lambda x: tirx.call_pure_extern("float32", name, x)


def _number(value: float) -> Any:
    return tirx.const(value, "float32")


def _gelu(x: Any) -> Any:
    """x/2 · erfc(-x/√2)."""
    return _number(0.5) * x * _c("erfcf")(x * _number(-0.70710678118654752440))


def _gelu_tanh(x: Any) -> Any:
    """x/2 · (1 + tanh(√(2/π) · x · (1 + 0.044715 · x²)))."""
    inner = _number(0.79788456080286535588) * x * (_number(1.0) + _number(0.044715) * x * x)
    return _number(0.5) * x * (_number(1.0) + _c("tanhf")(inner))


def _log(x: Any) -> Any:
    """The least output where there is no logarithm."""
    return tirx.if_then_else(
        x > _number(0.0), _c("logf")(te.max(x, _number(1e-30))), _number(-1e30)
    )


FLOATS: Mapping[str, Callable[[Any], Any]] = {
    "sigmoid": lambda x: _number(1.0) / (_number(1.0) + _c("expf")(-x)),
    "tanh": _c("tanhf"),
    "exp": _c("expf"),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "elu": lambda x: tirx.if_then_else(x < _number(0.0), _c("expm1f")(x), x),
    "log": _log,
}
"""Kernels that fill a table in float32."""


def rescale_values(source: np.float32, output: np.float32, slope: float) -> dict[str, np.ndarray]:
    """Of ABS and LEAKY_RELU: scalings of values from zero up and below; quotients in float32."""
    values: dict[str, np.ndarray] = {}
    for side, real in enumerate((source / output, source * np.float32(slope) / output)):
        words = fixed_point(float(real)).values()
        values |= {f"{name}_{side}": word.reshape(()) for name, word in words.items()}
    return values


def emit_leaky(emit: Emitter, centred: Any, p: Values) -> Any:
    """One scaling from zero up, another below."""
    scale = MODES["tflite"]

    def body(t: Any, i: Any) -> Any:
        x, over, over_shift, under, under_shift = (t[0][i], *(one[()] for one in t[1:]))
        return tirx.if_then_else(x >= 0, scale(x, over, over_shift), scale(x, under, under_shift))

    words = (p[f"{name}_{side}"] for side in range(2) for name in ("multiplier", "shift"))
    return emit.compute((256,), body, centred, *words)


def emit_absolute(emit: Emitter, centred: Any, p: Values) -> Any:
    """The magnitude, scaled. Equal scales have the multiplier one, which changes nothing."""

    def body(t: Any, i: Any) -> Any:
        magnitude = tirx.if_then_else(t[0][i] < 0, -t[0][i], t[0][i])
        return MODES["tflite"](magnitude, t[1][()], t[2][()])

    return emit.compute((256,), body, centred, p["multiplier_0"], p["shift_0"])


def root_values(source: np.float32, output: np.float32) -> dict[str, np.ndarray]:
    """Of SQRT: the scales themselves."""
    scales = {"root_input": source, "root_output": output}
    return {name: np.array(value, np.float32) for name, value in scales.items()}


def emit_root(emit: Emitter, centred: Any, p: Values) -> Any:
    """Whole steps below √(x · input scale) / output scale."""

    def body(t: Any, i: Any) -> Any:
        real = te.max(t[0][i], 0).astype("float32") * t[1][()]
        return te.floor(te.sqrt(real) / t[2][()]).astype("int32")

    return emit.compute((256,), body, centred, p["root_input"], p["root_output"])


def inverse_root_values(source: np.float32, output: np.float32) -> dict[str, np.ndarray]:
    """Of RSQRT: 1 / (√input scale · output scale), less the 20 places of 1/√x."""
    scale = float(np.sqrt(source) * output)
    mantissa, shift = quantize_multiplier(1.0 / scale)
    values = {"inverse_multiplier": mantissa, "inverse_shift": shift - PLACES}
    return {name: np.array(value, np.int32) for name, value in values.items()}


def emit_inverse_root(emit: Emitter, centred: Any, p: Values) -> Any:
    """1/√x by five Newton steps in Q3.28, then a change of scale; zero and below are far away."""

    def wide(value: int) -> Any:
        return tirx.const(value, "int64")

    def pairs(x: Any) -> Any:  # by how many pairs of bits x is raised: to 27 or 28 bits
        return 10 + sum(tirx.if_then_else(x < limit, 1, 0) for limit in (128, 32, 8))

    def half(t: Any, i: Any) -> Any:
        x = te.max(t[0][i], 2)
        raised = x.astype("int64") << (2 * pairs(x)).astype("int64")
        return ((raised >> wide(1)) + wide(1)) >> wide(1)

    def product(a: Any, b: Any) -> Any:
        return (a * b + wide(1 << 30)) >> wide(31)

    def saturated(value: Any) -> Any:
        return te.min(value, wide((1 << 31) - 1))

    def step(t: Any, i: Any) -> Any:
        root = t[1][i]
        cubed = saturated(product(product(root, root), root) << wide(6))
        return saturated((product(wide(3 << 27), root) - product(t[0][i], cubed)) << wide(3))

    halves = emit.compute((256,), half, centred)
    roots = emit.compute((256,), lambda t, i: wide(1 << 28) + wide(0) * t[0][i], halves)
    for _ in range(5):
        roots = emit.compute((256,), step, halves, roots)

    def fine(t: Any, i: Any) -> Any:  # 2^20 / √x
        x, mantissa = t[0][i], product(t[1][i], wide(ROOT_HALF))
        places = (pairs(te.max(x, 2)) - 11 + PLACES).astype("int64")
        found = (mantissa * (wide(1) << places) + wide(1 << 30)) >> wide(31)
        return tirx.if_then_else(x == 1, wide(1 << PLACES), found).astype("int32")

    def steps(t: Any, i: Any) -> Any:
        far = tirx.const(1 << 20, "int32")
        return tirx.if_then_else(t[0][i] > 0, MODES["tflite"](t[1][i], t[2][()], t[3][()]), far)

    data = emit.compute((256,), fine, centred, roots)
    words = (p["inverse_multiplier"], p["inverse_shift"])
    return emit.compute((256,), steps, centred, data, *words)


def hard_swish_values(source: np.float32, output: np.float32) -> dict[str, np.ndarray]:
    """(factor, places) of x·128 to output steps, and of x·128 to steps of 3 / 2^15."""
    fine = source / np.float32(128)
    values: dict[str, int] = {}
    for name, unit in (("output", output), ("gate", np.float32(3 / 32768))):
        mantissa, places = quantize_multiplier(float(fine / unit))
        factor = min((mantissa + 2**15) // 2**16, 2**15 - 1)
        values |= {f"{name}_factor": factor, f"{name}_places": places}
    return {name: np.array(value, np.int32) for name, value in values.items()}


def emit_hard_swish(emit: Emitter, centred: Any, p: Values) -> Any:
    """x·128, scaled, times the gate relu6(x + 3) / 6 in Q0.15; both saturate at 16 bits."""

    def body(t: Any, i: Any) -> Any:
        x, factor, places, gate_factor, gate_places = (t[0][i], *(one[()] for one in t[1:]))
        zero = tirx.const(0, "int32")
        fine = x << 7
        more = te.max(gate_places, zero)
        gate = _short(fine << te.max(more - 1, zero))
        gate = _short(_half_up(gate * gate_factor, SHORT) << te.min(more, 1))
        gate = _away(gate, te.max(-gate_places, zero))
        gate = (gate + (1 << SHORT)) >> 1
        product = gate * _half_up(fine * factor, SHORT)
        high = tirx.if_then_else(product < 0, -((-product) >> SHORT), product >> SHORT)
        return _away(high, -places)

    names = ("output_factor", "output_places", "gate_factor", "gate_places")
    return emit.compute((256,), body, centred, *(p[name] for name in names))


def _short(value: Any) -> Any:
    return te.max(te.min(value, (1 << SHORT) - 1), -(1 << SHORT))


def _half_up(value: Any, places: int) -> Any:
    return (value + (1 << (places - 1))) >> places


def _away(value: Any, places: Any) -> Any:
    """value / 2^places, places 0 to 31, ties away from zero."""
    wide = tirx.if_then_else(value < 0, -value, value).astype("int64")
    one = tirx.const(1, "int64")
    rounded = (wide + ((one << places.astype("int64")) >> 1)) >> places.astype("int64")
    small = rounded.astype("int32")
    return tirx.if_then_else(value < 0, -small, small)
