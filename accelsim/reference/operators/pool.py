"""Maximum and mean over windows: `relax.nn.max_pool2d`, `avg_pool2d`, `adaptive_avg_pool2d`, and
`relax.mean` over height and width.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.reference.derive import checked, ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.multipliers import mean_scaling
from accelsim.reference.network import Padding, Pair, Shape
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.rescale import clamp_values
from accelsim.reference.scaling import divided
from accelsim.reference.site import Site, same_levels

op = relax.op


@dataclass(frozen=True, slots=True)
class Pool:
    """Maximum, mean over the full window with padding as real zero, or average of what is inside.

    Where the last windows hang over the edge (ceil mode), `overhang` rows and columns below and to
    the right are part of `padding`. An average divides the sum of stored integers by the number of
    elements inside the input, ties away from zero, as TFLite's AVERAGE_POOL does.
    """

    kind: str  # "max", "mean" or "average"
    kernel: Pair
    stride: Pair
    padding: Padding
    overhang: Pair = (0, 0)


def recognise(island: Island) -> Claim | None:
    """One pooling operator on a source."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator not in _READERS:
        return None
    source = node.operands[0]
    if not isinstance(source, Source) or len(source.shape) != 4:
        return None
    core = _READERS[node.operator](node, source.shape)
    core = core and _exact(core, node, same_levels(source.tensor, island.output), island.rounding)
    if core is None:
        return None
    shape = node.shape if len(node.shape) == 4 else (*node.shape, 1, 1)
    name = "max_pool2d" if core.kind == "max" else "avg_pool2d"
    return Claim(name, core, (source,), shape, island.ending.limits)


def _exact(core: Pool, node: Node, same: bool, rounding: str) -> Pool | None:
    """The pool as the rounding defines it, or None where it does not."""
    if core.kind == "max":
        return core if same else None
    included = not any(core.padding) or bool(node.attrs.count_include_pad)
    if rounding == "tflite" and node.operator != "relax.mean":
        counted = not any(core.padding) or not included
        return replace(core, kind="average") if same and counted else None
    # Of a mean, windows that hang over the edge and counts that vary are not defined.
    return core if included and not any(core.overhang) else None


def _windows(node: Node, source: Shape) -> Pool | None:
    attrs, output = node.attrs, node.shape
    kind = "max" if node.operator.endswith("max_pool2d") else "mean"
    top, left, bottom, right = (int(value) for value in attrs.padding)
    kernel, stride, dilation = (_pair(v) for v in (attrs.pool_size, attrs.strides, attrs.dilation))
    padded = (source[2] + top + bottom, source[3] + left + right)
    if str(attrs.layout) != "NCHW" or dilation != (1, 1):
        return None
    below, behind = (
        max(0, (output[2 + i] - 1) * stride[i] + kernel[i] - padded[i]) for i in (0, 1)
    )
    return Pool(kind, kernel, stride, (top, left, bottom + below, right + behind), (below, behind))


