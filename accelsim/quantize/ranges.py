"""What values a network's inputs can take: for random inputs, and to refuse token numbers.

What comes in: a QDQ module. What goes out: limits by the input's name. It must not know the
hardware.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from tvm import ir, relax

_RENAMING = ("relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims", "relax.astype")
_TAKE = "relax.take"
_FLAGS = (0.0, 1.0)  # of an integer input that counts nothing, such as a mask
_UNKNOWN = (-1.0, 1.0)  # of a float input that nothing quantizes


def token_limits(module: Any) -> dict[str, tuple[int, int]]:
    """Of each integer input that indexes rows of a table: the least and greatest index."""
    function = module["main"]
    aliases: dict[Any, str] = {
        parameter: str(parameter.name)
        for parameter in function.params
        if str(parameter.ty.dtype) in ("int32", "int64")
    }
    found: dict[str, tuple[int, int]] = {}
    for variable, call in _calls(function):
        operator = _operator(call)
        if operator in _RENAMING and call.args[0] in aliases:
            aliases[variable] = aliases[call.args[0]]
        elif operator == _TAKE and call.args[1] in aliases:
            shape = [int(extent) for extent in call.args[0].ty.shape]
            axis = 0 if call.attrs.axis is None else int(call.attrs.axis)
            rows = shape[axis] if call.attrs.axis is not None else int(np.prod(shape))
            name = aliases[call.args[1]]
            low, high = found.get(name, (0, rows - 1))
            found[name] = (low, min(high, rows - 1))
    return found


def input_limits(module: Any) -> dict[str, tuple[float, float]]:
    """Of each input: the least and greatest value that the network tells apart."""
    function = module["main"]
    tokens = token_limits(module)
    quantized = {}
    for _, call in _calls(function):
        if _operator(call) == "relax.quantize" and call.args[0] in function.params:
            quantized[str(call.args[0].name)] = _real_limits(call)
    found = {}
    for parameter in function.params:
        name, dtype = str(parameter.name), str(parameter.ty.dtype)
        if dtype in ("int8", "uint8"):
            found[name] = (float(np.iinfo(dtype).min), float(np.iinfo(dtype).max))
        elif dtype == "float32":
            found[name] = quantized.get(name, _UNKNOWN)
        else:
            low, high = tokens.get(name, _FLAGS)
            found[name] = (float(low), float(high))
    return found


def random_inputs(module: Any, seed: int) -> dict[str, np.ndarray]:
    """Inputs by name, drawn evenly between their limits."""
    rng = np.random.default_rng(seed)
    limits = input_limits(module)
    found = {}
    for parameter in module["main"].params:
        name, dtype = str(parameter.name), str(parameter.ty.dtype)
        shape = tuple(int(extent) for extent in parameter.ty.shape)
        low, high = limits[name]
        if dtype == "float32":
            found[name] = rng.uniform(low, high, shape).astype(np.float32)
        else:
            found[name] = rng.integers(int(low), int(high) + 1, shape).astype(dtype)
    return found


def _real_limits(call: Any) -> tuple[float, float]:
    """The reals that a quantize of one scale maps to its least and greatest integer."""
    scale, zero = _constant(call.args[1]), _constant(call.args[2])
    if scale is None or zero is None or scale.size != 1 or zero.size != 1:
        return _UNKNOWN
    limits = np.iinfo(str(call.attrs.out_dtype))
    low, high = (
        (float(end) - float(zero.item())) * float(scale.item()) for end in (limits.min, limits.max)
    )
    return low, high


def _constant(expression: Any) -> np.ndarray | None:
    data = getattr(expression, "value", None)
    return None if data is None or not hasattr(data, "numpy") else np.asarray(data.numpy())


def _calls(function: Any) -> Iterator[tuple[Any, Any]]:
    for block in function.body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, relax.Call):
                yield binding.var, binding.value


def _operator(call: Any) -> str:
    return str(call.op.name) if isinstance(call.op, ir.Op) else ""
