"""Functions of one value, each as PyTorch computes it and as its exported graph states it in Relax.

What comes in: nothing. What goes out: `FUNCTIONS`. It must not know cases or hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from tvm import relax

from accelsim.ops.modules import Builder, constant

op = relax.op
functional = torch.nn.functional
kernels: Any = torch.ops.quantized
SLOPE = 0.1  # of leaky ReLU below zero


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    `quantized(x, scale, zero)` is PyTorch's kernel on qnnpack where one gives the same in every
    bit; `output` is the scale and the zero point, uint8, that this kernel has always. `peers` are
    other frameworks that the integers equal.
    """

    name: str
    torch: Callable[[Any], Any]
    relax: Callable[[Builder, Any], Any]
    quantized: Callable[[Any, float, int], Any] | None = None
    output: tuple[float, int] | None = None
    peers: tuple[str, ...] = ()
    pole: bool = False  # at 0
    zero: int | None = None  # zero point of an input without values that have no result
    notes: str = ""


def _single(call: Callable[[Any], Any]) -> Callable[[Builder, Any], Any]:
    return lambda build, x: build.emit(call(x))


def _number(value: float) -> Any:
    return constant(value, "float32")


def _hard_sigmoid(build: Builder, x: Any) -> Any:
    """min(max(x + 3, 0), 6) / 6."""
    bent = build.emit(op.clip(build.emit(op.add(x, _number(3))), 0, 6))
    return build.emit(op.divide(bent, _number(6)))


def _hard_swish(build: Builder, x: Any) -> Any:
    return build.emit(op.multiply(x, _hard_sigmoid(build, x)))


def _elu(build: Builder, x: Any) -> Any:
    """-max(1 - e^x, 0) + max(x, 0)."""
    bent = build.emit(op.nn.relu(build.emit(op.subtract(_number(1), build.emit(op.exp(x))))))
    low = build.emit(op.multiply(_number(-1), bent))
    return build.emit(op.add(low, build.emit(op.nn.relu(x))))


def _mish(build: Builder, x: Any) -> Any:
    """x · tanh(softplus(x))."""
    soft = build.emit(op.tanh(build.emit(op.nn.softplus(x))))
    return build.emit(op.multiply(x, soft))


def _ripple(build: Builder, x: Any) -> Any:
    """x · sin(x) + 1/2."""
    wave = build.emit(op.multiply(x, build.emit(op.sin(x))))
    return build.emit(op.add(wave, _number(0.5)))


FUNCTIONS = (
    Function(
        "sigmoid",
        torch.sigmoid,
        _single(op.sigmoid),
        lambda x, scale, zero: torch.sigmoid(x),
        (1 / 256, 0),
        ("TFLite", "ONNX Runtime"),
    ),
    Function(
        "tanh",
        torch.tanh,
        _single(op.tanh),
        lambda x, scale, zero: torch.tanh(x),
        (1 / 128, 128),
        ("TFLite",),
    ),
    Function("silu", functional.silu, _single(op.nn.silu)),
    Function(
        "hard_swish",
        functional.hardswish,
        _hard_swish,
        lambda x, scale, zero: kernels.hardswish(x, scale, zero),
        peers=("TFLite",),
        notes="in rounding fp32 in the order of the exported graph, at most one step from qnnpack",
    ),
    Function(
        "hard_sigmoid",
        functional.hardsigmoid,
        _hard_sigmoid,
        lambda x, scale, zero: functional.hardsigmoid(x),
        (1 / 256, 0),
    ),
    Function("gelu", functional.gelu, _single(op.nn.gelu), peers=("TFLite",)),
    Function(
        "elu",
        functional.elu,
        _elu,
        peers=("TFLite",),
        notes="PyTorch's quantized kernel takes exp in vectors: one step beside ties",
    ),
    Function(
        "leaky_relu",
        lambda x: functional.leaky_relu(x, SLOPE),
        _single(lambda x: op.nn.leakyrelu(x, SLOPE)),
        lambda x, scale, zero: kernels.leaky_relu(x, SLOPE, False, scale, zero),
        peers=("TFLite", "ONNX Runtime"),
    ),
    Function("mish", functional.mish, _mish),
    Function("softplus", functional.softplus, _single(op.nn.softplus)),
    Function("exp", torch.exp, _single(op.exp), peers=("TFLite",)),
    Function(
        "reciprocal",
        torch.reciprocal,
        _single(lambda x: op.divide(_number(1), x)),
        pole=True,
    ),
    Function("rsqrt", torch.rsqrt, _single(op.rsqrt), pole=True, zero=0),
    Function(
        "user_function",
        lambda x: x * torch.sin(x) + 0.5,
        _ripple,
        notes="stands for any chain of elementwise operators on one tensor and numbers",
    ),
)
