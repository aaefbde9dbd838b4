"""Float ONNX operators in small networks: quantized and compiled, each on the NPU or on the host.

The host's layers have a reason; nothing fails. Numbers are the importer's tests'.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelsim.codegen.compile import compile_model
from accelsim.importer.onnx import load_onnx
from accelsim.quantize import quantize
from accelsim.spec.config import CONFIGS
from tests.importer.onnx_files import FLOAT, model, node
from tests.importer.test_float_onnx_forms import CASES, X, ints, real

INNER = {
    **{name: CASES[name][0:2] for name in ("pad_cut", "pad_edge_channels", "resize_ceil", "back")},
    **{name: CASES[name][0:2] for name in ("average_same", "average_dilated", "lp_pool", "lrn")},
    **{name: CASES[name][0:2] for name in ("transposed_same", "prelu_elements", "selu_own")},
    **{name: CASES[name][0:2] for name in ("max_pool_wide", "mean_of_three", "celu", "lp_normal")},
    "einsum": (node("Einsum", "x w", "y", equation="bchw,oc->bohw"), {"w": real(6, 6)}),
    "softsign": (node("Softsign", "x", "y"), {}),
    "round": (node("Round", "x", "y"), {}),
    "sin": (node("Sin", "x", "y"), {}),
    "swish": (node("Mul", "x g", "y"), {}),
    "mean_variance": (node("MeanVarianceNormalization", "x", "y"), {}),
    "instance": (node("InstanceNormalization", "x s b", "y"), {"s": real(6), "b": real(6)}),
    "tile": (node("Tile", "x r", "y"), {"r": ints(1, 1, 2, 1)}),
    "cumulative": (node("CumSum", "x a", "y"), {"a": ints(2)}),
    "squares": (node("ReduceSumSquare", "x", "y", axes=[1]), {}),
}
HOST = {"lrn", "lp_normal", "mean_variance", "cumulative", "instance"}
"""Of which a part has no integer form."""


def network(inner: Any, constants: dict[str, np.ndarray]) -> bytes:
    """A convolution, the operator, and a product behind it that gives it a scale."""
    weights = {"w0": real(6, 6, 1, 1), "k": np.float32(0.7)}
    nodes = [node("Conv", "x0 w0", "x", "first")]
    if "g" in inner.input:
        nodes.append(node("Sigmoid", "x", "g", "gate"))
    nodes += [inner, node("Mul", "y k", "z", "scaled")]
    proto = model(nodes, {**constants, **weights}, {"x0": (FLOAT, X)}, ["z"])
    return bytes(proto.SerializeToString())


def test_a_recurrent_layer_runs_step_by_step_on_the_npu(tmp_path: Path) -> None:
    gru = node("GRU", "x w r b", "y h", "gru", hidden_size=8)
    weights = {"w": real(1, 24, 8), "r": real(1, 24, 8), "b": real(1, 48), "k": np.float32(0.5)}
    proto = model([gru, node("Mul", "h k", "z", "end")], weights, {"x": (FLOAT, (3, 1, 8))}, ["z"])
    path = tmp_path / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    source = replace(load_onnx(path, "net.onnx"), drawn_examples=False)
    compiled = compile_model(quantize(source), CONFIGS["edge8"])
    layers = {layer.name for region in compiled.regions for layer in region.layers}
    assert {"gru/input", "gru/step_2/back", "gru/step_2/gate_1_1", "gru/step_2/hidden"} <= layers
    assert [one.name for one in compiled.host_ops if not one.boundary] == []


@pytest.mark.parametrize("name", INNER)
def test_a_network_with_the_operator_compiles(name: str, tmp_path: Path) -> None:
    inner, constants = INNER[name]
    inner.name = "tested"
    path = tmp_path / "net.onnx"
    path.write_bytes(network(inner, constants))
    source = replace(load_onnx(path, "net.onnx"), drawn_examples=False)
    compiled = compile_model(quantize(source), CONFIGS["edge8"])
    layers = [layer.name for region in compiled.regions for layer in region.layers]
    assert "first" in layers
    host = [one for one in compiled.host_ops if not one.boundary]
    assert all(one.reason and one.name.startswith("tested") for one in host)
    assert bool(host) == (name in HOST)
