"""Random convolutions and linear layers as QDQ modules, with the values for PyTorch's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.reference import qnnpack
from tests.reference.qdq import QdqModule, op

EDGES = (0, 255, 128)


@dataclass(frozen=True)
class Case:
    name: str
    kind: str  # "conv2d", "depthwise" or "linear"
    x: np.ndarray  # uint8
    x_scale: np.float32
    x_zero: int
    weight: np.ndarray
    w_scale: np.ndarray
    w_zero: np.ndarray
    bias: np.ndarray
    scale: np.float32
    zero: int
    relu: bool
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def expected(self) -> np.ndarray:
        """int8 NHWC from PyTorch's qnnpack kernel."""
        x = qnnpack.tensor(self.x, self.x_scale, self.x_zero)
        w = qnnpack.weight(self.weight, self.w_scale, self.w_zero)
        if self.kind == "linear":
            result = qnnpack.linear(x, w, self.bias, self.scale, self.zero)
            return qnnpack.nhwc(np.maximum(result, self.zero) if self.relu else result)
        result = qnnpack.conv2d(
            x,
            w,
            self.bias,
            self.scale,
            self.zero,
            relu=self.relu,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
        )
        return qnnpack.nhwc(result)


def random_case(rng: np.random.Generator, index: int) -> Case:
    """Parameters at their extremes as often as in between."""
    kind = ("conv2d", "depthwise", "linear", "conv2d")[index % 4]
    channels, outputs = (int(value) for value in rng.integers(1, 20, 2))
    kernel = [(1, 1), (3, 3), (5, 5), (2, 3), (1, 4)][int(rng.integers(5))]
    groups = channels if kind == "depthwise" else 1
    outputs = channels if kind == "depthwise" else outputs
    shape: tuple[int, ...] = (outputs, channels // groups, *kernel)
    extent: tuple[int, ...] = (2, channels, *(int(value) for value in rng.integers(5, 10, 2)))
    if kind == "linear":
        shape, extent = (outputs, channels), (3, channels)
    per_channel = bool(rng.integers(2))
    w_scale = (2.0 ** rng.uniform(-9, -4, outputs if per_channel else 1)).astype(np.float32)
    w_zero = np.zeros(w_scale.size, np.int64)
    if not per_channel and rng.integers(2):
        w_zero[:] = rng.integers(-128, 128)
    x_scale = np.float32(2.0 ** rng.uniform(-8, -2))
    spread = float(x_scale * w_scale.mean()) * 75 * 75 * np.sqrt(np.prod(shape[1:]))
    scale = np.float32(spread / 2.0 ** rng.uniform(3, 7))
    zeros = [int(rng.choice([*EDGES, rng.integers(256)])) for _ in range(2)]
    stride, padding = (
        (int(v) for v in rng.integers(1, 3, 2)),
        (int(rng.integers(k)) for k in kernel),
    )
    geometry: dict[str, Any] = {}
    if kind != "linear":
        geometry = {"stride": tuple(stride), "padding": tuple(padding), "groups": groups}
    return Case(
        name=f"{kind}{index}",
        kind=kind,
        x=rng.integers(0, 256, extent).astype(np.uint8),
        x_scale=x_scale,
        x_zero=zeros[0],
        weight=rng.integers(-128, 128, shape).astype(np.int8),
        w_scale=w_scale,
        w_zero=w_zero,
        bias=(rng.standard_normal(outputs) * scale * 20).astype(np.float32),
        scale=scale,
        zero=min(zeros[1], 254),
        relu=bool(rng.integers(2)),
        **geometry,
    )


def module_of(cases: list[Case], zero_shift: int = 0) -> Any:
    """One QDQ module with every case as a branch. `zero_shift` falsifies the input zero points."""
    module = QdqModule(**{f"x_{case.name}": case.x.shape for case in cases})
    results = []
    for case, source in zip(cases, module.inputs, strict=True):
        zero_point = case.x_zero + (zero_shift if case.x_zero < 128 else -zero_shift)
        q = module.quantize(source, f"in_{case.name}", case.x_scale, zero_point)
        w = module.weight(case.weight, case.w_scale, case.w_zero)
        value = module.dequantize(q)
        if case.kind == "linear":
            value = module.linear(value, w, case.bias)
        else:
            value = module.conv2d(
                value,
                w,
                case.bias,
                strides=list(case.stride),
                padding=[*case.padding, *case.padding],
                dilation=list(case.dilation),
                groups=case.groups,
            )
        value = module.emit(op.nn.relu(value)) if case.relu else value
        results.append(module.dequantize(module.quantize(value, case.name, case.scale, case.zero)))
    return module.module(*results)
