"""A `.pt2` file from anywhere neither executes code nor fills the memory."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.importer import archive, load_model
from accelsim.quantize import quantize

Entries = dict[str, bytes]


class Payload:
    """Unpickled, it leaves a file behind."""

    def __init__(self, target: str) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.target, "w")


@pytest.fixture
def plain(tmp_path: Path) -> Entries:
    """Entries of a sound float program, without the folder that they lie in."""
    path = tmp_path / "plain.pt2"
    program = torch.export.export(nn.Sequential(nn.Conv2d(3, 4, 3)), (torch.zeros(1, 3, 8, 8),))
    torch.export.save(program, path)
    with zipfile.ZipFile(path) as source:
        return {name.partition("/")[2]: source.read(name) for name in source.namelist()}


def written(tmp_path: Path, entries: Entries, kind: int = zipfile.ZIP_STORED) -> str:
    path = tmp_path / "crafted.pt2"
    with zipfile.ZipFile(path, "w", kind) as target:
        for name, content in entries.items():
            target.writestr(f"crafted/{name}", content)
    return str(path)


def graph_with(entries: Entries, change: Callable[[dict[str, Any]], None]) -> Entries:
    graph = json.loads(entries["models/model.json"])
    change(graph)
    return entries | {"models/model.json": json.dumps(graph).encode()}


def pickled(mark: str) -> bytes:
    buffer = io.BytesIO()
    torch.save((Payload(mark),), buffer)
    return buffer.getvalue()


def config(path_name: str) -> bytes:
    payload = {"path_name": path_name, "is_param": False, "use_pickle": True, "tensor_meta": None}
    return json.dumps({"config": {"evil": payload}}).encode()


def sample(entries: Entries, mark: str) -> Entries:
    return entries | {"data/sample_inputs/model.pt": pickled(mark)}


def weight(entries: Entries, mark: str) -> Entries:
    table = json.loads(entries["data/weights/model_weights_config.json"])
    for payload in table["config"].values():
        payload["use_pickle"] = True
    changed = json.dumps(table).encode()
    names = {"data/weights/weight_0": pickled(mark), "data/weights/weight_1": pickled(mark)}
    return entries | names | {"data/weights/model_weights_config.json": changed}


def opaque(entries: Entries, mark: str) -> Entries:
    name = "data/constants/model_constants_config.json"
    evil = pickle.dumps(Payload(mark))
    return entries | {name: config("opaque_obj_0"), "data/constants/opaque_obj_0": evil}


def guard(entries: Entries, mark: str) -> Entries:
    return graph_with(entries, lambda graph: graph.update(guards_code=[f"open({mark!r}, 'w')"]))


def symbol(entries: Entries, mark: str) -> Entries:
    text = entries["models/model.json"].decode()
    evil = json.dumps({"as_expr": {"expr_str": f"open({mark!r}, 'w')", "hint": None}})
    assert '{"as_int": 8}' in text
    return entries | {"models/model.json": text.replace('{"as_int": 8}', evil, 1).encode()}


def call(entries: Entries, mark: str) -> Entries:
    def change(graph: dict[str, Any]) -> None:
        graph["graph_module"]["graph"]["nodes"][0]["target"] = "torch.os.system"

    return graph_with(entries, change)


def library(entries: Entries, mark: str) -> Entries:
    return entries | {"data/aotinductor/model/model.so": b"\x7fELF"}


@pytest.mark.parametrize("craft", [sample, weight, opaque, guard, symbol, call, library])
def test_program_that_would_execute_code_is_refused(
    tmp_path: Path, plain: Entries, craft: Callable[[Entries, str], Entries]
) -> None:
    mark = tmp_path / "executed"
    with pytest.raises(ModelError, match=r"cannot be loaded|dynamic shape") as caught:
        load_model(written(tmp_path, craft(plain, str(mark))))
    assert not mark.exists() and "\n" not in str(caught.value)


def test_rewritten_and_compressed_program_is_taken(tmp_path: Path, plain: Entries) -> None:
    source = load_model(written(tmp_path, plain, zipfile.ZIP_DEFLATED))
    assert source.example_inputs[0].shape == (1, 3, 8, 8)


def test_quantized_program_is_taken(tmp_path: Path) -> None:
    module, image = nn.Sequential(nn.Conv2d(3, 4, 3)), torch.randn(1, 3, 8, 8).numpy()
    model = quantize(SourceModel("m", module, (image,), ("x",), calibration=(image,)))
    torch.export.save(model.exported, tmp_path / "model.partial.pt2")
    assert load_model(str(tmp_path / "model.partial.pt2")).already_quantized


def test_limit_to_tensors_ends_with_the_loading(
    tmp_path: Path, plain: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    before = dict(os.environ)
    load_model(written(tmp_path, plain))
    assert dict(os.environ) == before


@pytest.mark.parametrize("depth", [1, 2])
def test_archive_that_announces_too_much_is_refused_before_it_is_read(
    tmp_path: Path, plain: Entries, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LIMIT_BYTES", 1 << 20)
    content = bytes(2 << 20)
    if depth == 2:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as inner:
            inner.writestr("data.pkl", content)
        content = buffer.getvalue()
    path = written(tmp_path, plain | {"data/weights/weight_7": content}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelError, match=r"announces 2,\d+,\d+ bytes"):
        load_model(path)


def test_tensor_of_more_elements_than_the_file_holds_is_refused(
    tmp_path: Path, plain: Entries
) -> None:
    buffer = io.BytesIO()
    torch.save(((torch.zeros(1).expand(1 << 40),), {}), buffer)
    entries = plain | {"data/sample_inputs/model.pt": buffer.getvalue()}
    with pytest.raises(ModelError, match=r"shape \(1099511627776,\)"):
        load_model(written(tmp_path, entries))


def test_two_entries_of_one_name_are_refused(tmp_path: Path, plain: Entries) -> None:
    path = written(tmp_path, plain)
    with pytest.warns(UserWarning), zipfile.ZipFile(path, "a") as target:
        target.writestr("crafted/models/model.json", plain["models/model.json"])
    with pytest.raises(ModelError, match="two entries"):
        load_model(path)
