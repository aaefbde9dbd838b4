"""Bilinear resizes: upwards and downwards, about pixel centres, corners or first pixels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tvm import relax

from accelsim.legalize.bilinear import exact_interpolation, tflite_interpolation
from accelsim.ops.case import Case, Pair, Spec
from accelsim.ops.edges import TWO_VALUES, rounded, square_beyond
from accelsim.ops.modules import Builder
from accelsim.ops.moves import ONE_PIXEL, MoveSpec, make_move, quantized_of, scale_edges
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.torch_kernels import exact_output
from accelsim.ops.values import MATRIX_ERROR, choice, drawn
from accelsim.spec.config import Config

op = relax.op
functional = torch.nn.functional
MODES = ("half_pixel", "align_corners", "asymmetric")
TIE = 2.0**-8  # output steps within which float32 may take the other side of a tie
MOST_TOTAL, MOST_PHASES = 4080, 1024  # of weights on the NPU


@dataclass(frozen=True, slots=True)
class ResizeSpec(MoveSpec):
    """A map brought to (height, width) `outputs`."""

    outputs: Pair = (10, 12)
    mode: str = "half_pixel"


def _total(spec: ResizeSpec) -> int:
    """Sum of the weights of an output; 0 where the NPU does not have them."""
    find = tflite_interpolation if spec.rounding == "tflite" else exact_interpolation
    total, phases = 1, 1
    for size, target in zip(spec.size, spec.outputs, strict=True):
        line = find(size, target, spec.mode)
        if isinstance(line, str):
            return 0
        total, phases = total * line.total, phases * len(np.unique(line.weight, axis=0))
    return total if total <= MOST_TOTAL and phases <= MOST_PHASES else 0


def _legal(spec: ResizeSpec) -> bool:
    """TVM has no aligned corners of one output, TFLite no change of scale."""
    sizes = len(spec.size) == 2 and len(spec.outputs) == 2
    if not sizes or spec.mode not in MODES or min(*spec.size, *spec.outputs) < 1:
        return False
    if spec.mode == "align_corners" and min(spec.outputs) == 1:
        return False
    kept = spec.ratio == 0 or spec.rounding != "tflite"
    return kept and _total(spec) > 0


def _edges(config: Config) -> tuple[Spec, ...]:
    lanes = config.lanes
    plain = ResizeSpec("plain", channels=lanes)
    corners = replace(plain, name="corners", mode="align_corners", outputs=(9, 11))
    first = replace(plain, name="first_pixels", mode="asymmetric")
    far = square_beyond(config.act_rows)
    half, twice = (far[0] // 2, far[1] // 2), (far[0] // 2 * 2, far[1] // 2 * 2)
    more = (
        replace(plain, name="one_channel", channels=1),
        replace(plain, name="lanes_minus_one", channels=lanes - 1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1),
        replace(plain, name="many_channels", channels=(config.par_rows // 2 + 1) * lanes),
        replace(plain, name="two_images", batch=2),
        replace(plain, name="one_pixel", size=(1, 1), outputs=(3, 40), few=ONE_PIXEL),
        replace(plain, name="one_row", size=(1, 9), outputs=(2, 27)),
        replace(plain, name="one_column", size=(9, 1), outputs=(18, 1)),
        replace(plain, name="four_times", size=(3, 4), outputs=(12, 16)),
        replace(plain, name="sixteen_times", size=(2, 3), outputs=(32, 48)),
        replace(plain, name="thirds", size=(4, 5), outputs=(12, 15)),
        replace(plain, name="halves_of_three", size=(4, 6), outputs=(6, 9)),
        replace(plain, name="seventh_to_tenth", size=(7, 7), outputs=(10, 10)),
        replace(plain, name="smaller", size=(9, 8), outputs=(6, 4)),
        replace(plain, name="far_smaller", size=(70, 66), outputs=(2, 2)),
        replace(plain, name="same_rows", size=(5, 4), outputs=(5, 8)),
        replace(plain, name="same_size", outputs=(5, 6)),
        replace(plain, name="one_output", size=(6, 7), outputs=(1, 3), channels=2 * lanes),
        replace(plain, name="beyond_activations", size=half, outputs=twice),
        replace(corners, name="corners_without_phase", size=(8, 8), outputs=(32, 24)),
        replace(corners, name="corners_smaller", size=(9, 8), outputs=(4, 5)),
        replace(corners, name="corners_low", zeros=(0, 0)),
        replace(first, name="first_smaller", size=(9, 8), outputs=(3, 6)),
        replace(first, name="first_odd", size=(4, 6), outputs=(6, 9), ratio=1.3),
        replace(plain, name="zero_points_low", zeros=(0, 0)),
        replace(plain, name="zero_points_high", zeros=(255, 255)),
        replace(plain, name="zero_points_odd", zeros=(77, 77)),
        replace(plain, name="zero_points_apart", zeros=(90, 160), ratio=0.8),
        replace(plain, name="ends_only", values="ends", few=TWO_VALUES),
        replace(plain, name="smallest_scale", input_scale=2.0**-20),
        replace(plain, name="largest_scale", input_scale=2.0**4),
    )
    shared = (plain, corners, first)
    others = ("plain", "corners", "first_pixels", "sixteen_times", "smaller", "zero_points_odd")
    rescaled = scale_edges(plain)
    return (
        *shared,
        *more,
        *(one for one in rescaled if one.name != "no_multiplier"),
        *rounded((*shared, *more), others),
        *rounded((*rescaled, *more), ("rescaled", "thirds"), ("onnxruntime",)),
        *rounded((plain, corners), ("plain", "corners"), ("fp32",)),
    )


def _draw(rng: np.random.Generator, config: Config) -> ResizeSpec:
    """Any sizes, and ratios of small numbers more often."""
    common = drawn(rng, config.lanes, 2)
    ratio = choice(rng, (0.0, 0.0, float(2.0 ** rng.uniform(-2, 2))))
    spec = ResizeSpec(**common, ratio=ratio, relu=bool(rng.integers(4) == 0))
    while True:
        size = tuple(int(one) for one in rng.integers(1, 13, 2))
        up, down = rng.integers(1, 5, 2), rng.integers(1, 4, 2)
        near = [max(1, int(s * u) // int(d)) for s, u, d in zip(size, up, down, strict=True)]
        outputs = near if rng.integers(2) else [int(one) for one in rng.integers(1, 25, 2)]
        found = replace(spec, size=size, outputs=(outputs[0], outputs[1]), mode=choice(rng, MODES))
        if _legal(found):
            return found


def _torch(case: Case, sources: list[Any]) -> Any:
    """About first pixels: aligned corners of a map with its last row and column once more.

    Of maps of one pixel PyTorch's quantized kernel mixes channels up: they are spread.
    """
    spec: Any = case.spec
    value, (rows, columns) = sources[0], spec.outputs
    if value.shape[2:] == (1, 1):
        return value.expand(*value.shape[:2], rows, columns)
    if spec.mode != "asymmetric":
        aligned = spec.mode == "align_corners"
        return functional.interpolate(
            value, size=spec.outputs, mode="bilinear", align_corners=aligned
        )
    value = torch.cat((value, value[:, :, -1:]), 2)
    value = torch.cat((value, value[:, :, :, -1:]), 3)
    size = (rows + 1, columns + 1)
    grown = functional.interpolate(value, size=size, mode="bilinear", align_corners=True)
    return grown[:, :, :rows, :columns]


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(
        op.image.resize2d(
            sources[0],
            spec.outputs,
            layout="NCHW",
            method="linear",
            coordinate_transformation_mode=spec.mode,
        )
    )


def _error(case: Case, sources: list[Any], result: Any) -> Any:
    """Both round coordinates, which are as large as the map, and four products."""
    spec: Any = case.spec
    terms = 4 * sum(spec.size) + 8
    return torch.full_like(result, float(sources[0].abs().max()) * terms * MATRIX_ERROR)


def _cause(case: Case, golden: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """A tie that float32 does not see: not where it holds weights, nor where there is no tie."""
    spec: Any = case.spec
    total, source = _total(spec), case.inputs[0]
    same = source.scale == case.scale and source.zero == case.zero
    if same and (total % 2 == 1 or total & (total - 1) == 0) and spec.mode != "asymmetric":
        return None
    limits = np.iinfo(case.dtype)
    steps = np.clip(exact_output(case) / float(case.scale) + case.zero, limits.min, limits.max)
    apart = golden != expected
    for values in (golden, expected):
        if np.any(np.abs(values.astype(np.float64) - steps)[apart] > 0.5 + TIE):
            return None
    return f"a tie within {TIE} output steps, which errors of float32 decide"


OPERATORS = (
    Operator(
        "resize_bilinear",
        Facts(
            types="int8 or uint8 activations, int32 sums",
            limits=(
                f"weights in multiples of 1/{MOST_TOTAL} or coarser, as multiples of 1/16 at "
                "factor 2",
                f"at most {MOST_PHASES} sets of weights",
                "TFLite's coordinates where they reduce to such weights, and its one scale",
            ),
            instructions=("load", "store", "dwconv", "drain"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("PyTorch qnnpack", "LiteRT"),
            notes=(
                "ties differ by one step where float32 does not hold weights or scales: errors of "
                "PyTorch's and ONNX Runtime's sums decide them; ONNX Runtime's Resize of integers "
                "drops fractions, its Resize between DequantizeLinear and QuantizeLinear rounds"
            ),
        ),
        _edges,
        _draw,
        make_move,
        relax=_relax,
        torch=_torch,
        quantized=quantized_of(_torch),
        error=_error,
        steps=1,
        cause=_cause,
        legal=_legal,
        spec=ResizeSpec,
    ),
)
