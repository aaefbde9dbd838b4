"""Pooling: maxima over windows, means over whole maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Pair, Spec, sized
from accelsim.ops.edges import common_edges, rounded, square_beyond
from accelsim.ops.modules import Builder
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.values import MATRIX_ERROR, activation, choice, drawn, size_between
from accelsim.spec.config import Config

functional = torch.nn.functional
KERNELS = ((2, 2), (3, 3), (2, 3), (5, 1), (3, 2))  # PyTorch's kernel refuses (1, 1)


@dataclass(frozen=True, slots=True)
class WindowSpec(Spec):
    """A window that moves over a map."""

    kernel: Pair = sized((3, 3), 2)
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)


def max_pool_edges(config: Config) -> tuple[WindowSpec, ...]:
    """Windows of 3×3 with padding, and others."""
    plain = WindowSpec("plain", channels=config.lanes, stride=(2, 2), size=(9, 8), padding=(1, 1))
    return (
        *common_edges(config, plain, 1),
        *rounded((replace(plain, relu=True),), ("plain",)),
        replace(plain, name="no_overlap", kernel=(2, 2), padding=(0, 0)),
        replace(plain, name="stride_one", stride=(1, 1)),
        replace(plain, name="whole_map", kernel=(9, 8), padding=(0, 0), stride=(1, 1)),
        replace(plain, name="long_window", kernel=(1, 5), padding=(0, 2)),
        replace(plain, name="dilation", dilation=(2, 3), size=(11, 13)),
        replace(plain, name="dilation_stride", dilation=(3, 2), stride=(2, 3), size=(12, 13)),
        replace(
            plain, name="dilation_beyond", dilation=(2, 2), size=square_beyond(config.act_rows)
        ),
    )


def global_pool_edges(config: Config) -> tuple[Spec, ...]:
    """Means over whole maps; near the zero point the sums lie on ties."""
    plain = Spec("plain", channels=config.lanes, size=(7, 7))
    large = {"beyond_activations": square_beyond(config.act_rows // 4)}
    edges = common_edges(config, plain, 1)
    ties = replace(
        plain, name="near_ties", size=(4, 4), values="narrow", few="means of narrow values"
    )
    return (
        *(replace(spec, size=large.get(spec.name, spec.size)) for spec in edges),
        ties,
        *rounded((plain, ties), ("plain", "near_ties")),
    )


def _draw_max(rng: np.random.Generator, config: Config) -> WindowSpec:
    common, kernel = drawn(rng, config.lanes, 1), choice(rng, KERNELS)
    common["size"] = tuple(max(s, k) for s, k in zip(common["size"], kernel, strict=True))
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    return WindowSpec(
        **common, kernel=kernel, stride=size_between(rng, 1, 4), padding=(padding[0], padding[1])
    )


def _draw_global(rng: np.random.Generator, config: Config) -> Spec:
    return Spec(**drawn(rng, config.lanes, 1) | {"size": size_between(rng, 1, 14)})


def legal_window(spec: WindowSpec) -> bool:
    """Whether the window fits the padded map and half of it lies on the map, as PyTorch wants."""
    axes = zip(spec.size, spec.kernel, spec.padding, spec.dilation, strict=True)
    return all(s + 2 * p >= (k - 1) * d + 1 and k >= 2 * p for s, k, p, d in axes)


def make_unscaled(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    """One input whose quantization the output keeps."""
    source = activation(rng, spec)
    return Case(operator, spec, (source,), source.scale, source.zero)


def _relax_max(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    window = (list(spec.kernel), list(spec.stride), [*spec.padding, *spec.padding])
    return build.emit(relax.op.nn.max_pool2d(sources[0], *window, list(spec.dilation)))


def _relax_mean(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    return build.emit(relax.op.mean(sources[0], [2, 3], keepdims=True))


def _torch_max(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return functional.max_pool2d(sources[0], spec.kernel, spec.stride, spec.padding, spec.dilation)


def _quantized_max(case: Case, sources: list[Any]) -> Any:
    """qnnpack's kernel, whose dilated windows read beyond the padding: these run in floats."""
    spec: Any = case.spec
    x = sources[0]
    if spec.dilation == (1, 1):
        return _torch_max(case, sources)
    stored = _torch_max(case, [x.int_repr().to(torch.float32)]).to(torch.uint8)
    return torch._make_per_tensor_quantized_tensor(stored, x.q_scale(), x.q_zero_point())


def _torch_mean(case: Case, sources: list[Any]) -> Any:
    return functional.adaptive_avg_pool2d(sources[0], 1)


def _mean_error(case: Case, sources: list[Any], result: Any) -> Any:
    terms = float(np.prod(case.spec.size))
    return _torch_mean(case, [sources[0].abs()]) * (terms * MATRIX_ERROR)


OPERATORS = (
    Operator(
        "max_pool2d",
        Facts(
            types="int8 or uint8 activations",
            limits=("output quantized as the input is",),
            instructions=("load", "store", "pool"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("PyTorch qnnpack", "ONNX Runtime", "LiteRT"),
        ),
        max_pool_edges,
        _draw_max,
        make_unscaled,
        relax=_relax_max,
        torch=_torch_max,
        quantized=_quantized_max,
        legal=legal_window,
        spec=WindowSpec,
    ),
    Operator(
        "global_avg_pool2d",
        Facts(
            types="int8 or uint8 activations, int32 sums",
            limits=("maps whose sums cannot leave int32",),
            instructions=("load", "store", "pool"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("PyTorch qnnpack", "LiteRT"),
        ),
        global_pool_edges,
        _draw_global,
        make_unscaled,
        relax=_relax_mean,
        torch=_torch_mean,
        quantized=_torch_mean,
        error=_mean_error,
    ),
)
