"""Bilinear resizes of images: `relax.image.resize2d` by the method "linear".

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.

Along an axis every output is a row of a matrix of whole weights times the inputs, so that the
layer is two matrix products of integers and one division by the product of both sums of weights.
Of tensors of equal levels PyTorch and TFLite mix the stored integers, whose zero point does not
count; ONNX Runtime mixes real numbers, and so does PyTorch where levels change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tvm import te

from accelsim.artifacts import I32
from accelsim.quantize.layouts import image_layout
from accelsim.reference.derive import checked, ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values
from accelsim.reference.multipliers import mean_scaling
from accelsim.reference.network import Pair, Shape
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.scaling import Scaling
from accelsim.reference.site import Site, same_levels

MOST_TOTAL = 4080  # sum of the weights of an output
MOST_PHASES = 1024  # different sets of weights
NEAR = 0.5 + 2.0**-10  # output steps from the real result to its integer, at most
_OF_PYTORCH = "pytorch_half_pixel"
_MODES = ("half_pixel", _OF_PYTORCH, "align_corners", "asymmetric")


@dataclass(frozen=True, slots=True, eq=False)
class Bilinear:
    """Weights (outputs, inputs) of rows and columns; every row of a matrix has one sum."""

    rows: I32
    columns: I32
    axes: Pair  # of rows and columns
    align_corners: bool
    pixel_centres: bool

    @property
    def total(self) -> int:
        """What a sum of weighted inputs is divided by."""
        return int(self.rows[0].sum()) * int(self.columns[0].sum())


def recognise(island: Island) -> Claim | None:
    """A linear resize of one activation, with weights and levels that the NPU has."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator != "relax.image.resize2d":
        return None
    source, attrs = node.operands[0], node.attrs
    layout = image_layout(attrs)
    if str(attrs.method) != "linear" or layout not in ("nchw", "nhwc"):
        return None
    if not isinstance(source, Source) or source.shape != source.tensor.shape:
        return None
    channels = {source.tensor.axis, island.output.axis}
    if channels != {layout.index("c")} or island.output.shape != node.shape:
        return None
    tflite = island.rounding == "tflite"
    if tflite and not same_levels(source.tensor, island.output):
        return None
    mode = str(attrs.coordinate_transformation_mode)
    unit = 1024 if tflite else 0
    axes = (layout.index("h"), layout.index("w"))
    rows, columns = (_matrix(source.shape[axis], node.shape[axis], mode, unit) for axis in axes)
    if rows is None or columns is None:
        return None
    core = Bilinear(rows, columns, axes, mode == "align_corners", mode.endswith("half_pixel"))
    if core.total > MOST_TOTAL or _phases(rows) * _phases(columns) > MOST_PHASES:
        return None
    return Claim("resize_bilinear", core, (source,), node.shape, island.ending.limits)


def _phases(matrix: I32) -> int:
    """How many different pairs of weights an axis has."""
    return len({tuple(row[row > 0].tolist()) for row in matrix})