def _adaptive(node: Node, source: Shape) -> Pool | None:
    output = node.shape
    if str(node.attrs.layout) != "NCHW" or source[2] % output[2] or source[3] % output[3]:
        return None
    kernel = (source[2] // output[2], source[3] // output[3])
    return Pool("mean", kernel, kernel, (0, 0, 0, 0))


def _mean(node: Node, source: Shape) -> Pool | None:
    if {int(axis) % 4 for axis in node.attrs.axis or range(4)} != {2, 3}:
        return None
    return Pool("mean", (source[2], source[3]), (1, 1), (0, 0, 0, 0))


def _pair(values: Any) -> Pair:
    first, second = (int(value) for value in values)
    return (first, second)


_READERS: Mapping[str, Callable[[Node, Shape], Pool | None]] = {
    "relax.nn.max_pool2d": _windows,
    "relax.nn.avg_pool2d": _windows,
    "relax.nn.adaptive_avg_pool2d": _adaptive,
    "relax.mean": _mean,
}


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the compiled function depends on beyond shapes."""

    kernel: Pair
    stride: Pair
    padding: Padding
    mode: str = ""


def kernel(site: Site) -> Kernel:
    """A maximum in the input's levels, or the sum over a window, requantized."""
    core: Pool = site.layer.core
    if core.kind == "max":
        geometry = Geometry(core.kernel, core.stride, core.padding)
        return Kernel(_emit_max, clamp_values(site), geometry)
    if core.kind == "average":
        return _average_kernel(site, core)
    count = core.kernel[0] * core.kernel[1]
    scales = (site.inputs[0].scale, site.output.scale)
    scaling = checked(site, mean_scaling(site.rounding, *scales, count))
    values: dict[str, np.ndarray] = {
        "input_zero_point": np.array(site.inputs[0].zero_point, np.int16),
        "ones": np.ones((1, 1, *core.kernel), np.int16),
        "bias": np.zeros(1, np.int32),
        **scaling.values(),
        **ends_of(site),
    }
    return Kernel(
        _emit_mean, values, Geometry(core.kernel, core.stride, core.padding, scaling.mode)
    )


def _average_kernel(site: Site, core: Pool) -> Kernel:
    """Of stored integers, whose zero point does not count."""
    offset = site.inputs[0].offset
    rows, columns = (
        _inside(
            site.layer.core_shapes[0][2 + axis], site.layer.core_output_shape[2 + axis], core, axis
        )
        for axis in (0, 1)
    )
    values: dict[str, np.ndarray] = {
        "input_zero_point": np.array(-offset, np.int16),
        "ones": np.ones((1, 1, *core.kernel), np.int16),
        "counts": np.outer(rows, columns).astype(np.int32),
        **ends_of(site),
        "zero_point": np.array(-offset, np.int32),
    }
    return Kernel(_emit_average, values, Geometry(core.kernel, core.stride, core.padding))


def _inside(extent: int, windows: int, core: Pool, axis: int) -> np.ndarray:
    """Elements of an axis that each of its windows covers."""
    starts = np.arange(windows) * core.stride[axis] - core.padding[axis]
    ends = np.minimum(starts + core.kernel[axis], extent)
    return np.asarray(ends - np.maximum(starts, 0))


def _emit_average(emit: Emitter, x: list[Any], p: Values) -> Any:
    def body(t: Any, i: Any) -> Any:
        total, counts, zero_point, low, high = t
        return finished(divided(total[i], counts[i[2], i[3]]), zero_point, low, high)

    ends = (p[name] for name in ("counts", "zero_point", "low", "high"))
    return emit.compute(emit.shapes.core_output, body, _summed(emit, x, p), *ends)


def _emit_mean(emit: Emitter, x: list[Any], p: Values) -> Any:
    return emit.requantized(_summed(emit, x, p), p, emit.geometry.mode)


def _summed(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Sum over the window as a convolution with ones: padding adds nothing."""
    n, c, h, w = emit.shapes.core[0]
    geometry: Geometry = emit.geometry
    folded = emit(op.reshape(emit.centred(x[0], p["input_zero_point"]), (n * c, 1, h, w)))
    total = emit(
        op.nn.conv2d(
            folded,
            p["ones"],
            strides=list(geometry.stride),
            padding=list(geometry.padding),
            out_dtype="int32",
        )
    )
    return emit(op.reshape(total, emit.shapes.core_output))


def _emit_max(emit: Emitter, x: list[Any], p: Values) -> Any:
    geometry: Geometry = emit.geometry
    largest = op.nn.max_pool2d(
        emit.load(x[0]),
        pool_size=list(geometry.kernel),
        strides=list(geometry.stride),
        padding=list(geometry.padding),
    )
    return emit.clamped(emit(largest), p)


def _torch_covers(site: Site) -> bool:
    """PyTorch pads alike on both sides, and keeps the levels."""
    core: Pool = site.layer.core
    top, left, bottom, right = core.padding
    even = (top, left) == (bottom - core.overhang[0], right - core.overhang[1])
    known = core.kind == "max" or site.rounding in ("fp32", "qnnpack")
    return even and known and site.same_levels


def _torch_run(site: Site, operands: list[Any]) -> Any:
    core: Pool = site.layer.core
    functions = torch.nn.functional
    pool: Any = functions.max_pool2d if core.kind == "max" else functions.avg_pool2d
    ceil = any(core.overhang)
    return pool(operands[0], core.kernel, core.stride, core.padding[:2], ceil_mode=ceil)


OPERATOR = Operator("pool", recognise, kernel, TorchKernel(_torch_covers, _torch_run))
