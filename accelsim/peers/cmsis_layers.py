"""CMSIS-NN's cases of one kernel as layers of ours.

What comes in: the names of a case. What goes out: `Kernel`s, whose requantization is double
rounding with the case's own mantissas and shifts. Which kernel a case is follows from its macros.
NHWC; convolution weights are (out, h, w, in), depthwise ones (h, w, out). An offset of inputs and
weights is minus a zero point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import (
    I8,
    I32,
    Add,
    Assemble,
    Binary,
    ConvTranspose2d,
    LayerOp,
    MatMul,
    Pool2d,
    Requantize,
    Shape4,
    Softmax,
    TfliteAdd,
    Transpose,
)
from accelsim.peers.case import UnreadableError
from accelsim.peers.exponential import softmax_words
from accelsim.peers.headers import LARGEST, Names
from accelsim.peers.shapes import (
    Pair,
    average,
    convolution,
    covered,
    identity,
    integer_scale,
    piece,
    sides,
    with_bias,
)
from accelsim.spec.arithmetic import TFLITE_ADD_SHIFT

INPUTS = ("input", "input_tensor")
OUTPUTS = ("output_ref", "output")


@dataclass(frozen=True, slots=True)
class Kernel:
    """Layers of one kernel, one after another, with the shape of each one's output."""

    inputs: tuple[Shape4, ...]
    ops: tuple[tuple[LayerOp, Shape4], ...]


def limits(names: Names) -> Pair:
    """Clamp limits of the output."""
    low = names.number("OUT_ACTIVATION_MIN", "ACTIVATION_MIN", default=-128)
    return low, names.number("OUT_ACTIVATION_MAX", "ACTIVATION_MAX", default=127)


def requantize(names: Names) -> Requantize:
    """By channel where the case has arrays, else by its macros."""
    zero = names.number("OUTPUT_OFFSET")
    if "output_mult" in names.arrays or "output_multiplier" in names.arrays:
        mantissas = names.array("output_mult", "output_multiplier")
        shifts = names.array("output_shift")
    else:
        mantissas = np.array([names.number("OUTPUT_MULTIPLIER", "OUTPUT_MULT")])
        shifts = np.array([names.number("OUTPUT_SHIFT")])
    return integer_scale("tflite", mantissas, shifts, zero, limits(names))


def bias(names: Names) -> I32 | None:
    """The bias, or None where the case has none."""
    found = [names.arrays[key] for key in ("biases", "bias") if key in names.arrays]
    return found[0].astype(np.int32) if found else None


def weights(names: Names, shape: tuple[int, ...]) -> I8:
    """The weights in a shape, of which one length may be -1."""
    values = names.array("weights")
    known = -int(np.prod(shape)) if -1 in shape else values.size
    fits = values.size % known == 0 if -1 in shape else values.size == np.prod(shape)
    if values.dtype != np.int8 or values.size == 0 or not fits:
        raise UnreadableError(
            f"{names.where}: weights of {values.dtype} with {values.size} values are not {shape}"
        )
    return values.astype(np.int8).reshape(shape)


def image(names: Names) -> Shape4:
    """Shape of the input image."""
    n = names.number("INPUT_BATCHES", "BATCH_SIZE", "INPUT_N", default=1)
    h, w = names.number("INPUT_H"), names.number("INPUT_W")
    return n, h, w, names.number("IN_CH", "INPUT_C")


def pair(names: Names, row: tuple[str, ...], col: tuple[str, ...], default: int | None) -> Pair:
    """Two macros: of rows, of columns."""
    return names.number(*row, default=default), names.number(*col, default=default)


def window(names: Names) -> tuple[Pair, Pair, Pair, Pair, Pair]:
    """Kernel, stride, padding before, dilation and output size, rows first."""
    return (
        pair(names, ("FILTER_Y", "FILTER_H"), ("FILTER_X", "FILTER_W"), None),
        pair(names, ("STRIDE_Y", "STRIDE_H"), ("STRIDE_X", "STRIDE_W"), None),
        pair(names, ("PAD_Y", "PAD_H", "PADDING_H"), ("PAD_X", "PAD_W", "PADDING_W"), 0),
        pair(names, ("DILATION_Y", "DILATION_H"), ("DILATION_X", "DILATION_W"), 1),
        pair(names, ("OUTPUT_H",), ("OUTPUT_W",), None),
    )


