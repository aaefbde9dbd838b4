"""A small TensorFlow Lite network with a residual, operators of the host, and a float edge."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.peers.litert_model import Step, TfliteTensor, constant, tflite_network

S = (0.05,)
CONV = {"padding": 0, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}


def network(host: bool = False, floats: bool = False) -> bytes:
    """Convolution, depthwise, sum, perhaps a minimum over channels, average, matrix, softmax.

    The minimum runs on the host. With `floats` the input is quantized and the output
    dequantized by the model itself.
    """
    rng = np.random.default_rng(11)
    tensors: list[TfliteTensor] = []
    steps: list[Step] = []

    def tensor(shape: tuple[int, ...], name: str = "", **rest: Any) -> int:
        kind: dict[str, Any] = {"scales": S, "zero": -7} | rest
        tensors.append(TfliteTensor(shape, name=name, **kind))
        return len(tensors) - 1

    def weight(shape: tuple[int, ...], outputs: int, axis: int) -> tuple[int, int]:
        scales = tuple(float(one) for one in rng.uniform(0.004, 0.02, outputs).astype(np.float32))
        values = rng.integers(-127, 128, shape).astype(np.int8)
        bias = rng.integers(-300, 300, outputs).astype(np.int32)
        steps_of = tuple(float(np.float32(S[0]) * np.float32(one)) for one in scales)
        return (
            tensor(shape, scales=scales, zero=0, axis=axis, values=values),
            tensor((outputs,), scales=steps_of, zero=0, dtype="int32", values=bias),
        )

    def step(
        op: str, inputs: tuple[int, ...], output: int, options: str = "", **fields: Any
    ) -> int:
        version = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 5}.get(op, 2)
        version = 1 if op in ("RESHAPE", "QUANTIZE") else version
        steps.append(Step(op, inputs, (output,), options, version, fields))
        return output

    def constant_of(values: Any) -> int:
        tensors.append(constant(values))
        return len(tensors) - 1

    first = tensor((1, 8, 8, 3), "image" if not floats else "levels")
    source = first
    if floats:
        source = tensor((1, 8, 8, 3), "image", scales=(), dtype="float32")
        step("QUANTIZE", (source,), first, "QuantizeOptions")
    kernel, bias = weight((8, 3, 3, 3), 8, 0)
    conv = step(
        "CONV_2D",
        (first, kernel, bias),
        tensor((1, 8, 8, 8), "conv;relu", scales=(0.07,), zero=-128),
        "Conv2DOptions",
        fusedActivationFunction=1,
        **CONV,
    )
    kernel, bias = weight((1, 3, 3, 8), 8, 3)
    depthwise = step(
        "DEPTHWISE_CONV_2D",
        (conv, kernel, bias),
        tensor((1, 8, 8, 8), "block/depthwise"),
        "DepthwiseConv2DOptions",
        depthMultiplier=1,
        **CONV,
    )
    last = step(
        "ADD", (depthwise, conv), tensor((1, 8, 8, 8), "block/add", scales=(0.09,)), "AddOptions"
    )
    if host:
        axes = constant_of([3])
        last = step(
            "REDUCE_MIN",
            (last, axes),
            tensor((1, 8, 8, 1), "lowest", scales=(0.09,)),
            "ReducerOptions",
            keepDims=True,
        )
    side, channels = (2, 1) if host else (1, 8)
    window, values = 8 // side, side * side * channels
    pooled = step(
        "AVERAGE_POOL_2D",
        (last,),
        tensor((1, side, side, channels), "pool", scales=(0.09,)),
        "Pool2DOptions",
        padding=1,
        strideH=window,
        strideW=window,
        filterHeight=window,
        filterWidth=window,
    )
    flat = tensor((1, values), "flat", scales=(0.09,))
    step("RESHAPE", (pooled, constant_of([1, values])), flat)
    kernel, bias = weight((10, values), 10, 0)
    logits = step(
        "FULLY_CONNECTED",
        (flat, kernel, bias),
        tensor((1, 10), "logits", scales=(0.03,)),
        "FullyConnectedOptions",
    )
    share = tensor((1, 10), "share", scales=(1 / 256,), zero=-128)
    result = step("SOFTMAX", (logits,), share, "SoftmaxOptions", beta=1.0)
    if floats:
        real = tensor((1, 10), "probabilities", scales=(), dtype="float32")
        result = step("DEQUANTIZE", (share,), real)
    return tflite_network(tensors, steps, [source], [result])
