"""Convolution and depthwise convolution: windows times constant weights."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case
from accelsim.ops.edges import rounded, side_beyond, square_beyond
from accelsim.ops.modules import Builder, constant
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.torch_kernels import quantized_weight
from accelsim.ops.values import (
    choice,
    drawn,
    size_between,
)
from accelsim.ops.weights import (
    GROUPS,
    ROUNDED,
    ConvSpec,
    facts,
    groups_of,
    make_weighted,
    padding_at_end,
    summation_error,
    torch_weighted,
)
from accelsim.spec.config import Config

op = relax.op
KERNELS = ((1, 1), (3, 3), (2, 3), (5, 1), (3, 2))


def conv_edges(config: Config) -> tuple[ConvSpec, ...]:
    """Shapes, quantizations and values, and a slice of them in other roundings."""
    specs = _conv_specs(config)
    return (*specs, *rounded(specs, ROUNDED))


def _conv_specs(config: Config) -> tuple[ConvSpec, ...]:
    """A convolution of 3×3 with padding, bent in one respect a case."""
    lanes = config.lanes
    plain = ConvSpec(
        "plain", channels=lanes, outputs=lanes, size=(6, 7), kernel=(3, 3), padding=(1, 1)
    )
    point = replace(plain, name="pointwise", kernel=(1, 1), padding=(0, 0))
    blocks = side_beyond(config.wgt_rows // (9 * lanes))
    wide = (config.par_rows // 2 + 1) * lanes
    return (
        plain,
        replace(plain, name="one_pixel", size=(1, 1)),
        replace(plain, name="one_row", size=(1, 9)),
        replace(plain, name="one_column", size=(9, 1)),
        replace(plain, name="one_channel", channels=1, outputs=1),
        replace(plain, name="lanes_minus_one", channels=lanes - 1, outputs=lanes - 1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1, outputs=lanes + 1),
        replace(plain, name="three_channels", channels=3, outputs=lanes + 4, kernel=(7, 7)),
        replace(plain, name="two_images", batch=2),
        replace(plain, name="stride", stride=(2, 3), size=(9, 10)),
        replace(plain, name="dilation", dilation=(2, 3), size=(9, 11)),
        replace(plain, name="even_kernel", kernel=(2, 4)),
        replace(plain, name="uneven_padding", kernel=(2, 4), extra=(1, 2)),
        replace(plain, name="largest_kernel", kernel=(16, 16), size=(17, 16), channels=3),
        replace(plain, name="groups", channels=12, outputs=6, groups=3),
        replace(plain, name="channel_multiplier", channels=5, outputs=10, groups=5),
        point,
        replace(plain, name="beyond_activations", size=square_beyond(config.act_rows)),
        replace(plain, name="beyond_weights", channels=blocks * lanes, outputs=blocks * lanes),
        replace(plain, name="beyond_accumulators", size=square_beyond(config.acc_rows)),
        replace(point, name="beyond_parameters", outputs=wide, size=(1, 2)),
        replace(plain, name="zero_points_low", zeros=(0, 0)),
        replace(plain, name="zero_points_high", zeros=(255, 255)),
        replace(plain, name="weight_zero_point", weight_zero=-128, zeros=(128, 128)),
        replace(plain, name="per_channel", per_channel=True),
        replace(plain, name="saturating", spread=600.0),
        replace(plain, name="small_multiplier", spread=3.0),
        replace(plain, name="smallest_scale", input_scale=2.0**-20),
        replace(plain, name="largest_scale", input_scale=2.0**4),
        replace(point, name="full_accumulators", full=True, outputs=4 * lanes),
        replace(plain, name="ends_only", values="ends"),
        replace(plain, name="relu", relu=True),
    )


def depthwise_edges(config: Config) -> tuple[ConvSpec, ...]:
    """The same for a depthwise convolution."""
    lanes = config.lanes
    dropped = {"three_channels", "pointwise", "beyond_weights", "beyond_parameters"}
    dropped |= {"groups", "channel_multiplier", "largest_kernel"}
    full = ConvSpec("full_accumulators", channels=4 * lanes, size=(4, 5), kernel=(3, 3), full=True)
    dropped.add(full.name)
    kept = [spec for spec in conv_edges(config) if spec.name not in dropped]
    blocks = ceil(config.wgt_rows / 27) + 1
    many = replace(kept[0], name="beyond_weights", channels=blocks * lanes, size=(2, 3))
    large = replace(kept[0], name="kernel_five", kernel=(5, 5), padding=(2, 2), channels=lanes + 2)
    return tuple(replace(spec, outputs=spec.channels) for spec in (*kept, many, large, full))


def draw_conv(rng: np.random.Generator, config: Config) -> ConvSpec:
    """Any window that fits, any zero point where there is one scale."""
    common = drawn(rng, config.lanes, 2)
    kernel, dilation = choice(rng, KERNELS), size_between(rng, 1, 3)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    common["size"] = tuple(max(s, r) for s, r in zip(common["size"], reach, strict=True))
    per_channel = bool(rng.integers(2))
    groups = choice(rng, (1, 1, 1, 2, 3))
    common["channels"] = -(-common["channels"] // groups) * groups
    return ConvSpec(
        **common,
        outputs=-(-int(rng.integers(1, 3 * config.lanes)) // groups) * groups,
        groups=groups,
        kernel=kernel,
        stride=size_between(rng, 1, 4),
        padding=(int(rng.integers(0, kernel[0])), int(rng.integers(0, kernel[1]))),
        dilation=dilation,
        per_channel=per_channel,
        weight_zero=0 if per_channel else int(rng.integers(-128, 128)),
        relu=bool(rng.integers(2)),
    )


def draw_depthwise(rng: np.random.Generator, config: Config) -> ConvSpec:
    """The same with as many outputs as channels."""
    spec = draw_conv(rng, config)
    return replace(spec, outputs=spec.channels, groups=1)


def legal_conv(spec: ConvSpec) -> bool:
    """Whether a window fits into the padded input, and channels divide into groups."""
    axes = zip(spec.size, spec.kernel, spec.padding, spec.dilation, strict=True)
    divides = spec.channels % spec.groups == spec.outputs % spec.groups == 0
    return divides and all(size + 2 * pad >= (k - 1) * d + 1 for size, k, pad, d in axes)


def _relax_conv(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    assert case.weight is not None
    result = conv_product(build, case, sources[0], build.weight(case, quantized))
    shape = (1, -1, *(1,) * len(case.spec.size))
    return build.emit(op.add(result, constant(case.weight.bias.reshape(shape), "float32")))


def conv_product(build: Builder, case: Case, x: Any, weight: Any) -> Any:
    """The convolution alone, of any dtype."""
    spec: Any = case.spec
    run = op.nn.conv2d if len(spec.size) == 2 else op.nn.conv1d
    after = [pad + extra for pad, extra in zip(spec.padding, spec.extra, strict=True)]
    return build.emit(
        run(
            x,
            weight,
            strides=list(spec.stride),
            padding=[*spec.padding, *after],
            dilation=list(spec.dilation),
            groups=groups_of(case),
        )
    )


def _quantized_conv(case: Case, inputs: list[Any]) -> Any:
    spec: Any = case.spec
    assert case.weight is not None
    kernels, name = torch.ops.quantized, f"conv{len(spec.size)}d"
    packed = getattr(kernels, f"{name}_prepack")(
        quantized_weight(case.weight),
        torch.from_numpy(case.weight.bias),
        *(list(spec.stride), list(spec.padding), list(spec.dilation), groups_of(case)),
    )
    x = inputs[0]
    if any(spec.extra):
        zero = x.q_zero_point()
        stored = torch.nn.functional.pad(x.int_repr(), padding_at_end(spec), value=zero)
        x = torch._make_per_tensor_quantized_tensor(stored, x.q_scale(), zero)
    run = getattr(kernels, f"{name}_relu" if spec.relu else name)
    return run(x, packed, float(case.scale), case.zero)


def convolution(name: str, edges: Any, draw: Any, facts: Facts) -> Operator:
    """A convolution of that name, whose cases are `ConvSpec`s."""
    return Operator(
        name,
        facts,
        edges,
        draw,
        make_weighted,
        relax=_relax_conv,
        torch=torch_weighted,
        quantized=_quantized_conv,
        error=summation_error,
        product=conv_product,
        legal=legal_conv,
        spec=ConvSpec,
    )


OPERATORS = (
    convolution("conv2d", conv_edges, draw_conv, facts("conv", "kernels up to 16×16", GROUPS)),
    convolution(
        "depthwise_conv2d",
        depthwise_edges,
        draw_depthwise,
        facts("dwconv", "one output a channel", others=("conv",)),  # which one channel takes
    ),
)
