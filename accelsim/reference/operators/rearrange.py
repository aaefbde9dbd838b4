"""Elements of one or several activations in other places: pad, concat, slice, split, transpose,
shuffles, tiles, flips and nearest-neighbour resizes, in any order.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.

Every source is first brought to the output's levels, then TVM's own operators move int8 in the
model's layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax, te

from accelsim.reference.derive import ends_of
from accelsim.reference.flow import RESHAPES, Claim, Island, Node, Source, Weight
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.multipliers import quotient_scaling
from accelsim.reference.network import QuantizedTensor
from accelsim.reference.operators import Operator
from accelsim.reference.scaling import MODES
from accelsim.reference.site import Site, same_levels

op = relax.op
_ONE = np.float32(1)
_IMAGES = ("NCHW", "NHWC")
_NAMES = {
    "relax.permute_dims": "transpose",
    "relax.strided_slice": "slice",
    "relax.take": "slice",
    "TupleGetItem": "split",
    "relax.stack": "concat",
    "relax.repeat": "tile",
    "relax.broadcast_to": "tile",
    "relax.image.resize2d": "resize_nearest",
}


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """The operators, from the last one back to the sources."""

    root: Node
    sources: tuple[Source, ...]


def recognise(island: Island) -> Claim | None:
    """Operators that move elements, all the way back to sources and constants."""
    root = island.ending.value
    if not isinstance(root, Node) or root.operator in RESHAPES or not _moves(root):
        return None
    sources: dict[Source, None] = {}
    _collect(root, sources)
    if not sources:
        return None
    name = _NAMES.get(root.operator, root.operator.removeprefix("relax.").removeprefix("nn."))
    core = Rearrangement(root, tuple(sources))
    return Claim(name, core, core.sources, root.shape, island.ending.limits)


def _moves(value: Any) -> bool:
    """Whether a value is made of sources and constants by moving elements."""
    if isinstance(value, tuple):
        return all(_moves(one) for one in value)
    if not isinstance(value, Node):
        return isinstance(value, Source | Weight | np.ndarray)
    if value.operator == "TupleGetItem":
        split = value.operands[0]
        return isinstance(split, Node) and split.operator == "relax.split" and _moves(split)
    nearest = value.operator != "relax.image.resize2d" or (
        str(value.attrs.method) == "nearest_neighbor" and str(value.attrs.layout) in _IMAGES
    )
    known = value.operator in _EMIT and nearest
    return known and all(_moves(one) for one in value.operands)


def _collect(value: Any, found: dict[Source, None]) -> None:
    if isinstance(value, Source):
        found.setdefault(value)
    elif isinstance(value, tuple):
        for one in value:
            _collect(one, found)
    elif isinstance(value, Node):
        _collect(value.operands, found)


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a function depends on: the operators, the steps of a source, and levels of constants."""

    core: Rearrangement
    steps: tuple[str, ...]  # of each source: "same", "product", "quotient", "tflite" or "table"
    level: Callable[[Any], np.ndarray]


def kernel(site: Site) -> Kernel:
    """Sources in the output's levels, moved and clamped."""
    values: dict[str, np.ndarray] = {}
    steps = []
    joins = site.layer.core.root.operator == "relax.concat"
    for side, source in enumerate(site.inputs):
        if same_levels(source, site.output):
            steps.append("same")
            continue
        if site.rounding == "tflite" and source.stored == "uint8" and joins:
            values[f"table_{side}"] = _joined(source, site.output)
            steps.append("table")
            continue
        values[f"source_{side}"] = np.array(source.zero_point, np.int32)
        if site.rounding == "tflite":
            scaling = quotient_scaling(source.scale, site.output.scale, False)
            values |= {f"{name}_{side}": value for name, value in scaling.values().items()}
            steps.append("tflite")
            continue
        divides = site.rounding == "onnxruntime"
        values[f"scale_{side}"] = np.array(source.scale, np.float32)
        last = site.output.scale if divides else _ONE / site.output.scale
        values[f"last_{side}"] = np.array(last, np.float32)
        steps.append("quotient" if divides else "product")
    ends = ends_of(site)

    def level(real: Any) -> np.ndarray:
        scaled = np.asarray(real, np.float32) * (_ONE / site.output.scale)
        whole = np.rint(scaled) + np.float32(site.output.zero_point)
        return np.asarray(np.clip(whole, ends["low"], ends["high"]), np.int8)

    geometry = Geometry(site.layer.core, tuple(steps), level)
    return Kernel(_emit, {**values, **ends}, geometry)


def _joined(source: QuantizedTensor, output: QuantizedTensor) -> np.ndarray:
    """TFLite's CONCATENATION of uint8: steps of all 256 stored values, before the zero point.

    It rounds q·m - z·m half away from zero, m being source scale · (1 / output scale) in float32.
    """
    factor = source.scale * (_ONE / output.scale)
    offset = np.float32(-(source.zero_point + source.offset)) * factor
    real = np.arange(256).astype(np.float32) * factor + offset
    whole = np.trunc(real.astype(np.float64) + np.copysign(0.5, real))
    return np.asarray(whole, np.int32)


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    geometry: Geometry = emit.geometry
    found = {
        source: _in_steps(emit, x[side], side, p, geometry.steps[side])
        for side, source in enumerate(geometry.core.sources)
    }
    moved: dict[int, Any] = {}

    def value(one: Any) -> Any:
        if isinstance(one, Source):
            return found[one]
        if isinstance(one, Node):
            if id(one) not in moved:
                moved[id(one)] = emit(_applied(emit, one, value, geometry.level))
            return moved[id(one)]
        return relax.const(geometry.level(_real(one)), "int8")

    return emit.clamped(value(geometry.core.root), p)


