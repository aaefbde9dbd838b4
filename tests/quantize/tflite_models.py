"""Models of one TensorFlow Lite operator that the peers' random cases do not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.peers.litert_model import TfliteTensor, constant, tflite_model

SCALE = (0.05,)
IMAGE = (1, 6, 8, 5)


@dataclass(frozen=True, slots=True)
class Example:
    """A model, its inputs, and the Relax operator that the host runs, if any."""

    model: bytes
    inputs: tuple[np.ndarray, ...]
    host: str = ""


def tensor(
    shape: tuple[int, ...],
    scale: tuple[float, ...] = SCALE,
    zero: int = 3,
    dtype: str = "int8",
    values: Any = None,
) -> TfliteTensor:
    """An activation, or a constant where it has values."""
    return TfliteTensor(shape, scale, zero, dtype, values=values)


def integers(*shape: int, dtype: str = "int8") -> np.ndarray:
    """Random values over the whole range."""
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(len(shape) + sum(shape))
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def of_image(
    op: str,
    output: tuple[int, ...],
    *extra: Any,
    scale: tuple[float, ...] = SCALE,
    zero: int = 3,
    options: str = "",
    version: int = 1,
    host: str = "",
    source: TfliteTensor | None = None,
    **fields: Any,
) -> Callable[[], Example]:
    """An operator on one image."""

    def make() -> Example:
        first = source or tensor(IMAGE)
        target = tensor(output, scale, zero, first.dtype)
        data = tflite_model(op, [first, *extra], [target], options, version, **fields)
        return Example(data, (integers(*first.shape, dtype=first.dtype),), host)

    return make


def several(
    op: str,
    sources: list[Any],
    targets: list[Any],
    options: str = "",
    version: int = 1,
    host: str = "",
    **fields: Any,
) -> Callable[[], Example]:
    """An operator on several tensors, or with several outputs."""

    def make() -> Example:
        inputs = [one for one in sources if one is not None and one.values is None]
        data = tflite_model(op, sources, targets, options, version, **fields)
        return Example(data, tuple(integers(*one.shape, dtype=one.dtype) for one in inputs), host)

    return make


def connected(
    shape: tuple[int, ...], output: tuple[int, ...], keep: bool, host: str = ""
) -> Callable[[], Example]:
    """FULLY_CONNECTED of an input of any rank."""

    def make() -> Example:
        depth = 240 if output == (1, 7) and shape == IMAGE else shape[-1]
        weight = np.maximum(integers(7, depth), -127).astype(np.int8)
        bias = np.arange(-600, 800, 200).astype(np.int32)
        sources = [
            tensor(shape),
            tensor((7, depth), (0.01,), 0, values=weight),
            tensor((7,), (0.0005,), 0, "int32", bias),
        ]
        target = tensor(output, (0.2,), 5)
        data = tflite_model(
            "FULLY_CONNECTED", sources, [target], "FullyConnectedOptions", 5, keepNumDims=keep
        )
        return Example(data, (integers(*shape),), host)

    return make


def stored_convolution(zero: int, depthwise: bool = False) -> Callable[[], Example]:
    """A convolution of uint8 with weights of one scale and a zero point."""

    def make() -> Example:
        shape = (1, 3, 3, 10) if depthwise else (4, 3, 3, 5)
        outputs = 10 if depthwise else 4
        sources = [
            tensor(IMAGE, SCALE, 120, "uint8"),
            tensor(shape, (0.013,), zero, "uint8", integers(*shape, dtype="uint8")),
            tensor(
                (outputs,), (0.05 * 0.013,), 0, "int32", np.arange(outputs, dtype=np.int32) * 99
            ),
        ]
        target = tensor((1, 6, 8, outputs), (0.3,), 100, "uint8")
        fields = {"padding": 0, "strideH": 1, "strideW": 1, "fusedActivationFunction": 1}
        fields |= {"dilationHFactor": 1, "dilationWFactor": 1}
        if depthwise:
            fields["depthMultiplier"] = 2
        op = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
        options = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        data = tflite_model(op, sources, [target], options, 1, **fields)
        return Example(data, (integers(*IMAGE, dtype="uint8"),))

    return make


U = tensor(IMAGE, SCALE, 120, "uint8")
V = tensor(IMAGE, (0.03,), 90, "uint8")
OUT = (0.07,)
REDUCE, SLICE = "ReducerOptions", "StridedSliceOptions"
SLOPES = tensor(
    (1, 1, 1, 5), (0.01,), 0, values=np.array([1, 5, 20, 60, 127], np.int8).reshape(1, 1, 1, 5)
)

EXAMPLES: dict[str, Callable[[], Example]] = {
    "sum": of_image("SUM", (1, 5), constant([1, 2]), scale=(0.37,), options=REDUCE, version=2),
    "mean over channels": of_image(
        "MEAN", (1, 6, 8, 1), constant([3]), options=REDUCE, version=2, keepDims=True
    ),
    "reduce_min": of_image("REDUCE_MIN", (1, 5), constant([1, 2]), options=REDUCE, version=2),
    "abs": of_image("ABS", IMAGE),
    "prelu": of_image("PRELU", IMAGE, SLOPES),
    "prelu of another scale": of_image("PRELU", IMAGE, SLOPES, scale=(0.11,), host="prelu"),
    "log_softmax": of_image("LOG_SOFTMAX", IMAGE, scale=(16 / 256,), zero=127, host="log_softmax"),
    "squared_difference": several(
        "SQUARED_DIFFERENCE",
        [tensor(IMAGE, (1.0,), 0), tensor(IMAGE, (1.0,), 0)],
        [tensor(IMAGE, (1.0,), -128)],
        "SquaredDifferenceOptions",
        host="subtract",
    ),
    "relu_0_to_1": of_image("RELU_0_TO_1", IMAGE),
    "gelu of tanh": of_image("GELU", IMAGE, options="GeluOptions", approximate=True),
    "expand_dims": of_image("EXPAND_DIMS", (1, 6, 1, 8, 5), constant(2)),
    "squeeze": of_image("SQUEEZE", (6, 8, 5), options="SqueezeOptions", squeezeDims=[0]),
    "reshape": of_image("RESHAPE", (1, 240), constant([1, 240])),
    "slice": of_image("SLICE", (1, 3, 4, 2), constant([0, 1, 2, 3]), constant([1, 3, 4, -1])),
    "slice that leaves an axis out": of_image(
        "STRIDED_SLICE",
        (6, 4, 5),
        *map(constant, ([0, 0, 0, 0], [1, 6, 8, 5], [1, 1, 2, 1])),
        options=SLICE,
        version=2,
        shrinkAxisMask=1,
    ),
    "slice by masks": of_image(
        "STRIDED_SLICE",
        (1, 6, 3, 5),
        *map(constant, ([0, 3, -3, 0], [0, 2, 0, 0], [1, 1, 1, 1])),
        options=SLICE,
        version=2,
        beginMask=2,
        endMask=15,
    ),
    "tile": of_image("TILE", (1, 6, 16, 5), constant([1, 1, 2, 1])),
    "space_to_batch": of_image(
        "SPACE_TO_BATCH_ND", (4, 4, 5, 5), constant([2, 2]), constant([[1, 1], [0, 2]])
    ),
    "batch_to_space": of_image(
        "BATCH_TO_SPACE_ND",
        (1, 7, 10, 5),
        constant([2, 2]),
        constant([[1, 0], [0, 2]]),
        source=tensor((4, 4, 6, 5)),
    ),
    "split_v": several(
        "SPLIT_V",
        [tensor(IMAGE), constant([2, -1]), constant(3)],
        [tensor((1, 6, 8, 2)), tensor((1, 6, 8, 3))],
        "SplitVOptions",
        2,
        numSplits=2,
    ),
    "unpack": several(
        "UNPACK", [tensor((1, 2, 8, 5))], [tensor((1, 8, 5))] * 2, "UnpackOptions", 2, num=2, axis=1
    ),
    "pack": several(
        "PACK",
        [tensor((1, 8, 5))] * 2,
        [tensor((1, 2, 8, 5))],
        "PackOptions",
        2,
        axis=1,
        valuesCount=2,
    ),
    "rows of two axes": connected((3, 5), (3, 7), keep=False),
    "rows of three axes kept": connected((2, 3, 5), (2, 3, 7), keep=True),
    "rows of four axes kept": connected(IMAGE, (1, 6, 8, 7), keep=True),
    "rows of four axes joined": connected(IMAGE, (48, 7), keep=False, host="matmul"),
    "map flattened": connected(IMAGE, (1, 7), keep=False),
    "stored convolution": stored_convolution(131),
    "stored convolution at 0": stored_convolution(0),
    "stored depthwise": stored_convolution(131, depthwise=True),
    "stored add": several("ADD", [U, V], [tensor(IMAGE, OUT, 130, "uint8")], "AddOptions"),
    "stored subtract": several("SUB", [U, V], [tensor(IMAGE, OUT, 130, "uint8")], "SubOptions"),
    "stored multiply": several("MUL", [U, V], [tensor(IMAGE, OUT, 130, "uint8")], "MulOptions"),
    "stored concatenation": several(
        "CONCATENATION",
        [U, V],
        [tensor((1, 6, 8, 10), OUT, 130, "uint8")],
        "ConcatenationOptions",
        axis=3,
    ),
    "stored average": of_image(
        "AVERAGE_POOL_2D",
        (1, 3, 4, 5),
        zero=120,
        options="Pool2DOptions",
        source=U,
        strideH=2,
        strideW=2,
        filterHeight=3,
        filterWidth=3,
    ),
    "stored mean": of_image(
        "MEAN", (1, 5), constant([1, 2]), scale=(0.03,), zero=110, options=REDUCE, source=U
    ),
    "stored softmax": of_image(
        "SOFTMAX", IMAGE, scale=(1 / 256,), zero=0, options="SoftmaxOptions", source=U, beta=1.0
    ),
    "stored logistic": of_image("LOGISTIC", IMAGE, scale=(1 / 256,), zero=0, source=U),
    "stored hard_swish": of_image("HARD_SWISH", IMAGE, scale=(0.06,), zero=128, source=U),
    "stored pad": of_image(
        "PAD", (1, 8, 10, 5), constant([[0, 0], [1, 1], [2, 0], [0, 0]]), zero=120, source=U
    ),
    "stored to signed": several("QUANTIZE", [U], [tensor(IMAGE, SCALE, -8)], "QuantizeOptions"),
    "signed to stored": several(
        "QUANTIZE", [tensor(IMAGE)], [tensor(IMAGE, (0.03,), 100, "uint8")], "QuantizeOptions"
    ),
}


FLOATS: dict[str, Callable[[], Example]] = {
    "reduce_prod": of_image(
        "REDUCE_PROD", (1, 1, 8, 5), constant([1]), options=REDUCE, keepDims=True, host="prod"
    ),
    "l2_normalization": of_image(
        "L2_NORMALIZATION",
        IMAGE,
        scale=(1 / 128,),
        zero=0,
        options="L2NormOptions",
        host="multiply",
    ),
    "rsqrt below zero": of_image("RSQRT", IMAGE, host="rsqrt"),
    "sqrt below zero": of_image("SQRT", IMAGE, host="sqrt"),
    "div": several(
        "DIV", [tensor(IMAGE), tensor(IMAGE)], [tensor(IMAGE)], "DivOptions", host="divide"
    ),
    "pow": several(
        "POW", [tensor(IMAGE), tensor(IMAGE)], [tensor(IMAGE)], "PowOptions", host="power"
    ),
    **{
        name.lower(): of_image(name, IMAGE, host=host)
        for name, host in {
            "SQUARE": "square",
            "FLOOR": "floor",
            "CEIL": "ceil",
            "SIN": "sin",
            "COS": "cos",
        }.items()
    },
}
"""What the host computes in float32, and not in LiteRT's integers, if it has any."""
