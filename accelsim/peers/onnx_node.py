"""ONNX's own node tests, built in process, for the operators that the NPU runs.

What comes in: the tests of `onnx.backend.test` with one node. What goes out: `PeerCase`s whose
expected outputs are the tests'. Three kinds can be compared bit for bit with a machine of 8 bits:
quantized operators; whole numbers, seen through windows of 8 bits; and operators that only move or
order values (see `onnx_order`). Real numbers of an unknown scale are out of scope. Operators that
only rename axes (Reshape, Squeeze, …) never reach the NPU and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from accelsim.peers.case import OutOfScopeError, PeerCase, Trial, UnreadableError
from accelsim.peers.onnx_order import ORDER
from accelsim.peers.onnx_quantized import QUANTIZED
from accelsim.peers.onnx_test import NodeTest
from accelsim.peers.onnx_whole import WHOLE

REALS = "its real numbers have no scale with which 8 bits hold them"
HOST = "the host quantizes and dequantizes, the NPU sees integers only"
READERS: dict[str, Callable[[NodeTest], Trial]] = {**ORDER, **WHOLE, **QUANTIZED}
ON_HOST = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
REAL = (
    *("LeakyRelu", "PRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu", "Elu", "Mish"),
    *("Swish", "Exp", "Reciprocal", "Softmax", "LayerNormalization", "BatchNormalization"),
)


def discover(suite: str, _folder: Path) -> Iterator[PeerCase]:
    """Every test of one node whose operator is known here, by name."""
    for test in _tests():
        yield PeerCase(suite, test.name.removeprefix("test_"), partial(_load, test))


@cache
def _tests() -> tuple[Any, ...]:
    """By name; ONNX builds all that it has, which takes seconds."""
    tests = {test.name: test for test in collect_testcases() if _wanted(test)}
    return tuple(tests[name] for name in sorted(tests))


def _wanted(test: Any) -> bool:
    """Expanded tests are the same ones, as several nodes."""
    if test.model is None or "_expanded" in test.name or len(test.model.graph.node) != 1:
        return False
    return test.model.graph.node[0].op_type in (*READERS, *ON_HOST, *REAL)


def _load(test: Any) -> Trial:
    node = test.model.graph.node[0]
    if node.op_type in ON_HOST:
        raise OutOfScopeError(HOST)
    if node.op_type in REAL:
        raise OutOfScopeError(REALS)
    given, results = test.data_sets[0]
    arrays = [_array(one) for one in (*given, *results)]
    named = dict(zip([i.name for i in test.model.graph.input], arrays, strict=False))
    inputs = [named.get(name) for name in node.input]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    outputs = arrays[len(given) :]
    return READERS[node.op_type](NodeTest(node.op_type, inputs, outputs, attributes))


def _array(one: Any) -> np.ndarray:
    if isinstance(one, np.ndarray | np.generic):
        return np.asarray(one)
    try:
        return numpy_helper.to_array(one)
    except (TypeError, ValueError, AttributeError) as error:
        raise UnreadableError(f"a test's data is {type(one).__name__}: {error}") from None
