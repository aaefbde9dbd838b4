"""Maximum, mean and sum over windows: `relax.nn.max_pool1d`, `max_pool2d`, `avg_pool1d`,
`avg_pool2d`, `adaptive_avg_pool1d`, `adaptive_avg_pool2d`, and `relax.mean`, `sum` and `max` over
height and width.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax, te

from accelsim.quantize.layouts import nhwc_order, nhwc_shape
from accelsim.reference.derive import checked, ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.multipliers import mean_scaling, product_scaling
from accelsim.reference.network import Padding, Pair, Shape
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.scaling import MODES, Scaling, divided
from accelsim.reference.site import Site, same_levels
from accelsim.reference.windows import (
    READERS,
    REDUCTIONS,
    Pool,
    bounds_of,
    counts_of,
    outputs_of,
)

op = relax.op
NEAR = 0.5 + 2.0**-10  # output steps from a sum's real result to its integer, at most


def recognise(island: Island) -> Claim | None:
    """One pooling operator on a source, whose result lies as its windows do."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator not in READERS:
        return None
    source = node.operands[0]
    if not isinstance(source, Source) or source.shape != source.tensor.shape:
        return None
    core = READERS[node.operator](node, source.tensor)
    core = core and _exact(core, node, same_levels(source.tensor, island.output), island.rounding)
    if core is None:
        return None
    n, _, _, c = source.tensor.layout
    rows, columns = outputs_of(core, source.tensor)
    if island.output.layout != (n, rows, columns, c):
        return None
    name = "max_pool2d" if core.kind == "max" else "avg_pool2d"
    return Claim(name, core, (source,), island.output.shape, island.ending.limits)


def _exact(core: Pool, node: Node, same: bool, rounding: str) -> Pool | None:
    """The pool as the rounding defines it, or None where it does not."""
    if core.kind == "max":
        return core if same else None
    if node.operator in REDUCTIONS:
        return core
    if core.dilation != (1, 1):
        return None
    included = core.adaptive is None and (
        not any(core.padding) or bool(node.attrs.count_include_pad)
    )
    if rounding == "tflite":
        counted = not any(core.padding) or not included
        return replace(core, kind="average") if same and counted else None
    # Frameworks differ in whether a window's part beyond the padding counts.
    return replace(core, inside=not included) if not included or not any(core.overhang) else None


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the compiled function depends on beyond shapes."""

    kernel: Pair
    stride: Pair
    padding: Padding
    dilation: Pair
    outputs: Pair
    mode: str = ""
    adaptive: bool = False


def kernel(site: Site) -> Kernel:
    """A maximum in the input's levels, or the sum over a window, requantized."""
    core: Pool = site.layer.core
    outputs = outputs_of(core, site.inputs[0])
    adaptive = core.adaptive is not None
    windows = (core.kernel, core.stride, core.padding, core.dilation)
    geometry = Geometry(*windows, outputs, adaptive=adaptive)
    if core.kind == "max":
        limits = {name: ends_of(site)[name].astype(np.int8) for name in ("low", "high")}
        return Kernel(_emit_max, limits, geometry)
    values: dict[str, np.ndarray] = {
        "input_zero_point": np.array(site.inputs[0].zero_point, np.int16),
        "ones": np.ones((1, 1, *core.kernel), np.int16),
        **ends_of(site),
    }
    if core.kind == "average":  # of stored integers, whose zero point does not count
        offset = site.inputs[0].offset
        values["input_zero_point"] = np.array(-offset, np.int16)
        values["zero_point"] = np.array(-offset, np.int32)
        return Kernel(
            _emit_average, {**values, "counts": counts_of(core, site.inputs[0])}, geometry
        )
    scaling = checked(site, _scaling(site, core))
    return Kernel(_emit_sum, {**values, **scaling.values()}, replace(geometry, mode=scaling.mode))


def _scaling(site: Site, core: Pool) -> Scaling:
    """One for all windows, or of shape (rows, columns) where the number inside counts."""
    source, output = site.inputs[0].scale, site.output.scale
    if core.kind == "sum":
        return product_scaling(site.rounding, source, np.ones(1, np.float32), output)
    full = core.kernel[0] * core.kernel[1]
    if not core.inside:
        return mean_scaling(site.rounding, source, output, full)
    counts = counts_of(core, site.inputs[0])
    found = {
        number: mean_scaling(site.rounding, source, output, number)
        for number in set(counts.flatten().tolist())
    }
    multipliers = [found[number].multiplier[0] for number in counts.flatten().tolist()]
    return Scaling("fp32", np.array(multipliers, np.float32).reshape(counts.shape))


def _emit_average(emit: Emitter, x: list[Any], p: Values) -> Any:
    def body(t: Any, i: Any) -> Any:
        total, counts, zero_point, low, high = t
        return finished(divided(total[i], counts[i[2], i[3]]), zero_point, low, high)

    ends = (p[name] for name in ("counts", "zero_point", "low", "high"))
    return _logical(emit, emit.compute(_view(emit, True), body, _summed(emit, x, p), *ends))


def _emit_sum(emit: Emitter, x: list[Any], p: Values) -> Any:
    mode = emit.geometry.mode

    def body(t: Any, i: Any) -> Any:
        total, zero_point, low, high, *scaling = t

        def of_window(one: Any) -> Any:
            return one[i[2], i[3]] if len(one.shape) == 2 else one[0]

        scaled = MODES[mode](total[i], *map(of_window, scaling))
        return finished(scaled, zero_point, low, high)

    names = ("zero_point", "low", "high", *Scaling.names(mode))
    ends = (p[name] for name in names)
    return _logical(emit, emit.compute(_view(emit, True), body, _summed(emit, x, p), *ends))


