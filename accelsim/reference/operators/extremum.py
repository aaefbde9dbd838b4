"""Minima over height and width, and maxima in other levels than their input's or over windows of
different sizes.

What comes in: an island, or a layer's site. What goes out: its claim and kernel. It must not know
other families.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax, te

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.operators import Operator
from accelsim.reference.rescale import clamp_values, rescale_values
from accelsim.reference.site import Site, same_levels
from accelsim.reference.windows import bounds_of

op = relax.op
_POOLS = {"relax.nn.max_pool1d": op.nn.max_pool1d, "relax.nn.max_pool2d": op.nn.max_pool2d}
_REDUCTIONS = {"relax.min": op.min, "relax.max": op.max}


@dataclass(frozen=True, slots=True)
class Steps:
    """Relax operators one after the other: ("relax.take", axis, indices), the last an extremum."""

    steps: tuple[tuple[Any, ...], ...]
    mode: str = ""


def recognise(island: Island) -> Claim | None:
    """An extremum that is no plain maximum pool."""
    node = island.ending.value
    if not isinstance(node, Node):
        return None
    found = _reduction(node) if node.operator in _REDUCTIONS else _pool(node)
    if found is None:
        return None
    source, steps = found
    same = same_levels(source.tensor, island.output)
    plain = len(steps) == 1 and steps[0][0] != "relax.min"
    if source.shape != source.tensor.shape or (same and plain):
        return None
    if island.rounding == "tflite" and not same:
        return None
    n, h, w, c = island.output.layout
    if (n, c) != (source.tensor.layout[0], source.tensor.layout[3]) or (n * h * w * c) != int(
        np.prod(node.shape)
    ):
        return None
    return Claim("extremum", Steps(steps), (source,), node.shape, island.ending.limits)


def _reduction(node: Node) -> tuple[Source, tuple[tuple[Any, ...], ...]] | None:
    source = node.operands[0]
    if not isinstance(source, Source) or not source.tensor.axis:
        return None
    rank = len(source.shape)
    given = node.attrs.axis
    axes = tuple(range(rank) if given is None else sorted(int(axis) % rank for axis in given))
    if not axes or set(axes) & {0, source.tensor.axis}:
        return None
    return source, ((node.operator, axes, bool(node.attrs.keepdims)),)


def _pool(node: Node) -> tuple[Source, tuple[tuple[Any, ...], ...]] | None:
    if node.operator not in _POOLS:
        return None
    attrs = node.attrs
    windows = tuple(
        tuple(int(one) for one in values)
        for values in (attrs.pool_size, attrs.strides, attrs.padding, attrs.dilation)
    )
    steps: list[tuple[Any, ...]] = [(node.operator, *windows, bool(attrs.ceil_mode))]
    value = node.operands[0]
    while isinstance(value, Node) and value.operator == "relax.take":
        indices = value.operands[1]
        if not isinstance(indices, np.ndarray):
            return None
        steps.insert(0, (value.operator, int(value.attrs.axis), tuple(indices.tolist())))
        value = value.operands[0]
    usual = str(attrs.layout) in ("NCHW", "NCW")
    if not isinstance(value, Source) or value.tensor.axis != 1 or not usual:
        return None
    takes = steps[:-1]
    if takes and not _adaptive(takes, windows, value.shape, node.shape):
        return None
    return value, tuple(steps)


def _adaptive(
    takes: list[tuple[Any, ...]],
    windows: tuple[tuple[int, ...], ...],
    before: tuple[int, ...],
    after: tuple[int, ...],
) -> bool:
    """Whether elements are repeated just so that adaptive windows have one size."""
    kernel, stride, padding, dilation = windows
    if kernel != stride or any(padding) or set(dilation) != {1} or len(takes) != len(kernel):
        return False
    for place, (_, axis, indices) in enumerate(takes):
        size, outputs = before[axis], after[axis]
        rows = np.reshape(indices, (outputs, kernel[place]))
        known = [set(range(a, b)) for a, b in bounds_of(size, outputs).T.tolist()]
        if axis != place + 2 or [set(row) for row in rows.tolist()] != known:
            return False
    return True


def kernel(site: Site) -> Kernel:
    """The extremum in the input's levels, clamped, or in the output's steps."""
    core: Steps = site.layer.core
    if site.same_levels:
        return Kernel(_emit, clamp_values(site), core)
    values = {
        **rescale_values(site),
        "output_scale": np.array(site.output.scale, np.float32),
        **ends_of(site),
    }
    mode = "quotient" if site.rounding == "onnxruntime" else "inverse"
    return Kernel(_emit, values, Steps(core.steps, mode))


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    geometry: Steps = emit.geometry
    value = emit.load(x[0])
    for name, *rest in geometry.steps:
        if name == "relax.take":
            indices = relax.const(np.array(rest[1], np.int64), "int64")
            value = emit(op.take(value, indices, rest[0], mode="fast"))
        elif name in _REDUCTIONS:
            value = emit(_REDUCTIONS[name](value, list(rest[0]), keepdims=rest[1]))
        else:
            size, stride, padding, dilation, ceil = rest
            value = emit(
                _POOLS[name](value, list(size), list(stride), list(padding), list(dilation), ceil)
            )
    if not geometry.mode:
        return emit.clamped(value, p)
    shape = emit.shapes.core_output
    product = emit.compute(
        shape,
        lambda t, i: (t[0][i].astype("int32") - t[1][()]).astype("float32") * t[2][()],
        value,
        p["zero_point_0"],
        p["scale_0"],
    )

    def body(t: Any, i: Any) -> Any:
        real, inverse, scale, zero_point, low, high = t
        steps = real[i] / scale[()] if geometry.mode == "quotient" else real[i] * inverse[()]
        return finished(te.nearbyint(steps), zero_point, low, high)

    ends = (p[name] for name in ("inverse", "output_scale", "zero_point", "low", "high"))
    return emit.compute(shape, body, product, *ends)


def _distance(site: Site) -> float | None:
    """None of a choice among levels; half a step and float32's roundings of another scale."""
    return None if site.same_levels else 0.5 + 2.0**-12


OPERATOR = Operator(
    "extremum", recognise, kernel, distance=_distance, tensor_ranks=frozenset({2, 3, 4})
)
