"""Transposed convolution: every input adds its products to a window of outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Weight
from accelsim.ops.edges import rounded, square_beyond
from accelsim.ops.modules import Builder, constant
from accelsim.ops.operator import Operator
from accelsim.ops.operators.convolution import draw_conv
from accelsim.ops.torch_kernels import quantized_weight
from accelsim.ops.values import MATRIX_ERROR, activation, output_zero, weighted
from accelsim.ops.weights import GROUPS, ConvSpec, facts
from accelsim.spec.config import Config

op = relax.op


@dataclass(frozen=True, slots=True)
class TransposeSpec(ConvSpec):
    """A transposed convolution over one or two axes; `extra` is PyTorch's output padding."""


def transpose_edges(config: Config) -> tuple[TransposeSpec, ...]:
    """Windows of 3×3 at a distance of two, bent in one respect a case."""
    lanes = config.lanes
    plain = TransposeSpec(
        "plain",
        channels=lanes,
        outputs=lanes,
        size=(5, 6),
        kernel=(3, 3),
        stride=(2, 2),
        padding=(1, 1),
        extra=(1, 1),
    )
    line = replace(
        plain,
        name="one_axis",
        size=(9,),
        kernel=(4,),
        stride=(3,),
        padding=(1,),
        dilation=(1,),
        extra=(2,),
    )
    specs = (
        plain,
        replace(plain, name="one_pixel", size=(1, 1)),
        replace(plain, name="one_row", size=(1, 9)),
        replace(plain, name="one_channel", channels=1, outputs=1),
        replace(plain, name="lanes_minus_one", channels=lanes - 1, outputs=lanes - 1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1, outputs=lanes + 1),
        replace(plain, name="two_images", batch=2),
        replace(plain, name="no_stride", stride=(1, 1), extra=(0, 0)),
        replace(plain, name="gaps", kernel=(2, 1), stride=(3, 2), padding=(0, 0)),
        replace(plain, name="doubling", kernel=(2, 2), padding=(0, 0), extra=(0, 0)),
        replace(plain, name="dilation", dilation=(2, 3), stride=(3, 2)),
        replace(plain, name="groups", channels=12, outputs=6, groups=3),
        replace(plain, name="depthwise", channels=9, outputs=9, groups=9),
        replace(plain, name="largest_kernel", kernel=(16, 16), channels=3, stride=(4, 5)),
        replace(plain, name="beyond_activations", size=square_beyond(config.act_rows // 2)),
        replace(plain, name="zero_points_low", zeros=(0, 0)),
        replace(plain, name="zero_points_high", zeros=(255, 255)),
        replace(plain, name="weight_zero_point", weight_zero=-128, zeros=(128, 128)),
        replace(plain, name="per_channel", per_channel=True),
        replace(plain, name="relu", relu=True),
        replace(plain, name="saturating", spread=600.0),
        line,
        replace(line, name="one_axis_groups", channels=6, outputs=4, groups=2, per_channel=True),
    )
    return (*specs, *rounded(specs, ("plain", "per_channel", "relu")))


def _draw(rng: np.random.Generator, config: Config) -> TransposeSpec:
    spec = draw_conv(rng, config)
    values = {name: getattr(spec, name) for name in ConvSpec.__dataclass_fields__}
    values["extra"] = tuple(int(rng.integers(0, step)) for step in spec.stride)
    values["size"] = tuple(min(size, 7) for size in spec.size)
    return TransposeSpec(**values)


def _legal(spec: TransposeSpec) -> bool:
    """Whether there are outputs, and channels divide into groups."""
    return (
        spec.channels % spec.groups == spec.outputs % spec.groups == 0
        and min(_extents(spec)) >= 1
        and all(
            e < max(s, d) for e, s, d in zip(spec.extra, spec.stride, spec.dilation, strict=True)
        )
    )


def _extents(spec: TransposeSpec) -> tuple[int, ...]:
    """Outputs of each axis."""
    axes = zip(
        spec.size, spec.kernel, spec.stride, spec.padding, spec.dilation, spec.extra, strict=True
    )
    return tuple(
        (size - 1) * step - 2 * pad + (k - 1) * d + extra + 1
        for size, k, step, pad, d, extra in axes
    )


def _make(rng: np.random.Generator, operator: str, spec: Any) -> Case:
    source = activation(rng, spec)
    shape = (spec.channels, spec.outputs // spec.groups, *spec.kernel)
    met = np.prod([max(1.0, k / s) for k, s in zip(spec.kernel, spec.stride, strict=True)])
    weight, scale = weighted(
        rng,
        spec,
        shape,
        source,
        per_channel=spec.per_channel,
        weight_zero=spec.weight_zero,
        terms=float(met) * spec.channels / spec.groups,
        axis=1,
    )
    bias = np.resize(weight.bias, spec.outputs).astype(np.float32)
    weight = replace(weight, bias=bias)
    return Case(operator, spec, (source,), scale, output_zero(rng, spec, 1), weight)


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    assert case.weight is not None
    result = _product(build, case, sources[0], build.weight(case, quantized))
    shape = (1, -1, *(1,) * len(case.spec.size))
    return build.emit(op.add(result, constant(case.weight.bias.reshape(shape), "float32")))


def _product(build: Builder, case: Case, x: Any, weight: Any) -> Any:
    spec: Any = case.spec
    run = op.nn.conv2d_transpose if len(spec.size) == 2 else op.nn.conv1d_transpose
    return build.emit(
        run(
            x,
            weight,
            strides=list(spec.stride),
            padding=[*spec.padding, *spec.padding],
            output_padding=list(spec.extra),
            dilation=list(spec.dilation),
            groups=spec.groups,
        )
    )


def _torch(case: Case, sources: list[Any], magnitude: bool = False) -> Any:
    assert case.weight is not None
    x = sources[0]
    weight, bias = (torch.from_numpy(v).to(x.dtype) for v in (case.weight.reals, case.weight.bias))
    if magnitude:
        x, weight, bias = x.abs(), weight.abs(), bias.abs()
    spec: Any = case.spec
    functional = torch.nn.functional
    two = len(spec.size) == 2
    run: Any = functional.conv_transpose2d if two else functional.conv_transpose1d
    return run(x, weight, bias, spec.stride, spec.padding, spec.extra, spec.groups, spec.dilation)


def _error(case: Case, sources: list[Any], result: Any) -> Any:
    """The bound of a sum of n products in any order: n·u·Σ|x·w| with unit round-off u."""
    spec: Any = case.spec
    terms = int(np.prod(spec.kernel)) * spec.channels // spec.groups + 1
    return _torch(case, sources, magnitude=True) * (terms * MATRIX_ERROR)


def _quantized(case: Case, inputs: list[Any]) -> Any:
    spec: Any = case.spec
    assert case.weight is not None
    kernels, name = torch.ops.quantized, f"conv_transpose{len(spec.size)}d"
    lists = (list(v) for v in (spec.stride, spec.padding, spec.extra, spec.dilation))
    weight, groups = case.weight, spec.groups
    if spec.per_channel and groups > 1:  # which qnnpack does not have
        weight, groups = _without_groups(weight, groups), 1
    packed = getattr(kernels, f"{name}_prepack")(
        quantized_weight(weight), torch.from_numpy(weight.bias), *lists, groups
    )
    result = getattr(kernels, name)(inputs[0], packed, float(case.scale), case.zero)
    return torch.relu(result) if spec.relu else result


def _without_groups(weight: Weight, groups: int) -> Weight:
    """Weights of one group, which are 0 between channels of different groups."""
    inputs, each, *taps = weight.values.shape
    values = np.zeros((inputs, groups * each, *taps), np.int8)
    for group in range(groups):
        rows = slice(group * inputs // groups, (group + 1) * inputs // groups)
        values[rows, group * each : (group + 1) * each] = weight.values[rows]
    scale, zero = np.tile(weight.scale, groups), np.tile(weight.zero, groups)
    return Weight(values, scale, zero, weight.bias, weight.axis)


OPERATORS = (
    Operator(
        "conv_transpose2d",
        facts("conv", "one or two axes, kernels up to 16×16", GROUPS),
        transpose_edges,
        _draw,
        _make,
        relax=_relax,
        torch=_torch,
        quantized=_quantized,
        error=_error,
        product=_product,
        legal=_legal,
        spec=TransposeSpec,
    ),
)
