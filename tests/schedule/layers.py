"""Random layers and regions for schedule and emission tests."""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import (
    Add,
    Conv2d,
    FixedAdd,
    Layer,
    LayerOp,
    Pool2d,
    Region,
    Requantize,
    Shape4,
    Tensor,
)


def conv(
    rng: np.random.Generator,
    in_channels: int,
    out_channels: int,
    kernel: tuple[int, int] = (3, 3),
    *,
    depthwise: bool = False,
    zero_points: tuple[int, int] = (3, 0),
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
) -> Conv2d:
    """Full-range weights; multipliers such that outputs spread over int8 and saturate a little."""
    taps = kernel[0] * kernel[1] * (1 if depthwise else in_channels)
    shape = (out_channels, *kernel, 1 if depthwise else in_channels)
    scale = 60 / (74 * 74 * np.sqrt(taps)) * rng.uniform(0.5, 2, out_channels)
    return Conv2d(
        rng.integers(-128, 128, shape).astype(np.int8),
        rng.integers(-3000, 3000, out_channels).astype(np.int32),
        zero_points[0],
        zero_points[1],
        Requantize(scale.astype(np.float32), int(rng.integers(-60, 60)), -100, 127),
        stride,
        padding,
        dilation,
        depthwise,
    )


def add(rng: np.random.Generator, fixed: bool = False) -> Add:
    """A sum in mode fp32, or with `fixed` in that mode, with one multiplier that makes ties."""
    sa, sb = rng.uniform(0.01, 0.1, 2).astype(np.float32)
    inverse = np.float32(1) / np.float32(rng.uniform(0.05, 0.15))
    factors = FixedAdd(1 << 20, int(rng.integers(1 << 21, 1 << 22)), 22) if fixed else None
    return Add(-7, 12, sa, sb, inverse, int(rng.integers(-30, 30)), -128, 127, factors)


def pool(
    kind: str,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    zero_point: int = -9,
) -> Pool2d:
    count = np.float32(1 / (kernel[0] * kernel[1]))
    requantize = Requantize(np.array([count * 2]), 4, -128, 127) if kind == "sum" else None
    return Pool2d(kind, kernel, stride, padding, zero_point, requantize, -120, 120)


def output_size(size: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """Output elements of a convolution or pooling along one axis, floor mode."""
    return (size + before + after - (kernel - 1) * dilation - 1) // stride + 1


def output_shape(shape: tuple[int, int, int, int], op: LayerOp) -> tuple[int, int, int, int]:
    n, h, w, c = shape
    if not isinstance(op, Conv2d | Pool2d):
        return shape
    kernel = op.weight.shape[1:3] if isinstance(op, Conv2d) else op.kernel
    dilation = op.dilation if isinstance(op, Conv2d) else (1, 1)
    channels = op.weight.shape[0] if isinstance(op, Conv2d) else c
    t, left, b, r = op.padding
    return (
        n,
        output_size(h, kernel[0], op.stride[0], dilation[0], t, b),
        output_size(w, kernel[1], op.stride[1], dilation[1], left, r),
        channels,
    )


def region(
    shape: tuple[int, int, int, int], *ops: LayerOp, skips: dict[int, str] | None = None
) -> Region:
    """A chain of layers; an addition takes the tensor before it and the one named in `skips`."""
    tensors = {"x": Tensor("x", shape, 3, 0.1)}
    layers, last = [], "x"
    for i, op in enumerate(ops):
        name = f"t{i}"
        inputs = (last, (skips or {}).get(i, "x")) if isinstance(op, Add) else (last,)
        tensors[name] = Tensor(name, output_shape(tensors[last].shape, op), 0, 0.1)
        kind = type(op).__name__.lower()
        layers.append(Layer(name, kind, (name,), inputs, name, op))
        last = name
    return Region("chain", tensors, ("x",), (last,), tuple(layers))


def one(op: LayerOp, out: Shape4, *inputs: Shape4) -> Region:
    """A region of one layer `t0` that reads `x0`, `x1`, …"""
    names = tuple(f"x{i}" for i in range(len(inputs)))
    tensors = {n: Tensor(n, shape, 0, 0.1) for n, shape in zip(names, inputs, strict=True)}
    tensors["t0"] = Tensor("t0", out, 0, 0.1)
    layer = Layer("t0", type(op).__name__.lower(), ("t0",), names, "t0", op)
    return Region("one", tensors, names, ("t0",), (layer,))


def end(
    rng: np.random.Generator, mode: str, factor: float, channels: int = 1, spread: float = 2.0
) -> Requantize:
    """A requantization of any mode by about `factor`, one multiplier a channel."""
    factors = factor * rng.uniform(1 / spread, spread, channels)
    zero_point = int(rng.integers(-20, 20))
    if mode == "fp32":
        return Requantize(factors.astype(np.float32), zero_point, -110, 120)
    mantissa, exponent = np.frexp(factors)
    words = np.minimum(np.rint(mantissa * 2.0**31), 2.0**31 - 1).astype(np.int32)
    return Requantize(words, zero_point, -110, 120, mode, exponent.astype(np.int32))


MODES = ("fp32", "tflite", "half_up", "half_even", "half_away")


def random_input(rng: np.random.Generator, shape: tuple[int, int, int, int]) -> np.ndarray:
    return rng.integers(-128, 128, shape).astype(np.int8)
