"""CMSIS-NN's unit tests: every folder of `cmsis_nn/` is a case, of one kernel or a whole network.

What comes in: the data folder. What goes out: `PeerCase`s whose expected outputs are the goldens
that CMSIS-NN ships. A folder whose config headers are named `layer_<number>_<kind>_config_data.h`
is a network, its layers in the order of their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from accelsim.artifacts import I8, LayerOp, Pool2d, Shape4
from accelsim.peers import cmsis_layers as layers
from accelsim.peers.case import PeerCase, Trial, UnreadableError, binary, chain
from accelsim.peers.definition import compute
from accelsim.peers.headers import Headers, Names, names, origins, read_headers

LAYER = re.compile(r"layer_(\d+)_(\w+?)_config_data\.h")
Reader = Callable[[Names], layers.Kernel]
NETWORK: Mapping[str, Reader] = {
    "conv_2d": layers.conv,
    "depthwise_conv_2d": layers.depthwise_conv,
    "average_pool_2d": layers.average_pool,
    "max_pool_2d": layers.max_pool,
    "fully_connected": layers.fully_connected,
    "softmax": layers.softmax,
}
# Macros by which a kernel is known, the first row whose macros are all there.
KERNELS: tuple[tuple[tuple[str, ...], Reader], ...] = (
    (("LHS_ROWS", "RHS_ROWS"), layers.batch_matmul),
    (("IN_DIM", "PERM"), layers.transpose),
    (("PRE_PAD_H", "PAD_VALUE"), layers.pad),
    (("LAYER_TYPE", "CHANNEL_2"), layers.extremum),
    (("INPUT1_MULT", "INPUT2_MULT"), layers.add),
    (("INPUT1_OFFSET", "INPUT2_OFFSET"), layers.multiply),
    (("ROW_SIZE", "DIFF_MIN"), layers.softmax),
    (("PAD_X_WITH_OFFSET", "FILTER_X"), layers.conv_transpose),
    (("CH_MULT", "FILTER_X"), layers.depthwise_conv),
    (("OUT_CH", "FILTER_X"), layers.conv),
    (("OUT_CH", "ACCUMULATION_DEPTH"), layers.fully_connected),
)


def discover(suite: str, folder: Path) -> Iterator[PeerCase]:
    """Every folder of `cmsis_nn/`, by name."""
    root = folder / suite
    for case in sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else ():
        yield PeerCase(suite, case.name, partial(load, case))


def load(folder: Path) -> Trial:
    """Read one case. Raises UnreadableError naming what is missing or unknown."""
    headers = read_headers(folder)
    numbered = {int(m[1]): m[2] for name in headers.files if (m := LAYER.fullmatch(name))}
    if numbered:
        return _network(folder.name, headers, dict(sorted(numbered.items())))
    found = names(headers, folder.name)
    kernel = _reader(found)(found)
    if len(kernel.inputs) == 1:
        source = _activation(found, kernel.inputs[0], *layers.INPUTS)
        region, inputs = chain(folder.name, source, *kernel.ops)
    else:
        ((op, shape),) = kernel.ops
        a, b = _operands(found, kernel)
        region, inputs = binary(folder.name, a, b, op, shape)
    output = region.outputs[0]
    expected = _activation(found, region.tensors[output].shape, *layers.OUTPUTS)
    return Trial(region, inputs, {output: expected})


def _reader(found: Names) -> Reader:
    for macros, reader in KERNELS:
        if found.has(*macros):
            return reader
    if found.has("FILTER_W", "INPUT_C") and "weights" not in found.arrays:
        return _pool
    raise UnreadableError(
        f"{found.where}: no known kernel has the macros {', '.join(sorted(found.macros))}"
    )


def _pool(found: Names) -> layers.Kernel:
    """Headers of both poolings are alike; where the case's name says nothing, its golden does."""
    if "avg" in found.where or "average" in found.where:
        return layers.average_pool(found)
    kernel = layers.max_pool(found)
    if "max" in found.where:
        return kernel
    ((op, shape),) = kernel.ops
    assert isinstance(op, Pool2d)
    source = _activation(found, kernel.inputs[0], *layers.INPUTS)
    largest = compute(op, [source], shape)
    same = np.array_equal(largest, _activation(found, shape, *layers.OUTPUTS))
    return kernel if same else layers.average_pool(found)


def _operands(found: Names, kernel: layers.Kernel) -> tuple[I8, I8]:
    """Both activations of a kernel; the first of a matrix product has its batches repeated."""
    if not found.has("LHS_ROWS"):
        a = _activation(found, kernel.inputs[0], "input1", "input_tensor_1")
        return a, _activation(found, kernel.inputs[1], "input2", "input_tensor_2")
    name = "lhs_transposed_tensor" if found.number("ADJ_X") else "lhs_input_tensor"
    a = _activation(found, kernel.inputs[0], name)
    b = _activation(found, kernel.inputs[1], "rhs_input_tensor")
    batches = kernel.ops[0][1][:2]
    wanted = (*batches, *a.shape[2:])
    return np.ascontiguousarray(np.broadcast_to(a, wanted)), b


def _activation(found: Names, shape: Shape4, *keys: str) -> I8:
    values = found.array(*keys)
    if values.dtype != np.int8:
        raise UnreadableError(f"{found.where}: {keys[0]} is {values.dtype}, expected int8")
    if values.size != np.prod(shape):
        raise UnreadableError(
            f"{found.where}: {keys[0]} has {values.size} values, {shape} needs {np.prod(shape)}"
        )
    return values.astype(np.int8).reshape(shape)


def _network(case: str, headers: Headers, numbered: Mapping[int, str]) -> Trial:
    ops: list[tuple[LayerOp, Shape4]] = []
    shapes: list[Shape4] = []
    for number, kind in numbered.items():
        if kind not in NETWORK:
            raise UnreadableError(f"{case}: layer {number} is of the unknown kind {kind}")
        kernel = NETWORK[kind](_layer_names(case, headers, number, kind))
        if ops and np.prod(ops[-1][1]) != np.prod(kernel.inputs[0]):
            raise UnreadableError(
                f"{case}: layer {number} reads {kernel.inputs[0]}, the one before it gives "
                f"{ops[-1][1]}"
            )
        shapes.append(kernel.inputs[0])
        ops += kernel.ops
    ends = Names(case, {}, {_last(key): value for key, value in headers.arrays.items()})
    source = _activation(ends, shapes[0], "input")
    region, inputs = chain(case, source, *ops)
    output = region.outputs[0]
    expected = _activation(ends, region.tensors[output].shape, "ref")
    return Trial(region, inputs, {output: expected})


def _last(key: str) -> str:
    """The last word of an array's name that does not belong to a layer."""
    return key if "_layer_" in key else key.rsplit("_", 1)[-1]


def _layer_names(case: str, headers: Headers, number: int, kind: str) -> Names:
    file = f"layer_{number}_{kind}_config_data.h"
    prefix = f"{kind.upper()}_{number}_"
    macros = {
        key.removeprefix(prefix): headers.macros[key]
        for key in headers.files[file]
        if key.startswith(prefix)
    }
    mark = f"layer_{number}_{kind}_"
    arrays = {key.split(mark, 1)[1]: value for key, value in headers.arrays.items() if mark in key}
    known = origins(headers)
    places = {key: known[prefix + key] for key in macros}
    return Names(f"{case}, layer {number}", macros, arrays, places)