def _matrix(size: int, target: int, mode: str, unit: int) -> I32 | None:
    """Whole weights (target, size) of an axis; None for coordinates that are not known.

    Places are whole numbers of 1 / `unit`; where it is 0, of a fraction that makes them exact.
    """
    if mode not in _MODES or (unit and mode == _OF_PYTORCH):
        return None
    index = np.arange(target, dtype=np.int64)
    centres = mode == "half_pixel" or (mode == _OF_PYTORCH and target > 1)
    whole, parts = (size - 1, target - 1) if mode == "align_corners" else (size, target)
    if parts == 0:
        whole, parts = size, target  # one output, at the corner
    if unit:
        step = (2 * unit * whole + parts) // (2 * parts)
        places = index * step + (step // 2 - unit // 2 if centres else 0)
        if places[-1] >= size * unit:
            return None
    else:
        unit = 2 * parts
        places = 2 * index * whole + (whole - parts if centres else 0)
    places = np.clip(places, 0, (size - 1) * unit)
    weights = np.zeros((target, size), np.int64)
    weights[index, places // unit] = unit - places % unit
    behind = places % unit > 0
    weights[index[behind], places[behind] // unit + 1] = places[behind] % unit
    return np.asarray(weights // np.gcd.reduce(weights, axis=None), np.int32)


def kernel(site: Site) -> Kernel:
    """Two products with whole weights, then one division or scaling."""
    core: Bilinear = site.layer.core
    source = site.inputs[0]
    values: dict[str, np.ndarray] = {"rows": core.rows, "columns": core.columns, **ends_of(site)}
    values["input_zero_point"] = np.array(source.zero_point, np.int16)
    if _of_stored(site):
        values["input_zero_point"] = np.array(-source.offset, np.int16)
        values["zero_point"] = np.array(-source.offset, np.int32)
    values["bias"] = np.zeros(1, np.int32)
    scaling = _scaling(site, core.total)
    return Kernel(_emit, {**values, **scaling.values()}, (scaling.mode, core.axes))


def _of_stored(site: Site) -> bool:
    """Whether the stored integers are mixed, and rounded without regard to the zero point."""
    return site.same_levels and site.rounding != "onnxruntime"


def _scaling(site: Site, total: int) -> Scaling:
    """TFLite's total is a power of two, 2^p, which 2^30 · 2^(1 - p - 31) divides by."""
    if site.rounding == "tflite":
        shift = 2 - total.bit_length()
        return Scaling("half_away", np.array([1 << 30], np.int32), np.array([shift], np.int32))
    return checked(
        site, mean_scaling(site.rounding, site.inputs[0].scale, site.output.scale, total)
    )


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    mode, axes = emit.geometry
    value = emit.centred(x[0], p["input_zero_point"])
    shape = list(emit.shapes.core[0])
    for axis, name in zip(axes, ("rows", "columns"), strict=True):
        shape[axis] = emit.shapes.core_output[axis]
        value = emit.builder.emit_te(_along(axis, tuple(shape)), value, p[name])
    return emit.requantized(value, p, mode)


def _along(axis: int, shape: Shape) -> Callable[[Any, Any], Any]:
    """The product with a matrix along an axis, in int32; `shape` is the result's."""

    def nest(data: Any, weight: Any) -> Any:
        place = te.reduce_axis((0, int(weight.shape[1])), name="place")

        def element(*index: Any) -> Any:
            at = [place if k == axis else one for k, one in enumerate(index)]
            return te.sum(data(*at).astype("int32") * weight(index[axis], place), axis=[place])

        return te.compute(shape, element)

    return nest


def _torch_covers(site: Site) -> bool:
    core: Bilinear = site.layer.core
    known = (core.align_corners or core.pixel_centres) and core.axes == (2, 3) and _trusted(site)
    return known and site.same_levels and site.rounding in ("fp32", "qnnpack")


def _trusted(site: Site) -> bool:
    """PyTorch's quantized kernel mixes up channels of maps of one pixel."""
    core: Bilinear = site.layer.core
    return (core.rows.shape[1], core.columns.shape[1]) != (1, 1)


def _torch_run(site: Site, operands: list[Any]) -> Any:
    core: Bilinear = site.layer.core
    size = (core.rows.shape[0], core.columns.shape[0])
    resize: Any = torch.nn.functional.interpolate
    return resize(operands[0], size=size, mode="bilinear", align_corners=core.align_corners)


def _distance(site: Site) -> float | None:
    """PyTorch's kernel sums in float32, whose error decides ties unless weights are exact in it."""
    total: int = site.layer.core.total
    exact = total % 2 == 1 or total & (total - 1) == 0
    return None if _torch_covers(site) and exact else NEAR


OPERATOR = Operator(
    "resize",
    recognise,
    kernel,
    TorchKernel(_torch_covers, _torch_run),
    distance=_distance,
    trusted=_trusted,
    tensor_ranks=frozenset({4}),
)
