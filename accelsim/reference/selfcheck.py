"""Does PyTorch's qnnpack engine compute what it is defined to compute, on this very machine?

What comes in: a seed. What goes out: nothing, or a `ToolError`. It must not know models.

Other integer kernels of PyTorch saturate silently where the processor lacks an instruction set, so
no kernel serves as a golden before it has agreed with an exact NumPy definition here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from accelsim.errors import ToolError
from accelsim.quantize import qnnpack_engine
from accelsim.reference.torch_tensor import quantized_tensor

Stored = NDArray[np.uint8]
_ONE = np.float32(1)


def check_qnnpack(seed: int = 0) -> int:
    """Run every kind of kernel on random full-range cases; returns the outputs compared.

    `ToolError` names the kernel that deviates, or says that the engine is missing.
    """
    if "qnnpack" not in torch.backends.quantized.supported_engines:
        raise ToolError(
            "this PyTorch has no qnnpack engine, which the PyTorch golden needs: install a build "
            "whose torch.backends.quantized.supported_engines lists it"
        )
    compared = 0
    rng = np.random.default_rng(seed)
    with qnnpack_engine(), torch.no_grad():
        for kernel, actual, expected in _cases(rng):
            wrong = int(np.count_nonzero(actual != expected))
            if actual.shape != expected.shape or wrong:
                raise ToolError(
                    f"PyTorch's qnnpack {kernel} deviates from its exact definition in {wrong} of "
                    f"{expected.size} outputs on this machine, so it cannot serve as a golden"
                )
            compared += expected.size
    return compared


def _cases(rng: np.random.Generator) -> Iterator[tuple[str, Stored, Stored]]:
    for groups in (1, 12):
        yield ("depthwise conv2d" if groups > 1 else "conv2d", *_conv2d(rng, groups))
    yield ("linear", *_linear(rng))
    yield ("add", *_add(rng))
    yield ("average pool", *_pool(rng, "mean"))
    yield ("max pool", *_pool(rng, "max"))


def _stored(result: Any) -> Stored:
    return np.asarray(result.int_repr().numpy(), dtype=np.uint8)


def _bytes(rng: np.random.Generator, *shape: int) -> Stored:
    return rng.integers(0, 256, shape).astype(np.uint8)


def _requantized(total: NDArray[np.int64], multiplier: np.float32, zero_point: int) -> Stored:
    steps = np.rint(total.astype(np.float32) * multiplier).astype(np.int64)
    stored: Stored = np.clip(steps + zero_point, 0, 255).astype(np.uint8)
    return stored


def _scales(rng: np.random.Generator, terms: int) -> tuple[np.float32, np.float32, np.float32]:
    x, w = (np.float32(2.0 ** rng.uniform(-8, -3)) for _ in range(2))
    return x, w, np.float32(x * w * 75 * 75 * np.sqrt(terms) / 40)


def _conv2d(rng: np.random.Generator, groups: int) -> tuple[Stored, Stored]:
    x, weight = _bytes(rng, 2, 12, 7, 6), rng.integers(-128, 128, (12, 12 // groups, 3, 3))
    weight = weight.astype(np.int8)
    x_scale, w_scale, scale = _scales(rng, weight[0].size)
    packed = torch.ops.quantized.conv2d_prepack(
        quantized_tensor(weight, w_scale, 0), torch.zeros(12), [2, 1], [1, 1], [1, 1], groups
    )
    actual = torch.ops.quantized.conv2d(quantized_tensor(x, x_scale, 255), packed, float(scale), 99)
    centred = np.pad(x.astype(np.int64) - 255, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(centred, (3, 3), (2, 3))[:, :, ::2]
    grouped = windows.reshape(2, groups, 12 // groups, *windows.shape[2:])
    kernel = weight.astype(np.int64).reshape(groups, 12 // groups, 12 // groups, 3, 3)
    total = np.einsum("ngchwij,gocij->ngohw", grouped, kernel)
    expected = _requantized(total, (w_scale * x_scale) * (_ONE / scale), 99)
    return _stored(actual), expected.reshape(2, 12, *windows.shape[2:4])


def _linear(rng: np.random.Generator) -> tuple[Stored, Stored]:
    x, weight = _bytes(rng, 5, 70), rng.integers(-128, 128, (9, 70)).astype(np.int8)
    x_scale, w_scale, scale = _scales(rng, 70)
    packed = torch.ops.quantized.linear_prepack(
        quantized_tensor(weight, w_scale, 0), torch.zeros(9)
    )
    actual = torch.ops.quantized.linear(quantized_tensor(x, x_scale, 0), packed, float(scale), 130)
    total = x.astype(np.int64) @ weight.astype(np.int64).T
    return _stored(actual), _requantized(total, (w_scale * x_scale) * (_ONE / scale), 130)


def _add(rng: np.random.Generator) -> tuple[Stored, Stored]:
    """Scales that are powers of two: the sum is an exact multiple of 1/4, ties go away from 0."""
    a, b = _bytes(rng, 1, 5, 6, 7), _bytes(rng, 1, 5, 6, 7)
    quarter, one = np.float32(0.25), np.float32(1)
    left, right = quantized_tensor(a, quarter, 12), quantized_tensor(b, quarter, 250)
    actual = torch.ops.quantized.add(left, right, 1.0, 140)
    total = (a.astype(np.int64) - 12 + b.astype(np.int64) - 250) * float(quarter / one)
    steps = np.sign(total) * np.floor(np.abs(total) + 0.5)
    return _stored(actual), np.clip(steps + 140, 0, 255).astype(np.uint8)


def _pool(rng: np.random.Generator, kind: str) -> tuple[Stored, Stored]:
    x, scale = _bytes(rng, 2, 11, 6, 8), np.float32(2.0 ** rng.uniform(-8, -3))
    windows = sliding_window_view(x.astype(np.int64), (3, 2), (2, 3))[:, :, ::2, ::2]
    run = torch.nn.functional.max_pool2d if kind == "max" else torch.nn.functional.avg_pool2d
    actual = _stored(run(quantized_tensor(x, scale, 77), (3, 2), 2))
    if kind == "max":
        return actual, windows.max((-2, -1)).astype(np.uint8)
    total = windows.sum((-2, -1)) - 6 * 77
    return actual, _requantized(total, scale / (scale * np.float32(6)), 77)
