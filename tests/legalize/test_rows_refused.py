"""What has no exact integers on the NPU stays on the host, with one sentence why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import relax

from accelsim.legalize import legalize_module
from tests.reference.qdq import QdqModule, constant

op = relax.op


def reasons(
    operator: Callable[[Any, Any], Any],
    shape: tuple[int, ...] = (2, 6, 9),
    scale: float = 1 / 256,
    rounding: str = "qnnpack",
    zero: int = 0,
) -> list[str]:
    """Why operators of a module stay on the host."""
    module = QdqModule(x=shape)
    x = module.dequantize(module.quantize(module.inputs[0], "in", np.float32(0.1), 9))
    result = module.quantize(operator(module, x), "y", np.float32(scale), zero)
    built = module.module(module.dequantize(result))
    found = legalize_module(built, rounding=rounding).host_ops
    return [one.reason for one in found if not one.boundary]


def normalized(axes: list[int], gain: float = 1.0) -> Callable[[Any, Any], Any]:
    words = [constant(np.full((9,) if len(axes) == 1 else (6, 9), v), "float32") for v in (gain, 0)]
    return lambda module, x: module.emit(op.nn.layer_norm(x, *words, axes=axes, epsilon=1e-5), "y")


def softmax(axis: int) -> Callable[[Any, Any], Any]:
    return lambda module, x: module.emit(op.nn.softmax(x, axis=axis), "y")


def root(module: Any, x: Any) -> Any:
    return module.emit(op.sqrt(x), "y")


def sine(module: Any, x: Any) -> Any:
    return module.emit(op.sin(x), "y")


def nothing(module: Any, x: Any) -> Any:
    return module.emit(op.strided_slice(x, [1], [6], [6]), "y")


def cropped(module: Any, x: Any) -> Any:
    return module.emit(op.nn.pad(x, [0, 0, -1, 1, 0, 0]), "y")


def beside_nothing(module: Any, x: Any) -> Any:
    """What a concat with an empty operand is."""
    none = module.dequantize(module.quantize(nothing(module, x), "none", np.float32(0.1), 9))
    return module.emit(op.concat([x, none], axis=1), "z")


@pytest.mark.parametrize(
    ("operator", "changes", "reason"),
    [
        (softmax(-1), {"scale": 1 / 1024}, "may miss the real result by 4.5 steps"),
        (softmax(-1), {"zero": 3, "rounding": "tflite"}, "not TFLite's 1/256 from -128 on"),
        (softmax(2), {"shape": (2, 6, 9, 4)}, "its axis 2 is not the one of its channels"),
        (softmax(-1), {"shape": (2, 5000)}, "its rows have 5000 elements, the NPU takes 4096"),
        (normalized([-2, -1]), {}, "it normalizes over more than the last axis"),
        (normalized([-1], 50.0), {}, "its integers may miss the real result by"),
        (cropped, {}, "it pads by less than nothing"),
        (nothing, {}, "its result has no elements"),
        (root, {}, "sqrt has no value for some of its inputs"),
        (sine, {"rounding": "tflite"}, "TFLite's integers of sin are not known"),
    ],
)
def test_operator_stays_on_the_host(
    operator: Callable[[Any, Any], Any], changes: dict[str, Any], reason: str
) -> None:
    found = reasons(operator, **changes)
    assert found and reason in found[-1], found


def test_operator_with_an_empty_input_stays_on_the_host() -> None:
    assert "one of its inputs has no elements" in reasons(beside_nothing)


@pytest.mark.parametrize("operator", [softmax(1), softmax(-1), normalized([-1], 0.2), sine])
def test_others_run_on_the_npu(operator: Callable[[Any, Any], Any]) -> None:
    assert reasons(operator) == []
