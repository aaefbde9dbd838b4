"""Functions of one value, which the NPU looks up in a table: every case has all 256 inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from accelsim.ops.case import Activation, Case, Spec, sized
from accelsim.ops.edges import OTHERS, common_edges, rounded
from accelsim.ops.functions import FUNCTIONS, Function
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.torch_kernels import exact_output
from accelsim.ops.values import activation, choice, drawn
from accelsim.spec.config import Config

INPUTS = 256
ERROR = 2.0**-21  # of exp, tanh and erf in float32, relative; absolute where results are near 1
STEPS = 230  # of the output, from the least result to the greatest one
NEAR_POLE = 12  # inputs from a pole whose results saturate
ALIKE = "with inputs this near or far apart most results are alike"
FAR = 2.0**24  # results beyond are left to saturate
SIGNED = 128


@dataclass(frozen=True, slots=True)
class FunctionSpec(Spec):
    """Inputs are at most about `reach` away from 0."""

    size: tuple[int, ...] = sized((6, 7), 1)
    reach: float = 6.0
    signed: bool = False  # int8 in PyTorch's graph too


def _edges(function: Function, config: Config) -> tuple[FunctionSpec, ...]:
    plain = FunctionSpec("plain", channels=config.lanes)
    sizes = {"one_row": (1, 37), "one_column": (37, 1), "one_channel": (16, 16)}
    common = tuple(
        replace(
            spec,
            size=sizes.get(spec.name, spec.size),
            channels=INPUTS + 1 if spec.name == "one_pixel" else spec.channels,
            few=ALIKE if spec.name.endswith("_scale") else spec.few,
        )
        for spec in common_edges(config, plain, 1)
        if spec.name != "ends_only"
    )
    others = OTHERS if "TFLite" in function.peers else ("onnxruntime",)
    names = ("plain", "zero_points_low", "smallest_scale", "largest_scale")
    return (
        *common,
        *rounded(common, names, others),
        replace(plain, name="signed", signed=True),
        replace(plain, name="sequence", size=(37,)),
        replace(plain, name="vector", channels=INPUTS + 3, size=()),
        replace(plain, name="far_inputs", reach=60.0, few=ALIKE),
    )


def _draw(function: Function, rng: np.random.Generator, config: Config) -> FunctionSpec:
    common = drawn(rng, config.lanes, 1)
    least = -(-INPUTS // int(np.prod(common["size"])))
    others = ("qnnpack", *(OTHERS if "TFLite" in function.peers else ("onnxruntime",)))
    return FunctionSpec(
        **common | {"channels": max(common["channels"], least)},
        reach=float(2.0 ** rng.uniform(0, 5)),
        rounding=choice(rng, others),
        signed=bool(rng.integers(2)),
    )


def _make(function: Function, rng: np.random.Generator, operator: str, spec: Any) -> Case:
    source = activation(rng, spec, scale=spec.input_scale or spec.reach / 128)
    every = np.resize(rng.permutation(INPUTS).astype(np.uint8), spec.shape)
    zero = source.zero if function.zero is None else function.zero
    source = replace(source, values=every, zero=zero)
    scale, zero = function.output or _fitting(function, source)
    if not spec.signed:
        return Case(operator, spec, (source,), np.float32(scale), zero)
    values = (every ^ np.uint8(SIGNED)).view(np.int8)
    source = replace(source, values=values, zero=source.zero - SIGNED)
    return Case(operator, spec, (source,), np.float32(scale), zero - SIGNED, dtype="int8")


def _fitting(function: Function, source: Activation) -> tuple[float, int]:
    """Scale and zero point for the results on all inputs but those at a pole."""
    centred = np.arange(INPUTS) - source.zero
    centred = centred[np.abs(centred) > (NEAR_POLE if function.pole else -1)]
    results = function.torch(torch.from_numpy(centred * float(source.scale))).numpy()
    results = results[np.abs(results) < FAR]
    low, high = min(float(results.min()), 0.0), max(float(results.max()), 0.0)
    scale = max(high - low, 2.0**-40) / STEPS
    return scale, int(np.clip(round(10 - low / scale), 0, 255))


def _error(case: Case, sources: list[Any], result: Any) -> Any:
    """Where x or the result is large, relative to it; else relative to 1."""
    largest = torch.maximum(sources[0].abs(), result.abs()).nan_to_num(posinf=0.0)
    return largest.clamp(min=1.0) * ERROR


def _cause(case: Case, golden: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """The result in double precision is so near a tie that float32 may take either side."""
    exact = exact_output(case)
    reals = np.maximum(np.maximum(np.abs(exact), np.abs(case.inputs[0].reals)), 1)
    limits = np.iinfo(case.dtype)
    steps = np.clip(exact / float(case.scale) + case.zero, limits.min, limits.max)
    reach = 0.5 + reals * ERROR / float(case.scale) + np.abs(steps) * ERROR
    apart = golden != expected
    if any((np.abs(one - steps) > reach)[apart].any() for one in (golden, expected)):
        return None
    return "the result in double precision lies within float32's error of a tie"


def _operator(function: Function) -> Operator:
    kernel = function.quantized
    tflite = ("tflite",) if "TFLite" in function.peers else ()
    qnnpack = ("PyTorch qnnpack",) if kernel else ()

    def quantized(case: Case, inputs: list[Any]) -> Any:
        zero = case.zero + (SIGNED if case.dtype == "int8" else 0)
        return kernel(inputs[0], float(case.scale), zero) if kernel else None

    make: Callable[..., Case] = partial(_make, function)
    return Operator(
        function.name,
        Facts(
            types="int8 or uint8 activations, a table of 256 int8 results",
            limits=("a function of one tensor and numbers, with a result for each value",),
            instructions=("load", "store", "lookup"),
            roundings=("qnnpack", "fp32", "onnxruntime", *tflite),
            exact=(*qnnpack, *function.peers),
            notes=function.notes,
        ),
        partial(_edges, function),
        partial(_draw, function),
        make,
        relax=lambda build, case, sources, quantized: function.relax(build, sources[0]),
        torch=lambda case, sources: function.torch(sources[0]),
        quantized=quantized if kernel else None,
        error=_error,
        steps=1,
        cause=_cause,
        spec=FunctionSpec,
    )


OPERATORS = tuple(_operator(function) for function in FUNCTIONS)
