"""One of ONNX's node tests as data, and what its readers share.

What comes in: arrays and attributes. What goes out: shapes and windows. It must not know operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I8, Layer, LayerOp, Region, Shape4, Tensor
from accelsim.peers.case import OutOfScopeError, Trial, kind_of, shape4, symbol

Array = NDArray[Any]
Pair = tuple[int, int]
Sides = tuple[int, int, int, int]
STEP = 255  # between windows of 8 bits: neighbours share a value, so that all are told apart


@dataclass(frozen=True, slots=True)
class NodeTest:
    """A node's inputs by position, its outputs and attributes."""

    operator: str
    inputs: Sequence[Array | None]
    outputs: Sequence[Array]
    attributes: Mapping[str, Any]

    def array(self, index: int) -> Array:
        """An input that the operator demands."""
        value = self.inputs[index]
        assert value is not None
        return value

    def optional(self, index: int) -> Array | None:
        """An input that may be absent."""
        return self.inputs[index] if index < len(self.inputs) else None


@dataclass(frozen=True, slots=True)
class Window:
    """Kernel, stride, padding and dilation of a two-dimensional operator."""

    kernel: Pair
    stride: Pair
    padding: Sides
    dilation: Pair


def four_axes(shape: Sequence[int]) -> Shape4:
    """A shape as four lengths, with leading ones."""
    if len(shape) > 4:
        raise OutOfScopeError("the NPU's tensors have four axes")
    if 0 in shape:
        raise OutOfScopeError("a tensor is empty")
    a, b, c, d = (*[1] * (4 - len(shape)), *(int(length) for length in shape))
    return a, b, c, d


def image(values: Array) -> Array:
    """(n, c, h, w) or (n, c, w) → (n, h, w, c)."""
    if values.ndim == 3:
        values = values[:, :, None]
    if values.ndim != 4:
        raise OutOfScopeError("the NPU's windows have two axes")
    return np.ascontiguousarray(values.transpose(0, 2, 3, 1))


def window(test: NodeTest, kernel: Sequence[int], size: Sequence[int]) -> Window:
    """A node's window on an image of `size` (h, w); those of one axis get a row."""
    rank = len(kernel)
    if rank > 2:
        raise OutOfScopeError("the NPU's windows have two axes")
    get = test.attributes.get
    stride, dilation = (list(get(key, [1] * rank)) for key in ("strides", "dilations"))
    before, after = _pads(test, list(kernel), list(size)[-rank:], stride, dilation)
    more = [1] * (2 - rank)
    none = [0] * (2 - rank)
    (k, m), (s, t), (d, e) = ([*more, *values] for values in (list(kernel), stride, dilation))
    (top, left), (bottom, right) = [*none, *before], [*none, *after]
    return Window((k, m), (s, t), (top, left, bottom, right), (d, e))


def _pads(
    test: NodeTest, kernel: list[int], size: list[int], stride: list[int], dilation: list[int]
) -> tuple[list[int], list[int]]:
    """Padding before and after each axis; `auto_pad` and `ceil_mode` follow the output's size."""
    rank = len(kernel)
    mode = test.attributes.get("auto_pad", b"NOTSET").decode()
    pads = list(test.attributes.get("pads", [0] * 2 * rank))
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        spans = zip(size, kernel, stride, dilation, strict=True)
        total = [max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n) for n, k, s, d in spans]
        small, large = [n // 2 for n in total], [n - n // 2 for n in total]
        return (small, large) if mode == "SAME_UPPER" else (large, small)
    return pads[:rank], pads[rank:]


def overhang(size: Pair, out: Pair, w: Window) -> Window:
    """The window with as much padding behind as its outputs need, as in ceil mode."""
    sides = list(w.padding)
    for axis in range(2):
        reach = (out[axis] - 1) * w.stride[axis] + (w.kernel[axis] - 1) * w.dilation[axis] + 1
        sides[2 + axis] = max(sides[2 + axis], reach - size[axis] - sides[axis])
    return Window(w.kernel, w.stride, (sides[0], sides[1], sides[2], sides[3]), w.dilation)


def parallel(
    sources: Sequence[Mapping[str, I8]], layers: Sequence[tuple[LayerOp, str, I8]]
) -> Trial:
    """Layers beside one another: each reads one group of sources, and has a golden.

    `layers`: operator, prefix of the names of the sources that it reads, golden.
    """
    inputs = {name: values for group in sources for name, values in group.items()}
    tensors = {name: Tensor(name, shape4(values), 0, 1.0) for name, values in inputs.items()}
    made, expected = [], {}
    for number, (op, prefix, golden) in enumerate(layers):
        name = f"y{number}"
        read = tuple(source for source in inputs if source.startswith(prefix))
        tensors[name] = Tensor(name, shape4(golden), 0, 1.0)
        made.append(Layer(name, kind_of(op), (name,), read, name, op))
        expected[name] = golden
    region = Region(symbol("node"), tensors, tuple(inputs), tuple(expected), tuple(made))
    return Trial(region, inputs, expected)


def whole(values: Array) -> Array:
    """Whole numbers as int64; OutOfScopeError for others."""
    numbers = values.astype(np.int64) if np.isfinite(values).all() else np.zeros(1, np.int64)
    if not np.array_equal(numbers.astype(np.float64), values.astype(np.float64)):
        raise OutOfScopeError("its real numbers have no scale with which 8 bits hold them")
    return numbers


def fitting(values: Array) -> tuple[I8, int]:
    """Whole numbers within one range of 8 bits as (int8, zero point)."""
    numbers = whole(values)
    low, high = int(numbers.min()), int(numbers.max())
    if low >= -128 and high <= 127:
        return numbers.astype(np.int8), 0
    if low >= 0 and high <= 255:
        return (numbers - 128).astype(np.int8), -128
    raise OutOfScopeError("its whole numbers do not fit into 8 bits")
