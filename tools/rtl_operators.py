"""Which operators an RTL module takes part in, and one layer of each kind to run on it.

What comes in: a module's name. What goes out: an engine, operators of the committed vectors, and
the layer of a small network. The layers and the NumPy oracle that knows their results are those of
the tests. A module that every instruction passes through belongs to every operator.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Backend, Launch
from accelsim.emit import compile_region, isolate, launch_memory, read_tensor
from accelsim.spec.config import Config

CONVOLUTIONS = ("conv2d", "depthwise_conv2d", "linear")
SCALED = (*CONVOLUTIONS, "add", "avg_pool2d")
ALL = (*SCALED, "max_pool2d")

# The longest prefix of a module's name decides.
ENGINES: dict[str, tuple[str, tuple[str, ...]]] = {
    "npu_matrix": ("matrix", CONVOLUTIONS),
    "npu_matrix_mac": ("matrix", ("conv2d", "linear")),
    "npu_matrix_weights": ("matrix", ("conv2d", "linear")),
    "npu_matrix_depthwise": ("matrix", ("depthwise_conv2d",)),
    "npu_wgt_mem": ("matrix", CONVOLUTIONS),
    "npu_acc_mem": ("matrix and vector", CONVOLUTIONS),
    "npu_vector": ("vector", ALL),
    "npu_requant": ("vector", SCALED),
    "npu_fp_": ("vector", SCALED),
    "npu_divide_pow2": ("vector", ("add",)),
    "npu_load": ("load", ALL),
    "npu_store": ("store", ALL),
}
EVERYTHING = ("all engines", ALL)
CHANNELS = 13  # pad lanes and several blocks in edge8
SHAPE = (1, 9, 9, CHANNELS)
SAME = (1, 1, 1, 1)


def reach(module: str) -> tuple[str, tuple[str, ...]]:
    """Engine and operators that a module takes part in."""
    found = [prefix for prefix in ENGINES if module.startswith(prefix)]
    return ENGINES[max(found, key=len)] if found else EVERYTHING


def network() -> Any:
    """A region with a layer of each operator, random and always the same; `t0` to `t5`."""
    layers = importlib.import_module("tests.schedule.layers")
    rng = np.random.default_rng(7)
    return layers.region(
        SHAPE,
        layers.conv(rng, CHANNELS, CHANNELS, padding=SAME),
        layers.conv(rng, CHANNELS, CHANNELS, depthwise=True, padding=SAME),
        layers.add(rng, fixed=True),
        layers.pool("max", (3, 3), (2, 2), SAME),
        layers.pool("sum", (5, 5), (1, 1)),
        layers.conv(rng, CHANNELS, 10, (1, 1)),
        skips={2: "t0"},
    )


LAYER = {name: index for index, name in enumerate(("conv2d", "depthwise_conv2d", "add"))} | {
    name: index for index, name in enumerate(("max_pool2d", "avg_pool2d", "linear"), start=3)
}


def run_layers(
    operators: tuple[str, ...], config: Config, backend: Backend
) -> Iterator[tuple[str, int, int]]:
    """Run the layer of each operator alone, on the oracle's inputs: (operator, elements, wrong).

    Raises RtlError, TimeLimitError or ToolError of the backend. A run that ends with an error code
    counts every element as wrong.
    """
    oracle = importlib.import_module("tests.schedule.oracle")
    region = network()
    rng = np.random.default_rng(8)
    x = rng.integers(-128, 128, SHAPE).astype(np.int8)
    expected: dict[str, NDArray[np.int8]] = oracle.run(region, {"x": x})
    program = compile_region(region, config)
    for operator in operators:
        layer = region.layers[LAYER[operator]]
        cut, presets = isolate(program, LAYER[operator])
        inputs = {name: expected[name] for name in layer.inputs}
        result = backend(Launch(cut, launch_memory(cut, inputs), presets, 1_000_000))
        golden = expected[layer.output]
        actual = read_tensor(cut, dict(result.dram), layer.output)
        wrong = int(np.count_nonzero(actual != golden))
        yield operator, golden.size, golden.size if result.error_code else wrong