def _in_steps(emit: Emitter, value: Any, side: int, p: Values, steps: str) -> Any:
    """A source as int8 at the output's levels, in the shape in which it is used."""
    if steps == "same":
        return emit.load(value, side)
    shape = emit.shapes.core[side]
    if steps == "table":

        def looked_up(t: Any, i: Any) -> Any:
            stored, table, zero_point, low, high = t
            level = table[stored[i].astype("int32") + 128].astype("int64")
            return finished(level, zero_point, low, high)

        ends = (p["zero_point"], p["low"], p["high"])
        return emit.compute(shape, looked_up, emit.load(value, side), p[f"table_{side}"], *ends)
    centred = emit.centred(value, p[f"source_{side}"], side, "int32")
    ends = (p["zero_point"], p["low"], p["high"])
    if steps == "tflite":

        def scaled(t: Any, i: Any) -> Any:
            total, zero_point, low, high, mantissa, shift = t
            return finished(MODES["tflite"](total[i], mantissa[0], shift[0]), zero_point, low, high)

        words = (p[f"{name}_{side}"] for name in ("multiplier", "shift"))
        return emit.compute(shape, scaled, centred, *ends, *words)
    real = emit.compute(
        shape, lambda t, i: t[0][i].astype("float32") * t[1][()], centred, p[f"scale_{side}"]
    )

    def rounded(t: Any, i: Any) -> Any:
        product, zero_point, low, high, last = t
        level = product[i] / last[()] if steps == "quotient" else product[i] * last[()]
        return finished(te.nearbyint(level), zero_point, low, high)

    return emit.compute(shape, rounded, real, *ends, p[f"last_{side}"])


def _real(constant: Any) -> np.ndarray:
    """A constant operand as float32."""
    if not isinstance(constant, Weight):
        return np.asarray(constant, np.float32)
    centred = constant.values.astype(np.float32) - constant.zero_point.astype(np.float32)
    return np.asarray(centred * constant.scale, np.float32)


def _applied(
    emit: Emitter, node: Node, value: Callable[[Any], Any], level: Callable[[Any], np.ndarray]
) -> Any:
    """The operator on int8 in place of floats."""
    if node.operator == "TupleGetItem":
        return relax.TupleGetItem(value(node.operands[0]), int(node.operands[1]))
    first = node.operands[0]
    data = [value(one) for one in first] if isinstance(first, tuple) else value(first)
    if node.operator == "relax.nn.pad":
        width = [int(one) for one in node.attrs.pad_width]
        filled = float(level(float(node.attrs.pad_value)))
        return op.nn.pad(data, width, str(node.attrs.pad_mode), filled)
    if node.operator == "relax.nn.pixel_shuffle":
        return _shuffled(emit, data, node)
    return _EMIT[node.operator](data, node)


def _shuffled(emit: Emitter, data: Any, node: Node) -> Any:
    """Element (c·r² + i·r + j, y, x) goes to (c, y·r + i, x·r + j); TVM has no code for it."""
    n, c, height, width = node.shape
    r = int(node.attrs.upscale_factor)
    parts = emit(op.reshape(data, (n, c, r, r, height // r, width // r)))
    return op.reshape(emit(op.permute_dims(parts, [0, 1, 4, 2, 5, 3])), node.shape)


def _whole(values: Any) -> list[int]:
    return [int(one) for one in values]


def _slice(data: Any, node: Node) -> Any:
    axes, *ranges = (_whole(operand) for operand in node.operands[1:])
    return op.strided_slice(data, axes, *ranges)


def _split(data: Any, node: Node) -> Any:
    sections = node.attrs.indices_or_sections
    parts = int(sections) if not hasattr(sections, "__len__") else _whole(sections)
    return op.split(data, parts, int(node.attrs.axis))


def _permuted(data: Any, node: Node) -> Any:
    axes = node.attrs.axes
    return op.permute_dims(data, None if axes is None else _whole(axes))


def _resized(data: Any, node: Node) -> Any:
    attrs = node.attrs
    layout = str(attrs.layout)
    return op.image.resize2d(
        data,
        (node.shape[layout.index("H")], node.shape[layout.index("W")]),
        layout=layout,
        method="nearest_neighbor",
        coordinate_transformation_mode=str(attrs.coordinate_transformation_mode),
        rounding_method=str(attrs.rounding_method),
    )


def _axis(node: Node) -> int | None:
    return None if node.attrs.axis is None else int(node.attrs.axis)


def _taken(data: Any, node: Node) -> Any:
    indices: Any = node.operands[1]
    return op.take(data, relax.const(indices, "int64"), _axis(node), mode="clip")


_EMIT: Mapping[str, Callable[[Any, Node], Any]] = {
    **dict.fromkeys(RESHAPES, lambda data, node: op.reshape(data, node.shape)),
    "relax.permute_dims": _permuted,
    "relax.strided_slice": _slice,
    "relax.split": _split,
    "relax.concat": lambda data, node: op.concat(data, _axis(node)),
    "relax.stack": lambda data, node: op.stack(data, _axis(node) or 0),
    "relax.nn.pad": lambda data, node: data,  # see `_applied`
    "relax.tile": lambda data, node: op.tile(data, _whole(node.attrs.repeats)),
    "relax.repeat": lambda data, node: op.repeat(data, int(node.attrs.repeats), _axis(node)),
    "relax.flip": lambda data, node: op.flip(data, int(node.attrs.axis)),
    "relax.broadcast_to": lambda data, node: op.broadcast_to(data, node.shape),
    "relax.take": _taken,
    "relax.nn.pixel_shuffle": lambda data, node: data,  # see `_applied`
    "relax.image.resize2d": _resized,
}

OPERATOR = Operator("rearrange", recognise, kernel, tensor_ranks=frozenset(range(1, 9)))
