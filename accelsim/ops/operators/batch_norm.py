"""Batch norm with constant statistics, where no convolution absorbs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tvm import relax

from accelsim.ops.case import Case, Spec
from accelsim.ops.edges import common_edges, rounded
from accelsim.ops.modules import Builder, constant
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.values import activation, choice, drawn, fitting_scale, output_zero
from accelsim.spec.config import Config

EPSILON = 1e-5
PARTS = 64  # of an input step, in which the integers have the offset
ERROR = 2.0**-12  # output steps: float32 of accumulator, multiplier and product
STATISTICS = ("gain", "shift", "mean", "variance")


@dataclass(frozen=True, slots=True)
class NormSpec(Spec):
    """Gains are drawn around zero; those of every `flat`-th channel are zero (0: none)."""

    flat: int = 0


def _edges(config: Config) -> tuple[NormSpec, ...]:
    plain = NormSpec("plain", channels=config.lanes)
    specs = (
        *common_edges(config, plain, 2),
        replace(plain, name="some_constant", channels=config.lanes + 3, flat=3),
        replace(plain, name="relu", relu=True),
    )
    return (*specs, *rounded(specs, ("plain",), ("onnxruntime",)))


def _draw(rng: np.random.Generator, config: Config) -> NormSpec:
    rounding = choice(rng, ("qnnpack", "fp32", "onnxruntime"))
    flat = choice(rng, (0, 0, 2, 5))
    return NormSpec(**drawn(rng, config.lanes, 2), flat=flat, rounding=rounding)


def _make(rng: np.random.Generator, operator: str, spec: Any) -> Case:
    source, count = activation(rng, spec), spec.channels
    step = float(source.scale)
    gain = rng.standard_normal(count)
    if spec.flat:
        gain[:: spec.flat] = 0
    gain[-1] = gain[-1] or 1.0
    real = {
        "gain": gain,
        "shift": rng.standard_normal(count),
        "mean": rng.standard_normal(count) * 60 * step,
        "variance": (rng.uniform(40, 90, count) * step) ** 2,
    }
    arrays = {name: values.astype(np.float32) for name, values in real.items()}
    case = Case(operator, spec, (source,), np.float32(1), 0, arrays=arrays)
    scale = fitting_scale(_normed(case, source.reals.astype(np.float64)), spec)
    return replace(case, scale=scale, zero=output_zero(rng, spec, 1))


def _line(case: Case) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Factor and offset by channel."""
    gain, shift, mean, variance = (case.arrays[one].astype(np.float64) for one in STATISTICS)
    factor = gain / np.sqrt(variance + EPSILON)
    return factor, shift - mean * factor


def _normed(case: Case, values: NDArray[np.float64]) -> NDArray[np.float64]:
    factor, offset = (one.reshape(1, -1, 1, 1) for one in _line(case))
    return np.asarray(values * factor + offset)


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    statistics = [constant(case.arrays[name], "float32") for name in STATISTICS]
    norm = relax.op.nn.batch_norm(sources[0], *statistics, axis=1, epsilon=EPSILON, training=False)
    return build.emit(relax.TupleGetItem(build.emit(norm), 0))


def _torch(case: Case, sources: list[Any]) -> Any:
    gain, shift, mean, variance = (
        torch.from_numpy(case.arrays[name]).to(sources[0].dtype) for name in STATISTICS
    )
    return torch.nn.functional.batch_norm(
        sources[0], mean, variance, gain, shift, training=False, eps=EPSILON
    )


def _error(case: Case, sources: list[Any], result: Any) -> Any:
    """Roundings of float32, of numbers as large as the mean's part."""
    factor, _ = _line(case)
    part = np.abs(case.arrays["mean"] * factor) + np.abs(case.arrays["shift"])
    largest = torch.from_numpy(part.astype(np.float32)).reshape(1, -1, 1, 1)
    return (result.abs() + 2 * largest) * 2.0**-20


def _cause(case: Case, golden: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """Both are as near to the real result as they may be."""
    (source,), scale = case.inputs, float(case.scale)
    centred = source.values.astype(np.float64) - source.zero
    real = _normed(case, centred * float(source.scale))
    if case.spec.relu:
        real = np.maximum(real, 0)
    low, high = np.iinfo(case.dtype).min, np.iinfo(case.dtype).max
    steps = np.clip(real / scale + case.zero, low, high)
    factor, _ = _line(case)
    unit = float(source.scale) * np.abs(factor).max() / scale / PARTS
    far = np.abs(golden.astype(np.float64) - steps).max() > 0.5 + unit / 2 + ERROR
    wrong = np.abs(expected.astype(np.float64) - steps).max() > 0.5 + ERROR
    text = "the offset is a whole number of 1/64 input steps, which shows beside ties"
    return None if far or wrong else text


OPERATORS = (
    Operator(
        "batch_norm",
        Facts(
            types="int8 or uint8 activations, float32 statistics",
            limits=("constant statistics along the channels", "offsets within int32"),
            instructions=("load", "store", "conv", "dwconv", "drain"),
            roundings=("qnnpack", "fp32", "onnxruntime"),
            exact=(),
            notes="a product with ±64 and an offset in 1/64 of an input step: other than PyTorch's "
            "kernels beside ties, by one step; behind a convolution it is part of its weights",
        ),
        _edges,
        _draw,
        _make,
        relax=_relax,
        torch=_torch,
        error=_error,
        steps=1,
        cause=_cause,
        spec=NormSpec,
    ),
)
