"""Layer normalization over the last axis, in integers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tvm import relax

from accelsim.ops.case import Case, Spec
from accelsim.ops.edges import rounded
from accelsim.ops.modules import Builder, constant
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.rows import LONGEST, RowSpec, draw_rows, row_edges, rows_of
from accelsim.ops.torch_kernels import exact_output
from accelsim.ops.values import output_zero
from accelsim.spec.config import Config

PARAMETER_ROWS = 2  # of a block: gain and offset
FARTHEST = 4  # output steps from the real result: beyond, the compiler leaves a layer to the host
ROUNDING = 0.5 + 2.0**-6  # steps: the last rounding, and all before it
FLOAT_ERROR = 2.0**-18
SAME = "a row of one element, or of equal ones, has its offset for a result"


@dataclass(frozen=True, slots=True)
class NormSpec(RowSpec):
    """`epsilon` is added to the variance; gains are near 1, of both signs with `signs`."""

    last: bool = True
    epsilon: float = 1e-5
    signs: bool = False


def _edges(config: Config) -> tuple[NormSpec, ...]:
    plain = NormSpec("plain", channels=config.lanes, spread=20.0)
    blocks = min(LONGEST, config.par_rows // PARAMETER_ROWS)
    few = {"one_channel": SAME, "ends_only": "its inputs have two values"}
    edges = tuple(
        replace(spec, few=few.get(spec.name, spec.few))
        for spec in row_edges(config, plain, 2, blocks)
    )
    return (
        *edges,
        replace(plain, name="signs", signs=True),
        replace(plain, name="relu", relu=True),
        replace(plain, name="large_epsilon", epsilon=0.5),
        replace(plain, name="tiny_epsilon", epsilon=1e-12),
        replace(plain, name="saturating", spread=70.0),
        *rounded((plain,), ("plain",)),
    )


def _draw(rng: np.random.Generator, config: Config) -> NormSpec:
    most = min(LONGEST, config.par_rows // PARAMETER_ROWS) * config.lanes
    common = draw_rows(rng, config, 2)
    return NormSpec(
        **common
        | {"channels": min(common["channels"], most), "last": True}
        | {"spread": float(2.0 ** rng.uniform(2, 6))},
        epsilon=float(10.0 ** rng.uniform(-6, -1)),
        signs=bool(rng.integers(2)),
        relu=bool(rng.integers(2)),
    )


def _legal(spec: Any) -> bool:
    return bool(spec.last)


def _make(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    assert isinstance(spec, NormSpec)
    source = rows_of(rng, spec)
    gain = rng.uniform(0.5, 1.5, spec.channels) * (rng.choice([-1, 1], spec.channels) ** spec.signs)
    offset = rng.normal(0, 0.3, spec.channels)
    arrays = {"gain": gain.astype(np.float32), "offset": offset.astype(np.float32)}
    case = Case(operator, spec, (source,), np.float32(1), 0, arrays=arrays)
    # With an input this near epsilon counts, and results are small.
    deviation = float(exact_output(case).std()) or 1.0
    return replace(case, scale=np.float32(deviation / spec.spread), zero=output_zero(rng, spec, 1))


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    words = (constant(case.arrays[name], "float32") for name in ("gain", "offset"))
    return build.emit(relax.op.nn.layer_norm(sources[0], *words, axes=[-1], epsilon=spec.epsilon))


def _torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return _normalized(case, sources[0], spec.epsilon)


def _normalized(case: Case, x: Any, epsilon: float) -> Any:
    gain, offset = (torch.from_numpy(case.arrays[n]).to(x.dtype) for n in ("gain", "offset"))
    return torch.nn.functional.layer_norm(x, (case.spec.channels,), gain, offset, epsilon)


def _error(case: Case, sources: list[Any], result: Any) -> Any:
    """Relative to the largest input over the deviation, which cancellation of the mean needs."""
    x = sources[0].double()
    largest = x.abs().amax(-1, keepdim=True) / (x.var(-1, keepdim=True, correction=0)).sqrt()
    spec: Any = case.spec
    at_most = x.abs().amax(-1, keepdim=True) / max(spec.epsilon, 1e-30) ** 0.5
    return (torch.fmin(largest, at_most) + 8) * FLOAT_ERROR + torch.zeros_like(result)


def _cause(case: Case, golden: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """Each is the nearest to its own real result; that of the integers has epsilon in its units."""
    spec: Any = case.spec
    source = case.inputs[0]
    unit = (float(source.scale) / spec.channels) ** 2
    real = torch.from_numpy(source.reals.astype(np.float64))
    limits = np.iinfo(case.dtype)
    lowest = case.zero if spec.relu else limits.min
    # An epsilon of nothing has rows without variance end at their offset, as this one has.
    near = max(round(spec.epsilon / unit) * unit, 1e-9 * unit)
    for values, epsilon in ((golden, near), (expected, spec.epsilon)):
        steps = _normalized(case, real, epsilon).numpy() / float(case.scale) + case.zero
        apart = np.abs(values - np.clip(steps, lowest, limits.max))
        if apart.max() > ROUNDING:
            return None
    return "epsilon is whole in units of 1/channels² input steps², and near ties"


OPERATORS = (
    Operator(
        "layer_norm",
        Facts(
            types="int8 or uint8 activations, int32 gains and offsets",
            limits=(
                "over the last axis, with constant gain and offset",
                f"rows of at most {LONGEST} blocks of LANES channels, whose parameters fit "
                "half of the parameter memory",
                f"at most {FARTHEST} output steps from the real result, by its scales and epsilon",
            ),
            instructions=("load", "store", "layernorm"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=(),
            notes="the same integers in every rounding; half a step and 1/64 from the real result "
            "with an epsilon that is whole in units of 1/channels² input steps²: other than "
            "PyTorch's float kernel beside ties, or where a row has hardly any variance",
        ),
        _edges,
        _draw,
        _make,
        relax=_relax,
        torch=_torch,
        error=_error,
        steps=FARTHEST,
        cause=_cause,
        legal=_legal,
        spec=NormSpec,
    ),
)
