"""A TensorFlow Lite file is verified layer by layer against LiteRT's reference kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelsim.codegen import (
    compile_model,
    export_library,
    load_library,
    run_library,
    set_backend,
)
from accelsim.importer import load_model
from accelsim.peers.litert_model import tflite_outputs
from accelsim.quantize import quantize
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.verify import RunRecord, VerifyOptions, new_record, verify
from tests.quantize.tflite_models import EXAMPLES
from tests.verify.test_integers import check, waive
from tests.verify.tflite_nets import network

LAYERS = ("conv;relu", "block/depthwise", "block/add", "pool", "logits", "share")


def verified(folder: Path, data: bytes, **options: Any) -> RunRecord:
    path = folder / "net.tflite"
    path.write_bytes(data)
    chosen: dict[str, Any] = {"backends": ("sim",), "self_test": False, "stalls": False} | options
    run = VerifyOptions(model=str(path), config=CONFIGS["edge8"], out=folder, **chosen)
    record = new_record(run)
    verify(run, lambda _: None, record)
    return record


@pytest.mark.parametrize("floats", [False, True])
def test_network_equals_litert_in_every_layer(floats: bool, tmp_path: Path) -> None:
    record = verified(tmp_path, network(floats=floats))
    check(record, {"sim"}, len(LAYERS))
    assert tuple(layer.name for layer in record.layers) == LAYERS
    accumulated = [
        one
        for layer in record.layers
        for one in layer.compare
        if (one.golden, one.mode) == ("framework", "accumulated")
    ]
    assert len(accumulated) == len(LAYERS)
    assert all(one.status == "equal" and one.elements for one in accumulated)


def shipped(folder: Path, data: bytes) -> Any:
    """A library of the model whose accelerated parts run on the simulator."""
    (folder / "net.tflite").write_bytes(data)
    compiled = compile_model(quantize(load_model(str(folder / "net.tflite"))), CONFIGS["edge8"])
    assert [one.op for one in compiled.host_ops if not one.boundary] == []
    machine = load_library(export_library(compiled, folder / "net.so"))
    set_backend(Simulator(CONFIGS["edge8"]).run)
    return machine


def test_every_output_of_the_shipped_network_is_litert_s(tmp_path: Path) -> None:
    data = network()
    machine = shipped(tmp_path, data)
    rng = np.random.default_rng(3)
    for _ in range(3):
        image = rng.integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
        (found,) = run_library(machine, [image])
        (golden,) = tflite_outputs(data, image)
        assert found.dtype == np.int8 and np.array_equal(found, golden)


@pytest.mark.parametrize(
    "name",
    [
        *("stored convolution", "stored concatenation", "stored mean", "signed to stored"),
        *("split_v", "batch_to_space", "map flattened", "prelu"),
    ],
)
def test_shipped_operator_keeps_the_file_s_types_and_integers(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]()
    found = run_library(shipped(tmp_path, example.model), list(example.inputs))
    golden = tflite_outputs(example.model, *example.inputs)
    assert [one.dtype for one in found] == [one.dtype for one in golden]
    assert all(np.array_equal(one, other) for one, other in zip(found, golden, strict=True))


def test_layer_of_the_host_is_named_and_the_rest_verifies_with_a_waiver(tmp_path: Path) -> None:
    data = network(host=True)
    record = verified(tmp_path, data)
    assert record.status == "failed"
    assert [(one.name, one.op) for one in record.layers if one.placement == "host"] == [
        ("lowest", "min")
    ]
    other = tmp_path / "waived"
    other.mkdir()
    record = verified(other, data, waive=waive(other, "lowest"))
    check(record, {"sim"}, len(LAYERS))