def conv(names: Names, depthwise: bool = False) -> Kernel:
    """Convolution with groups, or depthwise with a channel multiplier."""
    source = image(names)
    kernel, stride, before, dilation, out = window(names)
    channels = names.number("OUT_CH")
    if depthwise:
        weight = weights(names, (*kernel, channels, 1)).transpose(2, 0, 1, 3)
    else:
        weight = weights(names, (channels, *kernel, -1))
    padding = sides(source[1:3], out, kernel, stride, dilation, before)
    zeros = (-names.number("INPUT_OFFSET"), 0)
    geometry = (stride, padding, dilation)
    weight = np.ascontiguousarray(weight)
    each = weight.shape[3]
    if source[3] % each or channels % (source[3] // each):
        key = next(key for key in ("IN_CH", "INPUT_C") if names.has(key))
        what = f"{source[3]}, the weights have {each} input and {channels} output channels"
        raise names.wrong(key, what)
    op = convolution(weight, bias(names), zeros, requantize(names), source[3], geometry)
    return Kernel((source,), ((op, (source[0], *out, channels)),))


def depthwise_conv(names: Names) -> Kernel:
    """Depthwise convolution."""
    return conv(names, depthwise=True)


def conv_transpose(names: Names) -> Kernel:
    """Transposed convolution."""
    source = image(names)
    kernel, stride, before, dilation, out = window(names)
    channels = names.number("OUT_CH")
    weight = weights(names, (channels, *kernel, source[3]))
    op = ConvTranspose2d(
        weight,
        with_bias(bias(names), channels),
        -names.number("INPUT_OFFSET"),
        0,
        requantize(names),
        stride,
        before,
        dilation,
    )
    return Kernel((source,), ((op, (source[0], *out, channels)),))


def fully_connected(names: Names) -> Kernel:
    """Linear layer. Its bias, if it has one, tells the number of outputs."""
    biases = bias(names)
    channels = names.number("OUT_CH") if biases is None else biases.size
    weight = weights(names, (channels, 1, 1, -1))
    batches = names.number("INPUT_BATCHES", "BATCH_SIZE", default=1)
    zeros = (-names.number("INPUT_OFFSET"), -names.number("FILTER_OFFSET", default=0))
    depth = weight.shape[3]
    op = convolution(weight, biases, zeros, requantize(names), depth)
    return Kernel(((batches, 1, 1, depth),), ((op, (batches, 1, 1, channels)),))


def average_pool(names: Names) -> Kernel:
    """Average over what lies inside the input."""
    source = image(names)
    kernel, stride, before, dilation, out = window(names)
    padding = sides(source[1:3], out, kernel, stride, dilation, before)
    for axis, key in enumerate(("OUTPUT_H", "OUTPUT_W")):
        geometry = (source[1 + axis], out[axis], kernel[axis], stride[axis], before[axis])
        if 0 in covered(*geometry):
            raise names.wrong(key, f"{out[axis]}, and a window lies outside the input")
    op = average(kernel, stride, padding, source[1:3], out, limits(names))
    return Kernel((source,), ((op, (source[0], *out, source[3])),))


def max_pool(names: Names) -> Kernel:
    """Maximum over a window."""
    source = image(names)
    kernel, stride, before, dilation, out = window(names)
    padding = sides(source[1:3], out, kernel, stride, dilation, before)
    op = Pool2d("max", kernel, stride, padding, 0, None, *limits(names))
    return Kernel((source,), ((op, (source[0], *out, source[3])),))


def softmax(names: Names) -> Kernel:
    """Softmax of rows."""
    rows, size = names.number("NUM_ROWS"), names.number("ROW_SIZE")
    mantissa = names.number("INPUT_MULT", "MULT")
    shift = names.number("INPUT_LEFT_SHIFT", "SHIFT")
    table = softmax_words(mantissa, shift, names.number("DIFF_MIN"))
    shape = (1, 1, rows, size)
    return Kernel((shape,), ((Softmax(table), shape),))


def add(names: Names) -> Kernel:
    """Addition of two scales."""
    if names.number("LEFT_SHIFT") != TFLITE_ADD_SHIFT:
        raise UnreadableError(f"{names.where}: LEFT_SHIFT is not {TFLITE_ADD_SHIFT}")
    words = TfliteAdd(
        *(names.number(f"{one}_MULT") for one in ("INPUT1", "INPUT2", "OUTPUT")),
        *(names.number(f"{one}_SHIFT") for one in ("INPUT1", "INPUT2", "OUTPUT")),
    )
    one = np.float32(1)
    zeros = (-names.number("INPUT1_OFFSET"), -names.number("INPUT2_OFFSET"))
    ends = (names.number("OUTPUT_OFFSET"), *limits(names))
    op = Add(*zeros, one, one, one, *ends, tflite=words)
    shape = (1, 1, 1, names.array("input1").size)
    return Kernel((shape, shape), ((op, shape),))


def multiply(names: Names) -> Kernel:
    """Elementwise product."""
    zeros = (-names.number("INPUT1_OFFSET"), -names.number("INPUT2_OFFSET"))
    op = Binary("multiply", *zeros, requantize(names))
    shape = (1, 1, 1, names.array("input1").size)
    return Kernel((shape, shape), ((op, shape),))


def extremum(names: Names) -> Kernel:
    """Minimum or maximum of two tensors, of any axis of which one may be 1."""
    kind = names.macros["LAYER_TYPE"].strip('"').lower()
    if kind not in ("minimum", "maximum"):
        raise UnreadableError(f"{names.where}: LAYER_TYPE is {kind}, expected minimum or maximum")
    shapes = [
        tuple(names.number(f"{axis}_{i}") for axis in ("BATCH", "HEIGHT", "WIDTH", "CHANNEL"))
        for i in (1, 2)
    ]
    (n, h, w, c), (n2, h2, w2, c2) = shapes
    out = (max(n, n2), max(h, h2), max(w, w2), max(c, c2))
    return Kernel(((n, h, w, c), (n2, h2, w2, c2)), ((Binary(kind, 0, 0, identity()), out),))


def pad(names: Names) -> Kernel:
    """Padding with a value on every axis."""
    source = tuple(names.number(f"INPUT_{axis}") for axis in "NHWC")
    before = [names.number(f"PRE_PAD_{axis}", default=0) for axis in "NHWC"]
    after = [names.number(f"POST_PAD_{axis}", default=0) for axis in "NHWC"]
    n, h, w, c = (s + b + a for s, b, a in zip(source, before, after, strict=True))
    shape = (source[0], source[1], source[2], source[3])
    offset = (before[0], before[1], before[2], before[3])
    op = Assemble((piece(0, shape, offset),), names.number("PAD_VALUE"))
    return Kernel((shape,), ((op, (n, h, w, c)),))


def transpose(names: Names) -> Kernel:
    """Transposition of up to four axes."""
    axes = names.numbers("PERM")
    lengths = names.numbers("IN_DIM")[: len(axes)]
    if sorted(axes) != list(range(len(axes))) or len(lengths) < len(axes) or len(axes) > 4:
        raise UnreadableError(f"{names.where}: PERM {axes} is no permutation of {lengths}")
    if not all(1 <= length <= LARGEST for length in lengths):
        raise names.wrong("IN_DIM", f"{lengths}, expected 1 to {LARGEST} each")
    more = 4 - len(axes)
    n, h, w, c = (*[1] * more, *lengths)
    a, b, d, e = (*range(more), *(axis + more for axis in axes))
    source = (n, h, w, c)
    return Kernel(
        (source,), ((Transpose((a, b, d, e)), (source[a], source[b], source[d], source[e])),)
    )


def batch_matmul(names: Names) -> Kernel:
    """Product of two activations, the second of which may lie transposed."""
    left, right = (
        tuple(names.number(f"{side}_{axis}") for axis in ("BATCH", "HEIGHT", "ROWS", "COLS"))
        for side in ("LHS", "RHS")
    )
    if names.number("ADJ_X"):  # the kernel is given what lies transposed
        left = (*left[:2], left[3], left[2])
    turned = bool(names.number("ADJ_Y"))
    columns = right[2] if turned else right[3]
    n, h = max(left[0], right[0]), max(left[1], right[1])
    zeros = (-names.number("LHS_OFFSET"), -names.number("RHS_OFFSET"))
    op = MatMul(*zeros, turned, requantize(names))
    a = (left[0], left[1], left[2], left[3])
    b = (right[0], right[1], right[2], right[3])
    return Kernel((a, b), ((op, (n, h, left[2], columns)),))
