"""ONNX's own node tests on this project's PyTorch modules.

What comes in: the tests of `onnx.backend.test`, built in process. What goes out: a verdict each:
equal, different, or the importer's refusal. A test gives all that its operator reads as inputs of a
model; here it runs in up to three forms: as it is, with all inputs but the first as constants, and
with all but the last. Each form that the importer takes must give what ONNX says. Tests in float64
and float16 run in float32, but for those of casts.
"""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from accelsim.errors import ModelError
from accelsim.importer.floats import from_onnx
from accelsim.importer.onnx import parse_onnx
from accelsim.importer.onnx.reader import OLDEST

LIST = Path(__file__).with_name("onnx_nodes.toml")
RTOL, ATOL = 1e-3, 1e-5  # ONNX's own rtol is 1e-3, its atol 1e-7
HALF = 2e-3  # of what was computed in float16
OTHER_FLOATS = (TensorProto.DOUBLE, TensorProto.FLOAT16)
CASTS = ("Cast", "CastLike", "BitCast", "QuantizeLinear", "DequantizeLinear")
FAILURES = (ModelError, ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one test."""

    forms: int  # those that ran
    wrong: str  # what differs; empty where nothing does
    refused: str  # why no form ran; empty where one did


@cache
def node_tests() -> dict[str, Any]:
    """All tests by name; building them takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {one.name: one for one in collect_testcases() if one.model is not None}
    return {name.removeprefix("test_"): found[name] for name in sorted(found)}


def operator_of(name: str) -> str:
    """The operator of a test of one node; "" for one of several, which spells a function out."""
    nodes = node_tests()[name].model.graph.node
    return str(nodes[0].op_type) if len(nodes) == 1 and "_expanded" not in name else ""


@cache
def listed() -> dict[str, str]:
    """Test → why it is refused, as the committed list has it."""
    tables = tomllib.loads(LIST.read_text(encoding="utf-8"))["refused"]
    return {name: table["reason"] for table in tables for name in table["tests"]}


@cache
def verdict(name: str) -> Verdict:
    """Run a test in all forms."""
    test, refusals, forms = node_tests()[name], [""], 0
    for given, expected in test.data_sets:
        try:
            inputs, wanted = [_array(one) for one in given], [_array(one) for one in expected]
        except (TypeError, ValueError, AttributeError):
            return Verdict(0, "", "its data are no tensors")
        model, rtol = _in_float32(test.model, inputs, wanted)
        for kept in _forms(len(inputs)):
            try:
                wrong = _difference(model, inputs, wanted, kept, rtol)
            except ModelError as error:
                refusals.append(str(error))
                continue
            forms += 1
            if wrong:
                return Verdict(forms, f"inputs {sorted(kept)} at run time: {wrong}", "")
    return Verdict(forms, "", "" if forms else _plain(refusals))


def _plain(refusals: list[str]) -> str:
    """The last refusal without names and numbers: that of constants, where there may be some."""
    text = refusals[-1]
    text = re.sub(r"^(model test: )?(the shape of tensor|layer|input) '[^']*':? ", "", text)
    text = re.sub(r"^\((\w+)\) ", r"\1 ", text)
    text = re.sub(r"(of|model) (model )?test ", "", text).split(";")[0]
    text = re.sub(r"^cannot be .* not implemented for '\w+'\)", "PyTorch has none for it", text)
    text = re.sub(r"\b(B?FLOAT\w*|U?INT\d+|float16|float64|bfloat16)\b", "others", text)
    return re.sub(r"\(\d+(, \d+)*,?\)", "(…)", text).removesuffix(", which is not supported")


def _forms(count: int) -> Iterator[set[int]]:
    """Which inputs are given at run time."""
    yield set(range(count))
    if count > 1:
        yield {count - 1}
        yield {0}


def _array(one: Any) -> np.ndarray:
    found = one if isinstance(one, np.ndarray | np.generic) else numpy_helper.to_array(one)
    return np.asarray(found)


def _in_float32(
    model: ModelProto, inputs: list[np.ndarray], wanted: list[np.ndarray]
) -> tuple[ModelProto, float]:
    """The model and its data in float32, and what they may differ by."""
    proto = ModelProto()
    proto.CopyFrom(model)
    for one in proto.opset_import:  # the oldest that is read; these operators are older and alike
        one.version = max(one.version, OLDEST) if one.domain == "" else one.version
    if any(node.op_type in CASTS for node in proto.graph.node):
        return proto, RTOL
    values = (*proto.graph.input, *proto.graph.output)
    half = any(one.type.tensor_type.elem_type == TensorProto.FLOAT16 for one in values)
    for one in values:
        if one.type.tensor_type.elem_type in OTHER_FLOATS:
            one.type.tensor_type.elem_type = TensorProto.FLOAT
    for arrays in (inputs, wanted):
        for place, array in enumerate(arrays):
            if array.dtype in (np.float64, np.float16):
                arrays[place] = array.astype(np.float32)
    return proto, HALF if half else RTOL


def _difference(
    model: ModelProto,
    inputs: list[np.ndarray],
    wanted: list[np.ndarray],
    kept: set[int],
    rtol: float,
) -> str:
    proto = ModelProto()
    proto.CopyFrom(model)
    values = list(proto.graph.input)
    for place in sorted(set(range(len(inputs))) - kept, reverse=True):
        one = values[place]
        proto.graph.initializer.append(numpy_helper.from_array(inputs[place], one.name))
        proto.graph.input.remove(one)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = from_onnx(parse_onnx(proto.SerializeToString(), "test"))
        given = [torch.from_numpy(inputs[place].copy()) for place in sorted(kept)]
        try:
            with torch.no_grad():
                found = module(*given)
        except FAILURES as error:
            return f"{type(error).__name__}: {error}"
    results = found if isinstance(found, tuple) else (found,)
    if len(results) != len(wanted):
        return f"{len(results)} results and not {len(wanted)}"
    for got, expected in zip(results, wanted, strict=True):
        array = got.numpy()
        if array.shape != expected.shape or array.dtype != expected.dtype:
            return f"{array.dtype} of shape {array.shape}, not {expected.dtype} {expected.shape}"
        if not np.allclose(array, expected, rtol=rtol, atol=ATOL, equal_nan=True):
            return f"the largest difference is {np.abs(array - expected).max()}"
    return ""
