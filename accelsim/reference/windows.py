"""Windows of pools and reductions, read from the QDQ graph.

What comes in: an operator with the tensor that it reads. What goes out: a `Pool`, how many windows
it has and what each covers. It must not know kernels nor roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.quantize.layouts import nhwc_shape
from accelsim.reference.flow import Node
from accelsim.reference.network import Padding, Pair, QuantizedTensor

_LETTERS = {(2, 1): "nc", (3, 1): "ncw", (3, 2): "nwc", (4, 1): "nchw", (4, 3): "nhwc"}
REDUCTIONS = {"relax.mean": "mean", "relax.sum": "sum", "relax.max": "max"}


@dataclass(frozen=True, slots=True)
class Pool:
    """Maximum, sum, mean or average over windows of the input as (n, c, h, w).

    A mean counts padding as real zero; with `inside` it is divided by the number of elements
    inside the input, which of an adaptive one is each window's own. An average divides the sum of
    stored integers by that number, ties away from zero, as TFLite's AVERAGE_POOL does. Where the
    last windows hang over the edge (ceil mode), `overhang` rows and columns below and to the right
    are part of `padding`.
    """

    kind: str
    kernel: Pair
    stride: Pair
    padding: Padding = (0, 0, 0, 0)
    overhang: Pair = (0, 0)
    inside: bool = False
    dilation: Pair = (1, 1)
    adaptive: Pair | None = None  # outputs, whose windows differ


def outputs_of(core: Pool, tensor: QuantizedTensor) -> Pair:
    """Windows along height and width."""
    if core.adaptive is not None:
        return core.adaptive
    _, height, width, _ = tensor.layout
    reach = [(core.kernel[i] - 1) * core.dilation[i] + 1 for i in (0, 1)]
    rows, columns = (
        (size + core.padding[i] + core.padding[2 + i] - reach[i]) // core.stride[i] + 1
        for i, size in enumerate((height, width))
    )
    return rows, columns


def counts_of(core: Pool, tensor: QuantizedTensor) -> np.ndarray:
    """Elements inside the input under each window, (rows, columns) int32, at least 1."""
    covered = []
    for axis, windows in enumerate(outputs_of(core, tensor)):
        extent = tensor.layout[1 + axis]
        if core.adaptive is not None:
            covered.append(np.diff(bounds_of(extent, windows), axis=0)[0])
            continue
        starts = np.arange(windows) * core.stride[axis] - core.padding[axis]
        ends = np.minimum(starts + core.kernel[axis], extent)
        covered.append(np.maximum(ends - np.maximum(starts, 0), 0))
    rows, columns = covered
    return np.asarray(np.maximum(np.outer(rows, columns), 1), np.int32)


def bounds_of(extent: int, windows: int) -> np.ndarray:
    """First elements of adaptive windows, and the ones after their last, (2, windows)."""
    index = np.arange(windows)
    return np.stack([index * extent // windows, ((index + 1) * extent + windows - 1) // windows])


def _letters(tensor: QuantizedTensor) -> str:
    return _LETTERS.get((len(tensor.shape), tensor.axis), "")


def _windows(node: Node, tensor: QuantizedTensor) -> Pool | None:
    attrs = node.attrs
    if str(attrs.layout).lower() != _letters(tensor):
        return None
    kernel, stride, dilation = (
        pair_of(values, 1) for values in (attrs.pool_size, attrs.strides, attrs.dilation)
    )
    reach = [(kernel[i] - 1) * dilation[i] + 1 for i in (0, 1)]
    numbers = [int(value) for value in attrs.padding]
    before, after = (
        pair_of(half, 0) for half in (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :])
    )
    outputs, sizes = nhwc_shape(node.shape, tensor.axis)[1:3], tensor.layout[1:3]
    below, behind = (
        max(0, (outputs[i] - 1) * stride[i] + reach[i] - sizes[i] - before[i] - after[i])
        for i in (0, 1)
    )
    padding = (*before, after[0] + below, after[1] + behind)
    kind = "max" if "max_pool" in node.operator else "mean"
    return Pool(kind, kernel, stride, padding, (below, behind), dilation=dilation)


def _adaptive(node: Node, tensor: QuantizedTensor) -> Pool | None:
    outputs, sizes = pair_of(node.shape[2:], 1), tensor.layout[1:3]
    if str(node.attrs.layout).lower() != _letters(tensor):
        return None
    if sizes[0] % outputs[0] or sizes[1] % outputs[1]:
        return Pool("mean", (1, 1), (1, 1), adaptive=outputs)
    kernel = (sizes[0] // outputs[0], sizes[1] // outputs[1])
    return Pool("mean", kernel, kernel)


def _reduction(node: Node, tensor: QuantizedTensor) -> Pool | None:
    letters, rank = _letters(tensor), len(tensor.shape)
    axes = range(rank) if node.attrs.axis is None else (int(a) % rank for a in node.attrs.axis)
    reduced = {letters[axis] for axis in axes} if letters else set()
    if not reduced or not reduced <= {"h", "w"}:
        return None
    _, height, width, _ = tensor.layout
    kernel = (height if "h" in reduced else 1, width if "w" in reduced else 1)
    return Pool(REDUCTIONS[node.operator], kernel, kernel)


def pair_of(values: Any, missing: int) -> Pair:
    """One or two numbers as those of height and width."""
    numbers = [int(value) for value in values]
    first, second = (missing, *numbers) if len(numbers) == 1 else numbers
    return first, second


READERS: Mapping[str, Callable[[Node, QuantizedTensor], Pool | None]] = {
    **{f"relax.nn.{kind}_pool{dims}d": _windows for kind in ("max", "avg") for dims in (1, 2)},
    **{f"relax.nn.adaptive_avg_pool{dims}d": _adaptive for dims in (1, 2)},
    **dict.fromkeys(REDUCTIONS, _reduction),
}
