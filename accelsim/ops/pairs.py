"""Elementwise operators of two operands: what their families share.

What comes in: specs. What goes out: edge cases, random specs, cases, and the operands of a kernel.
It must not know which operator joins them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from accelsim.ops.case import Activation, Case, Spec
from accelsim.ops.edges import common_edges, rounded
from accelsim.ops.modules import Builder
from accelsim.ops.torch_kernels import quantized_tensor
from accelsim.ops.values import activation, choice, drawn, output_zero
from accelsim.spec.config import Config

ALONG: dict[str, tuple[bool, ...]] = {  # axes n, c, h, w that the second operand has
    "same": (True, True, True, True),
    "channels": (False, True, False, False),
    "gate": (True, True, False, False),
    "pixels": (True, False, True, True),
    "rows": (True, True, True, False),
    "scalar": (False, False, False, False),
}
NAMED = ("plain", "zero_points_low", "saturating", "gate", "constant_channels")
ONE_SIDED = "no operand lies beyond its zero point, and no output can beyond its own"
BROADCAST = (
    "operands of as many axes as the output, each of its size or 1",
    "a constant is the same for all images of a batch, and quantized per tensor",
)


@dataclass(frozen=True, slots=True)
class PairSpec(Spec):
    """`other` says along which axes the second operand extends."""

    other: str = "same"
    constant: bool = False  # the second operand is stored with the network
    equal: bool = False  # both operands and the output have one scale and zero point

    def other_shape(self) -> tuple[int, ...]:
        """Shape of the second operand."""
        along = ALONG[self.other]
        return tuple(
            size if kept and not (self.constant and axis == 0) else 1
            for axis, (size, kept) in enumerate(zip(self.shape, along, strict=False))
        )


def pair_edges(config: Config) -> tuple[PairSpec, ...]:
    """Equal shapes, then every way of broadcasting, constants, and other frameworks' roundings."""
    plain = PairSpec("plain", channels=config.lanes)
    odd = replace(plain, channels=config.lanes + 3, size=(5, 6), batch=2)
    many = replace(odd, channels=3 * config.lanes + 3)
    ways = [replace(odd, name=way, other=way) for way in ALONG if way != "same"]
    constants = [
        replace(many, name=f"constant_{way}", other=way, constant=True)
        for way in ("same", "channels", "pixels")
    ]
    specs = (
        *(
            replace(spec, few=ONE_SIDED) if spec.name.startswith("zero_points_") else spec
            for spec in common_edges(config, plain, 3)
        ),
        replace(plain, name="inputs_high", zeros=(255, 255, 128)),
        replace(plain, name="inputs_apart", zeros=(255, 0, 128)),
        *ways,
        *constants,
        replace(plain, name="saturating", spread=600.0, few="most of its outputs saturate"),
        replace(plain, name="relu", relu=True, zeros=(130, 120, 90)),  # half of it is positive
        replace(plain, name="one_scale", equal=True),
    )
    return (*specs, *rounded(specs, NAMED))


def draw_pair(rng: np.random.Generator, config: Config) -> PairSpec:
    """Any shapes that broadcast, any rounding."""
    other = choice(rng, tuple(ALONG))
    return PairSpec(
        **drawn(rng, config.lanes, 3),
        relu=bool(rng.integers(2)),
        other=other,
        constant=other != "scalar" and bool(rng.integers(2)),
        rounding=choice(rng, ("qnnpack", "fp32", "tflite", "onnxruntime")),
    )


def pair_case(
    rng: np.random.Generator, operator: str, spec: Any, joined: Callable[[Any, Any], Any]
) -> Case:
    """Operands, and an output scale over which the joined reals spread."""
    a = activation(rng, spec)
    b = activation(rng, spec, 1, spec.other_shape())
    if spec.equal:
        b = replace(b, scale=a.scale, zero=a.zero)
        return _case(operator, spec, (a, b), a.scale, a.zero)
    reals = joined(torch.from_numpy(a.reals), torch.from_numpy(b.reals)).numpy()
    # Around the zero point, so that the output's drawn zero point leaves its values in range.
    deviation = float(np.sqrt(np.mean(reals.astype(np.float64) ** 2))) or 1.0
    scale = np.float32(deviation / spec.spread)
    return _case(operator, spec, (a, b), scale, output_zero(rng, spec, 2))


def _case(
    operator: str, spec: Any, pair: tuple[Activation, Activation], scale: np.float32, zero: int
) -> Case:
    if spec.constant:
        return Case(operator, spec, pair[:1], scale, zero, constant=pair[1])
    return Case(operator, spec, pair, scale, zero)


def relax_operands(build: Builder, case: Case, sources: list[Any], quantized: bool) -> list[Any]:
    """Both operands as Relax values."""
    if case.constant is None:
        return sources
    return [*sources, build.constant(case.constant, quantized)]


def torch_operands(case: Case, sources: list[Any]) -> list[Any]:
    """Both operands as float tensors of the sources' precision."""
    if case.constant is None:
        return sources
    return [*sources, torch.from_numpy(case.constant.reals).to(sources[0].dtype)]


def legal_pair(spec: Any) -> bool:
    """A constant has one image."""
    return spec.other in ALONG and len(spec.size) == 2


def expanded(case: Case, inputs: list[Any]) -> list[Any]:
    """Both operands as quantized tensors of the output's shape: PyTorch's kernels need that."""
    second = inputs[1:] if case.constant is None else [quantized_tensor(case.constant)]
    return [one.expand(case.spec.shape).contiguous() for one in (inputs[0], *second)]
