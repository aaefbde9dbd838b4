"""Clamps, and the host's quantize and dequantize at the edge of the network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tvm import relax

from accelsim.ops.batch import Batch
from accelsim.ops.case import Activation, Case, Spec
from accelsim.ops.edges import common_edges
from accelsim.ops.modules import Builder
from accelsim.ops.operator import Draw, Edges, Facts, Operator
from accelsim.ops.outcome import Outcome, Stage, compared
from accelsim.ops.torch_kernels import integer_output, quantize
from accelsim.ops.values import activation, drawn
from accelsim.spec.config import Config

INFINITE = float("inf")
EAGER = (
    "torch.quantize_per_tensor adds the zero point before it rounds, the exported graph and the "
    "host's code after it"
)


@dataclass(frozen=True, slots=True)
class ClampSpec(Spec):
    """Limits as real numbers in input scales; those of relu and relu6 are absolute."""

    limits: tuple[float, float] = (0.0, INFINITE)


def _edges(low: float, high: float) -> Edges:
    def edges(config: Config) -> tuple[ClampSpec, ...]:
        plain = ClampSpec("plain", channels=config.lanes, limits=(low, high))
        few = {"zero_points_high": "nothing lies above the zero point"}
        return tuple(
            replace(spec, zeros=spec.zeros or (90,), few=few.get(spec.name, spec.few))
            for spec in common_edges(config, plain, 1)
        )

    return edges


def _draw(low: float | None, high: float | None) -> Draw:
    """Limits given or drawn."""

    def draw(rng: np.random.Generator, config: Config) -> ClampSpec:
        ends = sorted(rng.uniform(-200, 200, 2))
        limits = (ends[0] if low is None else low, ends[1] if high is None else high)
        common = drawn(rng, config.lanes, 1)
        return ClampSpec(**common, limits=(float(limits[0]), float(limits[1])))

    return draw


def real_limits(case: Case) -> tuple[float, float]:
    """Limits of a clamp as reals."""
    spec: Any = case.spec
    low, high = spec.limits
    if case.operator == "relu6":
        return low, high
    scale = case.inputs[0].scale
    return float(np.float32(low) * scale), float(np.float32(high) * scale)


def _make(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    # The limit of relu6 lies within the range.
    scale = 6 / float(rng.integers(40, 220)) if operator == "relu6" else 0.0
    source = activation(rng, spec, scale=scale)
    return Case(operator, spec, (source,), source.scale, source.zero)


def _make_boundary(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    """Reals around the range: ties, values between steps, and what saturates."""
    like = activation(rng, spec)
    steps = rng.uniform(-like.zero - 20, 275 - like.zero, like.values.shape)
    ties = np.floor(steps) + 0.5
    chosen = np.where(rng.random(like.values.shape) < 0.3, ties, steps)
    floats = (chosen * float(like.scale)).astype(np.float32)
    rounded = np.rint(floats * (np.float32(1) / like.scale)) + np.float32(like.zero)
    stored = np.asarray(np.clip(rounded, 0, 255), np.uint8)
    source = Activation(stored, like.scale, like.zero)
    return Case(operator, spec, (source,), source.scale, source.zero, floats=floats)


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    low, high = real_limits(case)
    if high == INFINITE:
        return build.emit(relax.op.nn.relu(sources[0]))
    return build.emit(relax.op.clip(sources[0], low, high))


def _torch(case: Case, sources: list[Any]) -> Any:
    low, high = real_limits(case)
    return torch.relu(sources[0]) if high == INFINITE else torch.clamp(sources[0], low, high)


def _quantized(case: Case, sources: list[Any]) -> Any:
    if case.operator == "relu6":
        return torch.nn.functional.relu6(sources[0])
    return _torch(case, sources)


def _dequantize_stage(batch: Batch, case: Case) -> Outcome:
    """The host's floats, bit for bit, against PyTorch's dequantize of its own output."""
    stored = torch.from_numpy(integer_output(case))
    run = torch.ops.quantized_decomposed.dequantize_per_tensor
    reals = run(stored, float(case.scale), case.zero, 0, 255, torch.uint8).numpy()
    return compared(case, Stage.LEGALIZED, reals, batch.legalized_output(case))


def _quantize_stage(batch: Batch, case: Case) -> Outcome:
    """The integers of the host's code against those of the exported graph's quantize."""
    assert case.floats is not None
    first = case.inputs[0]
    stored = quantize(case.floats, first.scale, first.zero, "uint8")
    outcome = compared(case, Stage.LEGALIZED, stored, batch.quantized_input(case))
    if not outcome.mismatches:  # the host's code, behind which a ReLU follows
        rectified = np.maximum(stored, np.uint8(case.zero))
        outcome = compared(case, Stage.LEGALIZED, rectified, batch.legalized_stored(case))
    eager, known = eager_input(case)
    different = int(np.count_nonzero(eager != stored))
    if outcome.mismatches or not different:
        return outcome
    if not np.array_equal(eager, known):
        detail = "torch.quantize_per_tensor differs without a known cause"
        return Outcome(case.name, Stage.LEGALIZED, "", stored.size, different, detail)
    return Outcome(case.name, Stage.LEGALIZED, "", stored.size, 0, "", EAGER, different)


def eager_input(case: Case) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The float input by `torch.quantize_per_tensor`, and what it is known to compute.

    On x86 that kernel adds the zero point before it rounds: rint(fma(x, 1/s, zero)) in float32.
    """
    first = case.inputs[0]
    assert case.floats is not None
    values = torch.from_numpy(case.floats)
    q = torch.quantize_per_tensor(values, float(first.scale), first.zero, torch.quint8)
    exact = case.floats.astype(np.float64) * float(np.float32(1) / first.scale)
    steps = np.rint((exact + first.zero).astype(np.float32))
    return q.int_repr().numpy(), np.clip(steps, 0, 255).astype(np.uint8)


def _clamp(
    name: str, low: float | None, high: float | None, plain: tuple[float, float]
) -> Operator:
    return Operator(
        name,
        Facts(
            types="int8 or uint8 activations",
            limits=("limits that are constants",),
            instructions=("load", "store", "pool"),
            roundings=("qnnpack", "fp32"),
            exact=("PyTorch qnnpack", "ONNX Runtime"),
            notes="behind another layer it costs nothing: it becomes that layer's clamp",
        ),
        _edges(*plain),
        _draw(low, high),
        _make,
        relax=_relax,
        torch=_torch,
        quantized=_quantized,
        spec=ClampSpec,
    )


def _boundary(name: str, types: str, stage: Any) -> Operator:
    return Operator(
        name,
        Facts(
            types=types,
            limits=("at the edge of the network; the host computes it",),
            instructions=("load", "store", "pool"),
            roundings=("qnnpack", "fp32"),
            exact=("PyTorch exported graph",),
            notes="tested in front of or behind a ReLU on the NPU",
        ),
        _edges(0.0, INFINITE),
        _draw(0.0, INFINITE),
        _make_boundary,
        relax=_relax,
        torch=_torch,
        quantized=_quantized,
        legalized=stage,
        spec=ClampSpec,
    )


OPERATORS = (
    _clamp("relu", 0.0, INFINITE, (0.0, INFINITE)),
    _clamp("relu6", 0.0, 6.0, (0.0, 6.0)),
    _clamp("clip", None, None, (-20.0, 90.0)),
    _boundary("quantize", "float32 to uint8", _quantize_stage),
    _boundary("dequantize", "uint8 to float32", _dequantize_stage),
)
