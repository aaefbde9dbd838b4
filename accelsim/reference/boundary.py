"""Where floats become int8 and int8 becomes floats: the host's part of the network.

What comes in: a `Network` and arrays. What goes out: arrays. It must not know how the NPU stores or
computes them; it only fixes the layout and the definition of the boundary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from accelsim.artifacts import I8
from accelsim.errors import InputError, ModelError
from accelsim.quantize import layouts
from accelsim.reference.network import Network, QuantizedTensor


def to_nhwc(stored: np.ndarray, tensor: QuantizedTensor) -> I8:
    """Stored integers in the model's layout → int8 (n, h, w, c)."""
    values = (stored.astype(np.int16) - tensor.offset).astype(np.int8)
    return layouts.to_nhwc(values.reshape(tensor.shape), tensor.axis)


def from_nhwc(values: I8, tensor: QuantizedTensor) -> np.ndarray:
    """int8 (n, h, w, c) → stored integers (int8 or uint8) in the model's layout."""
    stored = (values.astype(np.int16) + tensor.offset).astype(tensor.stored)
    return layouts.from_nhwc(stored, tensor.shape, tensor.axis)


def quantize_inputs(network: Network, inputs: Mapping[str, np.ndarray]) -> dict[str, I8]:
    """rint(x · (1/scale)) + zero point, clamped; every operation in float32.

    This is the exported graph's quantize; ONNX Runtime's divides by the scale instead. Inputs that
    are quantized already are only moved.
    `InputError` on a missing input, a wrong shape or integers of another dtype.
    """
    result = {}
    for name, tensor_name in network.inputs:
        tensor = network.tensors[tensor_name]
        if name in network.direct:
            result[tensor_name] = to_nhwc(
                checked_input(inputs, name, tensor.shape, tensor.stored), tensor
            )
        else:
            values = checked_input(inputs, name, tensor.shape)
            result[tensor_name] = quantize_floats(values, tensor)
    return result


def checked_input(
    inputs: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], dtype: str = "float32"
) -> np.ndarray:
    """An input of the dtype, finite. Any number becomes float32; integers must be what they are.

    `InputError` where it is missing, of another shape or not that.
    """
    if name not in inputs:
        raise InputError(f"input '{name}' is missing: the inputs given are {', '.join(inputs)}")
    values = np.asarray(inputs[name])
    if dtype == "float32":
        values = values.astype(np.float32)
    elif values.dtype != dtype:
        raise InputError(f"input '{name}' is {values.dtype}, not {dtype}")
    if values.shape != shape:
        raise InputError(f"input '{name}' has shape {values.shape}, not {shape}")
    if not np.all(np.isfinite(values)):
        raise InputError(f"input '{name}' holds values that are not finite")
    return values


def quantize_floats(values: np.ndarray, tensor: QuantizedTensor) -> I8:
    """float32 in the model's layout → int8 (n, h, w, c), as `quantize_inputs` says."""
    exact = values / tensor.scale if tensor.divides else values * (np.float32(1) / tensor.scale)
    steps = np.rint(exact) + np.float32(tensor.zero_point)
    clamped = np.clip(steps, tensor.clamp_min, tensor.clamp_max).astype(np.int16)
    return to_nhwc(clamped + np.int16(tensor.offset), tensor)


def on_levels(network: Network, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Model inputs quantized and dequantized.

    Those that float operators read are left out, those that are integers, and those that are
    quantized to several levels.
    """
    uses = Counter(name for name, _ in network.inputs)
    raw = {name for one in network.prepared for name in one.inputs} | set(network.direct)
    raw |= {name for host in network.hosts for name in host.given if name is not None}
    levels = quantize_inputs(network, inputs)
    result = {}
    for name, tensor_name in network.inputs:
        if name not in raw and uses[name] == 1:
            result[name] = dequantize(levels[tensor_name], network.tensors[tensor_name])
    return result


def dequantize(values: I8, tensor: QuantizedTensor) -> np.ndarray:
    """(q - zero point) · scale in float32, in the model's layout."""
    centred = from_nhwc(values, tensor).astype(np.float32)
    centred -= np.float32(tensor.zero_point + tensor.offset)
    return np.asarray(centred * tensor.scale, dtype=np.float32)


def dequantize_outputs(network: Network, values: Mapping[str, I8]) -> tuple[np.ndarray, ...]:
    """(q - zero point) · scale in float32, or q, in the model's layout and output order.

    `ModelError` where float operators follow.
    """
    if network.float_tail:
        raise ModelError("the model ends in float operators that take nothing quantized")
    return tuple(
        (from_nhwc if integers else dequantize)(values[name], network.tensors[name])
        for name, integers in zip(network.outputs, network.integer_outputs, strict=True)
    )
