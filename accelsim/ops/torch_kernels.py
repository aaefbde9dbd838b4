"""PyTorch's own kernels on a case: float32, and int8 on the qnnpack engine.

What comes in: a case. What goes out: its outputs. It must not know TVM or hardware.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # registers the exported graph's operators
from numpy.typing import NDArray

from accelsim.ops.case import Case
from accelsim.ops.modules import groups_of, real_limits
from accelsim.quantize import qnnpack_engine

functional = torch.nn.functional
MATRIX_ERROR = 2.0**-23  # twice the unit round-off: both sides round


def integer_output(case: Case) -> NDArray[np.uint8]:
    """The stored output of PyTorch's quantized kernel, in its own layout."""
    with qnnpack_engine(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantized tensors are announced to end
        result = _INTEGER[case.operator](case, [_tensor(one) for one in case.inputs])
        return np.asarray(result.int_repr().numpy(), np.uint8)


def quantized_input(case: Case) -> NDArray[np.uint8]:
    """The float input as the exported graph's quantize stores it: rint(x · (1/s)) + zero."""
    first = case.inputs[0]
    assert case.floats is not None
    values = torch.from_numpy(case.floats)
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor
    stored = quantize(values, float(first.scale), first.zero, 0, 255, torch.uint8)
    return np.asarray(stored.numpy(), np.uint8)


def eager_input(case: Case) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The same by `torch.quantize_per_tensor`, and what it is known to compute.

    On x86 that kernel adds the zero point before it rounds: rint(fma(x, 1/s, zero)) in float32.
    """
    first = case.inputs[0]
    assert case.floats is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = torch.from_numpy(case.floats)
        q = torch.quantize_per_tensor(values, float(first.scale), first.zero, torch.quint8)
    exact = case.floats.astype(np.float64) * float(np.float32(1) / first.scale)
    steps = np.rint((exact + first.zero).astype(np.float32))
    return q.int_repr().numpy(), np.clip(steps, 0, 255).astype(np.uint8)


def dequantized_output(case: Case) -> NDArray[np.float32]:
    """PyTorch's dequantize of its own output."""
    stored = torch.from_numpy(integer_output(case))
    dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor
    reals = dequantize(stored, float(case.scale), case.zero, 0, 255, torch.uint8)
    return np.asarray(reals.numpy(), np.float32)


def float_output(case: Case) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Output on the dequantized inputs in float32, and the bound of its rounding error.

    The bound of a sum of n products in any order is n·u·Σ|x·w| with unit round-off u; operators
    that round nothing have bound 0.
    """
    reals = [torch.from_numpy(one.reals) for one in case.inputs]
    with torch.no_grad():
        result = _FLOAT[case.operator](case, reals, False)
        terms = _terms(case)
        bound = torch.zeros_like(result)
        if terms:
            magnitude = _FLOAT[case.operator](case, [r.abs() for r in reals], True)
            bound = magnitude * (terms * MATRIX_ERROR)
        if case.spec.relu:
            result = torch.relu(result)
    return result.numpy(), bound.numpy()


def _terms(case: Case) -> int:
    if case.weight is not None:
        return int(np.prod(case.weight.values.shape[1:])) + 1
    return int(np.prod(case.spec.size)) if case.operator == "global_avg_pool2d" else 0


def _tensor(one: Any) -> Any:
    return torch._make_per_tensor_quantized_tensor(
        torch.from_numpy(np.ascontiguousarray(one.values)), float(one.scale), one.zero
    )


def _weight(case: Case) -> Any:
    weight = case.weight
    assert weight is not None
    values = torch.from_numpy(weight.values)
    if weight.scale.size == 1:
        return torch._make_per_tensor_quantized_tensor(
            values, float(weight.scale[0]), int(weight.zero[0])
        )
    scale, zero = torch.from_numpy(weight.scale.astype(np.float64)), torch.from_numpy(weight.zero)
    return torch._make_per_channel_quantized_tensor(values, scale, zero, 0)


def _conv(case: Case, inputs: list[Any]) -> Any:
    spec, ops = case.spec, torch.ops.quantized
    assert case.weight is not None
    packed = ops.conv2d_prepack(
        _weight(case),
        torch.from_numpy(case.weight.bias),
        list(spec.stride),
        list(spec.padding),
        list(spec.dilation),
        groups_of(case),
    )
    run = ops.conv2d_relu if spec.relu else ops.conv2d
    return run(inputs[0], packed, float(case.scale), case.zero)


def _linear(case: Case, inputs: list[Any]) -> Any:
    assert case.weight is not None
    packed = torch.ops.quantized.linear_prepack(_weight(case), torch.from_numpy(case.weight.bias))
    flat = inputs[0].contiguous().flatten(1)
    result = torch.ops.quantized.linear(flat, packed, float(case.scale), case.zero)
    return torch.relu(result) if case.spec.relu else result


def _add(case: Case, inputs: list[Any]) -> Any:
    run = torch.ops.quantized.add_relu if case.spec.relu else torch.ops.quantized.add
    return run(*inputs, float(case.scale), case.zero)


def _clamp(case: Case, inputs: list[Any]) -> Any:
    low, high = real_limits(case)
    if case.operator == "relu6":
        return functional.relu6(inputs[0])
    return torch.relu(inputs[0]) if high == float("inf") else torch.clamp(inputs[0], low, high)


def _max_pool(case: Case, inputs: list[Any]) -> Any:
    spec = case.spec
    return functional.max_pool2d(inputs[0], spec.kernel, spec.stride, spec.padding)


def _mean(case: Case, inputs: list[Any]) -> Any:
    return functional.adaptive_avg_pool2d(inputs[0], 1)


def _float_matrix(case: Case, inputs: list[Any], magnitude: bool) -> Any:
    assert case.weight is not None
    weight, bias = torch.from_numpy(case.weight.reals), torch.from_numpy(case.weight.bias)
    if magnitude:
        weight, bias = weight.abs(), bias.abs()
    if case.operator in ("linear", "flatten"):
        return functional.linear(inputs[0].flatten(1), weight, bias)
    spec = case.spec
    geometry = (spec.stride, spec.padding, spec.dilation, groups_of(case))
    return functional.conv2d(inputs[0], weight, bias, *geometry)


def _float_add(case: Case, inputs: list[Any], magnitude: bool) -> Any:
    return inputs[0] + inputs[1]


Float = Callable[[Case, list[Any], bool], Any]
_CLAMPS = ("relu", "relu6", "clip", "quantize", "dequantize")
_INTEGER: dict[str, Callable[[Case, list[Any]], Any]] = {
    **dict.fromkeys(("conv2d", "depthwise_conv2d"), _conv),
    **dict.fromkeys(("linear", "flatten"), _linear),
    "add": _add,
    "max_pool2d": _max_pool,
    "global_avg_pool2d": _mean,
    **dict.fromkeys(_CLAMPS, _clamp),
}
_FLOAT: dict[str, Float] = {
    **dict.fromkeys(("conv2d", "depthwise_conv2d", "linear", "flatten"), _float_matrix),
    "add": _float_add,
    "max_pool2d": lambda case, inputs, _: _max_pool(case, inputs),
    "global_avg_pool2d": lambda case, inputs, _: _mean(case, inputs),
    **dict.fromkeys(_CLAMPS, lambda case, inputs, _: _float_clamp(case, inputs)),
}


def _float_clamp(case: Case, inputs: list[Any]) -> Any:
    low, high = real_limits(case)
    return torch.relu(inputs[0]) if high == float("inf") else torch.clamp(inputs[0], low, high)
