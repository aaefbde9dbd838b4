"""Quantized ONNX networks that this project did not make: what is read, and what comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accelsim.artifacts import QuantizedModel
from accelsim.codegen import (
    CompiledModel,
    compile_model,
    export_library,
    load_library,
    run_library,
    set_backend,
)
from accelsim.importer import load_model
from accelsim.legalize import legalize
from accelsim.quantize import quantize
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS

KEYWORDS = "micro_kws_m_static_{}.onnx"
ALBERT = "albert_rxn_int8_qdq_L96"


def quantized(path: Path) -> QuantizedModel:
    """A file as `verify` takes it."""
    return quantize(load_model(str(path)))


def test_both_forms_of_a_network_have_the_same_layers(data: Path) -> None:
    forms = [legalize(quantized(data / "onnx" / KEYWORDS.format(x))) for x in ("qdq", "qoperator")]
    names = [[n.removesuffix("_quant") for n in form.layers] for form in forms]
    renaming = "micro_kws/average_pooling2d_1/AvgPool__53"  # has integers of its own in QDQ form
    assert [n for n in names[0] if n != renaming] == names[1]
    for form in forms:
        assert [op.op for op in form.host_ops if not op.boundary] == []


def test_transformer_leaves_floats_between_quantizes_to_the_host(data: Path) -> None:
    placed = legalize(quantized(data / "onnx" / f"{ALBERT}.onnx"))
    products = [name for name in placed.layers if "atMul" in name or "matmul" in name]
    assert len(products) == 99
    host = {op.name: op for op in placed.host_ops if not op.boundary}
    norms = [name for name in host if "layer_norm" in name]
    assert len(norms) == 26
    assert [name for name in host if name not in norms] == ["node_where"]
    assert "no quantize stands between its add and layer_norm" in host["node_layer_norm_2"].reason
    assert "the result of its layer_norm is used in float32" in host["node_layer_norm_1"].reason


@pytest.fixture(scope="module")
def compiled(data: Path) -> CompiledModel:
    """The transformer for `base16`."""
    return compile_model(quantized(data / "onnx" / f"{ALBERT}.onnx"), CONFIGS["base16"])


@pytest.mark.campaign
def test_transformer_finds_masked_tokens_on_the_simulator(
    data: Path, compiled: CompiledModel, tmp_path: Path
) -> None:
    machine = load_library(export_library(compiled, tmp_path / "model.so"))
    set_backend(Simulator(compiled.config).run)
    with np.load(data / "onnx" / "albert_rxn_io.npz") as content:
        tokens, places, targets = (
            content[name] for name in ("masked_ids", "masked_pos", "masked_target")
        )
    attention = np.ones((1, tokens.shape[1]), np.int64)
    right = 0
    for number, (place, target) in enumerate(zip(places, targets, strict=True)):
        (logits,) = run_library(machine, [tokens[number : number + 1], attention])
        right += int(logits[0, place].argmax() == target)
    assert len(targets) == 134 and right >= 132
