"""What a layer computes, in integers: one dataclass an operator.

Activations are int8 (n, h, w, c). Every operator ends as `Requantize` says, or states its own end.
Where two operands are broadcast, an axis of one of them is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelsim.artifacts.arrays import F32, I8, I32


@dataclass(frozen=True, slots=True)
class Requantize:
    """int32 → int8: clamp(scale(value) + zero_point). Modes: `accelsim.spec.arithmetic`.

    In mode `fp32` the multiplier is float32. In the integer modes (`tflite`, `half_up`,
    `half_even`, `half_away`) it is the int32 mantissa m of m·2^(shift-31).
    """

    multiplier: F32 | I32  # (channels,), positive
    zero_point: int
    clamp_min: int  # int8 domain, already includes ReLU and the exporter's clamp
    clamp_max: int
    mode: str = "fp32"
    shift: I32 | None = None  # (channels,), -32 to 31; of the integer modes only


@dataclass(frozen=True, slots=True)
class Conv2d:
    """Σ (x - input_zero_point)(w - weight_zero_point) + bias, then requantized.

    `depthwise` means groups == in_channels == out_channels and weight shape (c, kh, kw, 1).
    A linear layer is a convolution of a (n, 1, 1, k) tensor with a (m, 1, 1, k) weight.
    """

    weight: I8  # (out_channels, kernel_h, kernel_w, in_channels_per_group)
    bias: I32  # (out_channels,)
    input_zero_point: int
    weight_zero_point: int
    requantize: Requantize
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, left, bottom, right
    dilation: tuple[int, int] = (1, 1)
    depthwise: bool = False


@dataclass(frozen=True, slots=True)
class ConvTranspose2d:
    """Every input element adds (x - zx)(w - zw) to a window of outputs; + bias, requantized.

    Input (i, j) under tap (y, x) meets output (i·stride_h + y·dilation_h - top, …). The output's
    size is that of its tensor.
    """

    weight: I8  # (out_channels, kernel_h, kernel_w, in_channels), groups expanded
    bias: I32  # (out_channels,)
    input_zero_point: int
    weight_zero_point: int
    requantize: Requantize
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)  # top, left: outputs cut off before the first
    dilation: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True)
class MatMul:
    """Σ_k (a - za)(b - zb) of two activations, requantized with one multiplier.

    a is (n, h, rows, k), b is (n, h, k, columns), or (n, h, columns, k) with `transpose_b`; n and h
    are batches, and may be 1 in b. Of tensors with two axes, (rows, 1, 1, k), n counts rows; b may
    have two axes where a has more.
    """

    a_zero_point: int
    b_zero_point: int
    transpose_b: bool
    requantize: Requantize


@dataclass(frozen=True, slots=True)
class FixedAdd:
    """Parameters of the `fixed` mode of an addition, see `accelsim.spec.arithmetic.add_fixed`."""

    a_multiplier: int  # 0 to 2^22
    b_multiplier: int
    shift: int  # 0 to 31


@dataclass(frozen=True, slots=True)
class TfliteAdd:
    """Parameters of the `tflite` mode of an addition, see `accelsim.spec.arithmetic.add_tflite`."""

    a_mantissa: int
    b_mantissa: int
    mantissa: int
    a_shift: int
    b_shift: int
    shift: int


@dataclass(frozen=True, slots=True)
class Add:
    """rint(((a - za)·sa + (b - zb)·sb) · (1/so)) + zo, every operation rounded to float32.

    With `fixed`, round(((a - za)·ma + (b - zb)·mb) / 2^shift) + zo instead, ties away from zero;
    with `tflite`, three double-rounding requantizations. No arithmetic uses the scales then. With
    `subtract` the second product is subtracted.
    """

    a_zero_point: int
    b_zero_point: int
    a_scale: np.float32
    b_scale: np.float32
    inverse_output_scale: np.float32
    zero_point: int
    clamp_min: int
    clamp_max: int
    fixed: FixedAdd | None = None
    tflite: TfliteAdd | None = None
    subtract: bool = False
    constant: I8 | None = None  # the second operand, (1, h, w, c) with 1 where it is broadcast
    b_scales: F32 | None = None  # (channels,) in place of b_scale


@dataclass(frozen=True, slots=True)
class Binary:
    """requantize(kind(a - za, b - zb)): the product, minimum or maximum of two tensors.

    An operand with a requantization of its own (one multiplier) is requantized to int8 first, and
    za or zb is the zero point after it: so minimum and maximum compare tensors of two scales.
    """

    kind: str  # "multiply", "minimum" or "maximum"
    a_zero_point: int
    b_zero_point: int
    requantize: Requantize
    constant: I8 | None = None  # as in `Add`
    a_requantize: Requantize | None = None  # of a - a_source_zero_point
    b_requantize: Requantize | None = None
    a_source_zero_point: int = 0
    b_source_zero_point: int = 0


@dataclass(frozen=True, slots=True)
class PRelu:
    """rint((max(x - z, 0)·s + min(x - z, 0)·t) · (1/so)) + zo in float32, t one a channel.

    t may have either sign, or be 0; with another sign than + somewhere, `inverse_output_scale` is
    at most 2^64, and its inverse is a scale too.
    """

    input_zero_point: int
    positive_scale: np.float32
    negative_scale: F32  # (channels,), of any sign
    inverse_output_scale: np.float32
    zero_point: int
    clamp_min: int
    clamp_max: int


@dataclass(frozen=True, slots=True)
class Pool2d:
    """`max` over a window, or `sum` of (x - input_zero_point) over it, requantized.

    Padding never wins a maximum and adds nothing to a sum. `requantize` is None for `max`, whose
    result is only clamped. With `by_count` a sum is requantized by the number of elements inside
    the input that its window covers. With `adaptive` the window of output i of O covers elements
    floor(i·I/O) to ceil((i+1)·I/O) of I, and `kernel` is the largest such window.
    """

    kind: str  # "max" or "sum"
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]
    input_zero_point: int
    requantize: Requantize | None
    clamp_min: int = -128
    clamp_max: int = 127
    by_count: tuple[tuple[int, Requantize], ...] = ()
    dilation: tuple[int, int] = (1, 1)  # of a maximum
    adaptive: bool = False


@dataclass(frozen=True, slots=True)
class Extremum:
    """table[e + 128] of the largest ("max") or smallest ("min") element e of each window.

    Padding never wins. With `adaptive` windows are those of `Pool2d`. The table changes levels and
    clamps; without either it is the identity.
    """

    kind: str
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]
    table: I8  # (256,)
    dilation: tuple[int, int] = (1, 1)
    adaptive: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """table[x + 128]."""

    table: I8  # (256,)


@dataclass(frozen=True, slots=True)
class Softmax:
    """TFLite's int8 softmax over channels; output scale 1/256, zero point -128.

    `table[d]` is exp(-d·scale·beta) in Q0.31 for d = max - x, see `spec.arithmetic.softmax`. With
    `levels` each result s becomes levels[s + 128]: the same share in other levels.

    With `masked` there is a second input, whose level 127 keeps an element; an element of another
    level, or one 255 levels below the largest that is kept, has no part. If none is kept, all are
    equal.
    """

    table: I32  # (256,)
    levels: I8 | None = None  # (256,)
    masked: bool = False


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Normalization over channels in integers, see `accelsim.spec.arithmetic.layer_norm`."""

    gain: I32  # (channels,), units 2^-gain_bits output steps a standard deviation
    offset: I32  # (channels,), units 2^-16 output steps
    gain_bits: int  # 0 to 24
    epsilon: int  # added to channels²·variance is epsilon · 2^epsilon_shift
    epsilon_shift: int  # 0 to 15
    zero_point: int
    clamp_min: int
    clamp_max: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Elements of one input and where they go: out[place] = changed(in[take]), axis by axis.

    `take` and `place` have one index array for each of n, h, w, c, of equal lengths by axis. A
    value is copied, or requantized, or looked up: table[x + 128].
    """

    input: int
    take: tuple[I32, I32, I32, I32]
    place: tuple[I32, I32, I32, I32]
    input_zero_point: int = 0
    requantize: Requantize | None = None  # one multiplier
    table: I8 | None = None  # (256,), in place of a requantization


# Shapes (n, h, w, c) in which an operator sees its input and its output where they are not those of
# the tensors: n·h·w and c are the same, so the bytes are.
Seen = tuple[tuple[int, int, int, int], tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True)
class Assemble:
    """A tensor put together from pieces of others: pad, concat, slice, shuffle, resize, …

    Pieces do not overlap; an element that none covers is `fill`. With `seen` there is one input.
    """

    pieces: tuple[Piece, ...]
    fill: int = 0
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Interpolation:
    """One axis: output i is Σ weight[i, k]·in[first[i] + k] over k = 0 and 1.

    Weights are not negative, and those of every output have one sum. Where the second one is 0,
    there need not be a second element.
    """

    first: I32  # (outputs,)
    weight: I32  # (outputs, 2)

    @property
    def total(self) -> int:
        """Sum of the weights of an output."""
        return int(self.weight[0].sum())


@dataclass(frozen=True, slots=True)
class Resize2d:
    """Σ wr·wc·(x - input_zero_point) over two rows and two columns, requantized once.

    The requantization divides by the sum of all weights, rows.total · columns.total.
    """

    rows: Interpolation
    columns: Interpolation
    input_zero_point: int
    requantize: Requantize


@dataclass(frozen=True, slots=True)
class Transpose:
    """out[i0, i1, i2, i3] = in[…] with axis k of the output being axis axes[k] of (n, h, w, c)."""

    axes: tuple[int, int, int, int]
    seen: Seen | None = None


LayerOp = (
    Conv2d
    | ConvTranspose2d
    | MatMul
    | Add
    | Binary
    | PRelu
    | Pool2d
    | Extremum
    | Lookup
    | Softmax
    | LayerNorm
    | Assemble
    | Resize2d
    | Transpose
)
