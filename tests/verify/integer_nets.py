"""Small quantized networks, made by hand, whose inputs and outputs are integers of every dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.ops.modules import Builder, constant

op = relax.op
WORDS = 11  # rows of the embedding table
SHAPES = {"int8": (1, 6, 5, 5), "uint8": (1, 6, 5, 5), "int64": (1, 9)}


def _dequantized(build: Builder, stored: Any, scale: float, zero: int) -> Any:
    parameters = (constant(scale, "float32"), constant(zero, "int32"))
    return build.emit(op.dequantize(stored, *parameters, axis=0))


def _weight(build: Builder, rng: np.random.Generator, *shape: int) -> Any:
    return _dequantized(build, constant(rng.integers(-90, 91, shape), "int8"), 0.02, 0)


def image(dtype: str, host: str | None = None) -> QuantizedModel:
    """Two convolutions on an image of integers, which give integers.

    `host` puts a sine, which has no integer form, "first", in the "middle" or "last".
    """
    build, rng = Builder(), np.random.default_rng(5)
    zero = 131 if dtype == "uint8" else 3
    x = build.input("image", SHAPES[dtype], dtype)
    value = _dequantized(build, x, 0.03, zero)
    value = _host(build, value, "first", host, zero, dtype)
    value = _conv(build, rng, value, "body/conv", 10, 6, zero, dtype)
    value = _host(build, value, "middle", host, zero, dtype)
    value = _conv(build, rng, value, "head/conv", 7, 10, zero, dtype)
    value = _host(build, value, "last", host, zero, dtype)
    return model(build, [build.bindings[-1].value.args[0]], "image")


def _host(build: Builder, value: Any, place: str, host: str | None, zero: int, dtype: str) -> Any:
    if host != place:
        return value
    build.layer = f"{place}/sine"
    # A sine of an add is one island whose operator no table can stand for: two operands.
    value = build.emit(op.sin(op_add(build, value)))
    return build.requantized(value, f"{place}/sine", np.float32(0.01), zero, dtype)


def op_add(build: Builder, value: Any) -> Any:
    """A value plus its own mean over the pixels."""
    mean = build.emit(op.mean(value, axis=[2, 3], keepdims=True))
    return build.emit(op.add(value, mean))


def _conv(
    build: Builder,
    rng: np.random.Generator,
    value: Any,
    name: str,
    outputs: int,
    inputs: int,
    zero: int,
    dtype: str,
) -> Any:
    build.layer = name
    weight = _weight(build, rng, outputs, inputs, 3, 3)
    convolved = build.emit(op.nn.conv2d(value, weight, padding=(1, 1, 1, 1)))
    bias = constant(rng.uniform(-1, 1, (1, outputs, 1, 1)), "float32")
    total = build.emit(op.nn.relu(build.emit(op.add(convolved, bias))))
    result = build.requantized(total, name, np.float32(0.11), zero, dtype)
    build.layer = None
    return result


def tokens(dtype: str = "int64") -> QuantizedModel:
    """Token numbers and a mask, an embedding on the host, a linear layer, a masked host layer."""
    build, rng = Builder(), np.random.default_rng(6)
    ids = build.input("tokens", SHAPES["int64"], dtype)
    mask = build.input("mask", SHAPES["int64"], dtype)
    build.layer = "embedding"
    table = constant(rng.normal(size=(WORDS, 12)), "float32")
    value = build.emit(op.take(table, ids, axis=0, mode="clip"))
    value = build.requantized(value, "embedding", np.float32(0.03), 0, "int8")
    build.layer = "dense"
    weight = build.emit(op.permute_dims(_weight(build, rng, 8, 12)))
    value = build.emit(op.matmul(value, weight))
    value = build.requantized(value, "dense", np.float32(0.2), -4, "int8")
    build.layer = "masked"
    factor = build.emit(op.expand_dims(build.emit(op.astype(mask, "float32")), 2))
    value = build.emit(op.sin(build.emit(op.multiply(value, factor))))
    value = build.requantized(value, "masked", np.float32(0.01), 5, "int8")
    build.layer = "head"
    weight = build.emit(op.permute_dims(_weight(build, rng, 5, 8)))
    value = build.emit(op.matmul(value, weight))
    build.requantized(value, "head", np.float32(0.05), 1, "int8")
    return model(build, [build.bindings[-1].value.args[0]], "tokens")


def model(build: Builder, results: list[Any], name: str) -> QuantizedModel:
    """A quantized model of the builder's module whose `main` returns the results."""
    module = build.module(results)
    parameters = module["main"].params
    return QuantizedModel(
        name=name,
        exported=None,
        qdq=module,
        torch_int8=None,
        layer_names=(),
        input_names=tuple(str(one.name) for one in parameters),
        input_shapes=tuple(tuple(map(int, one.ty.shape)) for one in parameters),
        input_dtypes=tuple(str(one.ty.dtype) for one in parameters),
        rounding="qnnpack",
    )


def source(quantized: QuantizedModel) -> SourceModel:
    """A source without any data."""
    return SourceModel(quantized.name, None, (), quantized.input_names, framework="tflite")
