"""Facts about quantized networks that are written to files and read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import InputError, ModelError
from accelsim.importer import load_model
from accelsim.quantize import layer_members, quantize
from accelsim.quantize.export import export_onnx, export_pt2
from accelsim.reference import build
from tests.quantize import resnet_forms as forms
from tests.quantize.networks import images, residual


class Mixed(nn.Module):
    """Concat, split, transpose, softmax, attention's product, PReLU, pads and tables."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.prelu, self.act = nn.PReLU(8), nn.SiLU()
        self.pool = nn.AvgPool2d(3, 2, 1)
        self.norm, self.fc = nn.LayerNorm(16), nn.Linear(16, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.prelu(self.stem(x))
        left, right = torch.chunk(self.act(hidden), 2, 1)
        joined = torch.cat([functional.pad(left, (1, 0, 0, 1)), self.pad(right)], 1)
        small = self.pool(self.up(joined)[:, :, 1:-1, 1:-1])
        tokens = self.norm(torch.flatten(small, 2)[:, :, :16])
        scores = torch.matmul(tokens, torch.transpose(tokens, 1, 2))
        return self.fc(torch.matmul(torch.softmax(scores, -1), tokens))

    def pad(self, x: torch.Tensor) -> torch.Tensor:
        return functional.pad(x, (1, 0, 0, 1))


def mixed() -> SourceModel:
    torch.manual_seed(2)
    return SourceModel("mixed", Mixed().eval(), (images(1),), ("x",), calibration=(images(8, 1),))


NETWORKS: dict[str, Callable[[], SourceModel]] = {
    "fx": residual,
    "eager": forms.eager,
    "pt2e": forms.pt2e,
    "fbgemm": lambda: forms.source(forms.fx_prepared("fbgemm")),
}


def integers(model: QuantizedModel, seed: int) -> dict[str, np.ndarray]:
    """Every layer's integers for an image in which fbgemm's limits are met."""
    reference = build(model)
    inputs = reference.quantize_inputs({model.input_names[0]: images(1, seed) * 2})
    return dict(reference.accumulated(inputs).tensors)


@pytest.mark.parametrize(
    ("network", "kind"),
    [("fx", "onnx"), ("pt2e", "onnx"), ("fbgemm", "onnx"), ("eager", "pt2"), ("fbgemm", "pt2")],
)
def test_a_file_that_is_read_back_has_the_same_integers(
    network: str, kind: str, tmp_path: Path
) -> None:
    model = quantize(NETWORKS[network]())
    write = export_onnx if kind == "onnx" else export_pt2
    again = quantize(load_model(str(write(model, tmp_path / f"model.{kind}"))))
    assert again.layer_names == model.layer_names
    expected, found = integers(model, 0), integers(again, 0)
    assert expected.keys() == found.keys()
    assert len(expected) > len(model.layer_names) // 2
    for name, values in expected.items():
        assert np.array_equal(found[name], values), name


def test_members_of_layers_survive_a_program(tmp_path: Path) -> None:
    model = quantize(residual())
    again = quantize(load_model(str(export_pt2(model, tmp_path / "m.pt2"))))
    assert layer_members(again.qdq) == layer_members(model.qdq)


def run_onnx(path: Path, image: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options)
    result: np.ndarray = session.run(None, {session.get_inputs()[0].name: image})[0]
    return result


@pytest.mark.parametrize("make", [NETWORKS["fbgemm"], mixed], ids=["fbgemm", "mixed"])
def test_onnx_runtime_computes_what_the_program_computes(
    make: Callable[[], SourceModel], tmp_path: Path
) -> None:
    model = quantize(make())
    path = export_onnx(model, tmp_path / "m.onnx")
    image = images(1, 4)
    with torch.no_grad():
        expected = model.exported.module()(torch.from_numpy(image)).numpy()
    found = run_onnx(path, image)
    step = np.diff(np.unique(expected)).min()
    assert found.shape == expected.shape and len(np.unique(expected)) > 3
    # Both compute in float, in another order; a rounding may fall to the other side once a layer.
    assert np.abs(found - expected).max() <= 3 * step


def test_nodes_have_the_users_names(tmp_path: Path) -> None:
    model = quantize(residual())
    graph = onnx.load(export_onnx(model, tmp_path / "m.onnx")).graph
    names = [node.name for node in graph.node]
    assert len(set(names)) == len(names)
    assert set(model.layer_names) <= set(names)
    kinds = {node.name: node.op_type for node in graph.node}
    assert (kinds["stem.0"], kinds["one/add"], kinds["fc"]) == ("Conv", "Add", "Gemm")


def test_biases_are_integers_in_steps_of_the_accumulator(tmp_path: Path) -> None:
    model = quantize(residual(), per_channel=True)
    graph = onnx.load(export_onnx(model, tmp_path / "m.onnx")).graph
    stored = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    steps = stored["stem.0.bias_scale"]
    assert stored["stem.0.bias"].dtype == np.int32
    assert steps.shape == stored["stem.0.bias"].shape == (12,)
    bias = model.torch_int8.get_submodule("stem.0").bias().detach().numpy()
    assert np.array_equal(stored["stem.0.bias"], np.rint(bias / steps))


def test_two_exports_are_equal_bytes(tmp_path: Path) -> None:
    first, second = (
        export_onnx(quantize(residual()), tmp_path / f"{number}.onnx") for number in range(2)
    )
    assert first.read_bytes() == second.read_bytes()


def test_a_folder_that_is_not_there_is_made_and_a_file_in_its_place_is_one_sentence(
    tmp_path: Path,
) -> None:
    model = quantize(residual())
    (tmp_path / "file").touch()
    for write in (export_onnx, export_pt2):
        assert write(model, tmp_path / write.__name__ / "m.file").stat().st_size
        with pytest.raises(InputError, match=r"cannot write .*Not a directory"):
            write(model, tmp_path / "file" / "m.file")


def test_a_network_of_another_framework_has_no_program(tmp_path: Path) -> None:
    path = export_onnx(quantize(residual()), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match=r"came from onnx and has no program of torch\.export"):
        export_pt2(quantize(load_model(str(path))), tmp_path / "m.pt2")
