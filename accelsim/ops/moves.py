"""What operators that move elements share: how cases are drawn, changed in scale and judged.

What comes in: a family's own movement, on Relax values and on PyTorch tensors. What goes out: an
`Operator`. It must not know a family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from accelsim.ops.case import Activation, Case, Spec
from accelsim.ops.edges import common_edges, rounded
from accelsim.ops.operator import Draw, Edges, Facts, Operator
from accelsim.ops.torch_kernels import quantize, quantized_tensor
from accelsim.ops.values import activation, choice, drawn, output_zero
from accelsim.spec.config import Config

Movement = Callable[[Case, list[Any]], Any]
Fields = Callable[[np.random.Generator, Any, int], dict[str, Any]]
ROUNDINGS = ("rescaled", "plain")  # cases that are run in the roundings of other frameworks too
ONE_PIXEL = "its input has one pixel"


@dataclass(frozen=True, slots=True)
class MoveSpec(Spec):
    """`ratio` is the output's scale by the (first) input's: 0 keeps scale and zero point."""

    ratio: float = 0.0


def draw_of(kind: type[MoveSpec], ranks: tuple[int, ...], fields: Fields) -> Draw:
    """Random specs: `fields(rng, spec, lanes)` are those of the family."""

    def draw(rng: np.random.Generator, config: Config) -> MoveSpec:
        common = drawn(rng, config.lanes, 2)
        rank = choice(rng, ranks)
        common["size"] = tuple(int(one) for one in rng.integers(2, 9, rank - 2))
        ratio = choice(rng, (0.0, float(2.0 ** rng.uniform(-2, 2))))
        spec = kind(**common, ratio=ratio, relu=bool(rng.integers(4) == 0))
        return replace(spec, **fields(rng, spec, config.lanes))

    return draw


def make_move(rng: np.random.Generator, operator: str, spec: Any) -> Case:
    """One input, at its own scale or another."""
    return moved_case(rng, operator, spec, (activation(rng, spec),))


def moved_case(
    rng: np.random.Generator, operator: str, spec: Any, sources: tuple[Activation, ...]
) -> Case:
    """The output keeps the first input's levels, or has a scale and zero point of its own."""
    first = sources[0]
    if spec.ratio == 0:
        return Case(operator, spec, sources, first.scale, first.zero)
    scale = np.float32(float(first.scale) * spec.ratio)
    return Case(operator, spec, sources, scale, output_zero(rng, spec, 1))


def quantized_of(torch_of: Movement) -> Movement:
    """PyTorch moves quantized tensors; where scales change, the exported graph's quantize."""

    def run(case: Case, sources: list[Any]) -> Any:
        if any(one.scale != case.scale or one.zero != case.zero for one in case.inputs):
            moved = torch_of(case, [one.dequantize() for one in sources])
            stored = quantize(moved.contiguous().numpy(), case.scale, case.zero, "uint8")
            result = quantized_tensor(Activation(stored, case.scale, case.zero))
        else:
            result = torch_of(case, sources).contiguous()
        return torch.relu(result) if case.spec.relu else result

    return run


def legal_of(torch_of: Movement, make: Callable[..., Case] = make_move) -> Callable[[Any], bool]:
    """Whether PyTorch takes a spec and leaves an element."""

    def legal(spec: Any) -> bool:
        try:
            case = make(np.random.default_rng(0), "", spec)
            sources = [torch.empty(one.values.shape, device="meta") for one in case.inputs]
            return bool(torch_of(case, sources).numel())
        except (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError):
            return False

    return legal


def plain_of(kind: type[MoveSpec], **fields: Any) -> Callable[[Config], Any]:
    """The plain case of a family: one block of channels."""
    return lambda config: kind("plain", channels=config.lanes, **fields)


def scale_edges(plain: Any) -> tuple[Any, ...]:
    """Other scales, near and far, and ReLUs."""
    saturates, vanishes = "nearly all of it saturates", "it is all zero point"
    return (
        replace(plain, name="rescaled", ratio=1.7),
        replace(plain, name="no_multiplier", ratio=1.2, input_scale=0.1),
        replace(plain, name="relu", relu=True, zeros=(90,)),
        replace(plain, name="relu_rescaled", relu=True, ratio=0.6, zeros=(90, 70)),
        replace(plain, name="scale_far_down", ratio=2.0**-16, input_scale=2.0**-4, few=saturates),
        replace(plain, name="scale_far_up", ratio=2.0**20, input_scale=2.0**-18, few=vanishes),
    )


def move_edges(plain: Callable[[Config], Any], *more: Callable[[Any, Config], Any]) -> Edges:
    """Common edges, other scales, and those of the family."""

    def edges(config: Config) -> tuple[Spec, ...]:
        base = plain(config)
        own = [one for make in more for one in make(base, config)]
        shared = [
            replace(one, few=ONE_PIXEL) if one.name == "one_pixel" else one
            for one in (*common_edges(config, base, 2), *scale_edges(base))
        ]
        return (*shared, *own, *rounded(shared, ROUNDINGS))

    return edges


def move(
    name: str,
    spec: type[MoveSpec],
    edges: Edges,
    draw: Draw,
    pair: tuple[Any, Movement],
    *,
    limits: tuple[str, ...] = (),
    legal: Callable[[Any], bool] | None = None,
    make: Callable[..., Case] = make_move,
    instructions: tuple[str, ...] = ("load", "store", "conv", "drain", "pool", "lookup"),
) -> Operator:
    """An operator whose float form is `pair`: on Relax values, and on PyTorch tensors."""
    relax_of, torch_of = pair
    return Operator(
        name,
        Facts(
            types="int8 or uint8 activations",
            limits=(*limits, "at most 256 pieces that are separable axis by axis"),
            instructions=instructions,
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("PyTorch qnnpack",),
            notes="a change of scale is the exported graph's quantize of the dequantized values",
        ),
        edges,
        draw,
        make,
        relax=relax_of,
        torch=torch_of,
        quantized=quantized_of(torch_of),
        spec=spec,
        legal=legal or legal_of(torch_of, make),
    )