def _summed(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Sum over the window as a convolution with ones: padding adds nothing."""
    n, c, h, w = _view(emit, False)
    geometry: Geometry = emit.geometry
    centred = emit.compute(
        (n, c, h, w),
        lambda t, i: t[0][i[0], i[2], i[3], i[1]].astype("int16") - t[1][()],
        x[0],
        p["input_zero_point"],
    )
    if geometry.adaptive:
        return _summed_adaptively(emit, centred)
    total = emit(
        op.nn.conv2d(
            emit(op.reshape(centred, (n * c, 1, h, w))),
            p["ones"],
            strides=list(geometry.stride),
            padding=list(geometry.padding),
            out_dtype="int32",
        )
    )
    return emit(op.reshape(total, _view(emit, True)))


def _summed_adaptively(emit: Emitter, centred: Any) -> Any:
    """Sums over windows from floor(i·I/O) to ceil((i+1)·I/O), axis by axis."""
    n, c, *sizes = _view(emit, False)
    outputs = emit.geometry.outputs
    bounds = [bounds_of(size, out) for size, out in zip(sizes, outputs, strict=True)]
    longest = [int(np.diff(one, axis=0).max()) for one in bounds]

    def nest(values: Any) -> Any:
        taps = [te.reduce_axis((0, longest[i]), name=f"tap{i}") for i in (0, 1)]

        def element(image: Any, channel: Any, *places: Any) -> Any:
            at = [te.floordiv(places[i] * sizes[i], outputs[i]) + taps[i] for i in (0, 1)]
            ends = [
                te.floordiv((places[i] + 1) * sizes[i] + outputs[i] - 1, outputs[i]) for i in (0, 1)
            ]
            inside = te.all(*(at[i] < ends[i] for i in (0, 1)))
            value = values(image, channel, *at).astype("int32")
            return te.sum(te.if_then_else(inside, value, te.const(0, "int32")), axis=taps)

        return te.compute((n, c, *outputs), element)

    return emit.builder.emit_te(nest, centred)


def _emit_max(emit: Emitter, x: list[Any], p: Values) -> Any:
    geometry: Geometry = emit.geometry
    largest = emit(
        op.nn.max_pool2d(
            emit(op.permute_dims(x[0], [0, 3, 1, 2])),
            pool_size=list(geometry.kernel),
            strides=list(geometry.stride),
            padding=list(geometry.padding),
            dilation=list(geometry.dilation),
        )
    )
    limited = emit.compute(
        _view(emit, True),
        lambda t, i: te.min(te.max(t[0][i], t[1][()]), t[2][()]).astype("int8"),
        largest,
        p["low"],
        p["high"],
    )
    return _logical(emit, limited)


def _view(emit: Emitter, of_output: bool) -> Shape:
    """(n, c, h, w) of the input or the output."""
    n, h, w, c = emit.shapes.inputs[0]
    rows, columns = emit.geometry.outputs if of_output else (h, w)
    return (n, c, rows, columns)


def _logical(emit: Emitter, value: Any) -> Any:
    """(n, c, h, w) in the model's own shape of the output."""
    shape, axis = emit.shapes.output, emit.shapes.axis
    order = nhwc_order(len(shape), axis)
    turned = emit(op.permute_dims(value, [0, 2, 3, 1]))
    assert tuple(int(extent) for extent in turned.ty.shape) == nhwc_shape(shape, axis)
    stored = emit(op.reshape(turned, [shape[index] for index in order]))
    return emit(op.permute_dims(stored, [order.index(i) for i in range(len(order))]))


def _torch_covers(site: Site) -> bool:
    """PyTorch pads alike on both sides, keeps the levels, and divides by the whole window.

    qnnpack's dilated windows read beyond the padding.
    """
    core: Pool = site.layer.core
    top, left, bottom, right = core.padding
    even = (top, left) == (bottom - core.overhang[0], right - core.overhang[1])
    mean = core.kind == "mean" and not core.inside and site.rounding in ("fp32", "qnnpack")
    known = mean or (core.kind == "max" and core.kernel != (1, 1) and core.dilation == (1, 1))
    plain = even and core.adaptive is None and site.inputs[0].axis == 1
    return plain and known and site.same_levels


def _torch_run(site: Site, operands: list[Any]) -> Any:
    core: Pool = site.layer.core
    functions = torch.nn.functional
    pool: Any = functions.max_pool2d if core.kind == "max" else functions.avg_pool2d
    ceil = any(core.overhang)
    value = operands[0].unsqueeze(2) if operands[0].dim() == 3 else operands[0]
    return pool(value, core.kernel, core.stride, core.padding[:2], ceil_mode=ceil)


def _trusted(site: Site) -> bool:
    """qnnpack counts padding always, and its dilated windows read beyond it."""
    core: Pool = site.layer.core
    return not core.inside and (core.dilation == (1, 1) or not any(core.padding))


def _distance(site: Site) -> float | None:
    """Of sums that PyTorch rounds elsewhere than qnnpack's averages, a mean over one axis too."""
    core: Pool = site.layer.core
    _, height, width, _ = site.layer.input_shapes[0]
    exact = _torch_covers(site) and core.kernel not in ((height, 1), (1, width))
    return None if core.kind == "max" or exact else NEAR


OPERATOR = Operator(
    "pool",
    recognise,
    kernel,
    TorchKernel(_torch_covers, _torch_run),
    distance=_distance,
    trusted=_trusted,
    tensor_ranks=frozenset({2, 3, 4}),
)
