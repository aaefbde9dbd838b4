"""Facts about what `load_model` accepts, and the one sentence for what it refuses."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from accelsim.errors import AccelsimError, InputError, ModelError
from accelsim.importer import load_model

SCRIPT = """
import numpy as np
import torch
from torch import nn

from accelsim.artifacts import SourceModel
{extra}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, image):
        return torch.relu(self.conv(image))


def pair():
    return Net(), torch.zeros(1, 3, 8, 8)


def source():
    image = np.zeros((1, 3, 8, 8), np.float32)
    test = np.ones((5, 3, 8, 8), np.float32)
    return SourceModel("mine", Net(), (image,), ("image",), test_inputs=test)


def program():
    return torch.export.export(Net().eval(), (torch.zeros(1, 3, 8, 8),))


def raising():
    raise KeyError("no weights")


def leaving():
    raise SystemExit(3)


def number():
    return 4


def half():
    return Net().half(), torch.zeros(1, 3, 8, 8)


def integers():
    return Net(), torch.zeros(1, 3, 8, 8, dtype=torch.int16)


def infinite():
    return Net(), torch.full((1, 3, 8, 8), float("inf"))


def diverged():
    net = Net()
    net.conv.weight.data[0, 0, 0, 0] = float("nan")
    return net, torch.zeros(1, 3, 8, 8)


def masked():
    net = Net()
    net.register_buffer("mask", torch.full((2, 2), float("-inf")))
    return net, torch.zeros(1, 3, 8, 8)


def hollowed():
    return Net(), torch.zeros(0, 3, 8, 8)


def mismatched():
    image = np.zeros((1, 3, 8, 8), np.float32)
    wide = np.zeros((4, 3, 9, 9), np.float32)
    return SourceModel("mine", Net(), (image,), ("image",), calibration=(wide,))


def misnamed():
    image = np.zeros((1, 3, 8, 8), np.float32)
    return SourceModel("mine", Net(), (image,), ("image", "mask"))


def given(**fields):
    image = np.zeros((1, 3, 8, 8), np.float32)
    return SourceModel(**{"name": "mine", "float_module": Net(), "example_inputs": (image,),
                          "input_names": ("image",), **fields})


IMAGE = np.zeros((1, 3, 8, 8), np.float32)
FIELDS = [
    {"calibration": ([[1.0]],)},
    {"calibration": 5},
    {"calibration": (IMAGE[0, 0, 0, 0],)},
    {"calibration": (IMAGE[:0],)},
    {"test_inputs": [1.0]},
    {"test_inputs": np.full((2, 3, 8, 8), np.nan, np.float32)},
    {"test_inputs": np.float32(1)},
    {"test_inputs": IMAGE, "test_labels": [0]},
    {"test_inputs": IMAGE, "test_labels": np.zeros(1, np.float32)},
    {"test_labels": np.zeros(1, np.int64)},
    {"input_names": "x"},
    {"input_names": (5,)},
    {"input_names": 5},
    {"example_inputs": IMAGE},
    {"example_inputs": 5},
    {"example_inputs": (np.float32(1) * np.ones(()),)},
    {"already_quantized": "no"},
    {"input_names": ("a", "a"), "example_inputs": (IMAGE, IMAGE)},
]


def field():
    import os
    return given(**FIELDS[int(os.environ["FIELD"])])


def hollow():
    image = np.zeros((1, 3, 8, 8), np.float32)
    return SourceModel("mine", 5, (image,), ("image",))


NOT_CALLABLE = 5
"""


class Shared(nn.Module):
    """One weight in three convolutions, two of them alike, and one matrix in two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3)
        self.linear = nn.Linear(5, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self.conv.weight, self.conv.bias
        y = self.conv(nn.functional.conv2d(x, weight, bias, stride=2, padding=1))
        y = nn.functional.conv2d(self.conv(y), weight, None, padding=2)
        y = self.linear(y)
        return nn.functional.linear(y, self.linear.weight)


class Net(nn.Module):
    """Convolution, batch norm, ReLU6, pool, sum and linear at nested paths."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 9, 3, padding=1, bias=False), nn.BatchNorm2d(9))
        self.act = nn.ReLU6()
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(9, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.act(self.body(x))
        hidden = self.pool(hidden + nn.functional.relu(hidden))
        return self.head(nn.functional.adaptive_avg_pool2d(hidden, 1).flatten(1))


def _batch() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(SCRIPT.replace("{extra}", ""))
    return path


def _saved(tmp_path: Path, module: nn.Module, *inputs: torch.Tensor, **options: object) -> Path:
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(module, inputs, **options), path)
    return path


def test_float_program_computes_the_same_after_import(tmp_path: Path) -> None:
    torch.manual_seed(1)
    module = Net().eval()
    module.body[1].running_mean = torch.rand(9)
    module.body[1].running_var = torch.rand(9) + 0.5
    source = load_model(str(_saved(tmp_path, module, _batch())))
    with torch.no_grad():
        assert torch.equal(source.float_module(_batch()), module(_batch()))


def test_weight_with_several_uses_keeps_the_settings_of_each(tmp_path: Path) -> None:
    torch.manual_seed(2)
    module, image = Shared().eval(), torch.randn(1, 3, 13, 13)
    source = load_model(str(_saved(tmp_path, module, image)))
    with torch.no_grad():
        assert torch.equal(source.float_module(image), module(image))
    paths = [str(node.target) for node in source.float_module.graph.nodes]
    assert paths.count("conv_1") == 2 and "conv" in paths and "conv_2" in paths


def test_float_program_keeps_module_paths_and_example(tmp_path: Path) -> None:
    source = load_model(str(_saved(tmp_path, Net().eval(), _batch())))
    assert isinstance(source.float_module.get_submodule("body.0"), nn.Conv2d)
    assert isinstance(source.float_module.get_submodule("act"), nn.ReLU6)
    assert source.input_names == ("x",)
    assert np.array_equal(source.calibration[0], _batch().numpy())


@pytest.mark.parametrize("function", ["pair", "source", "program"])
def test_script_may_return_three_things(script: Path, function: str) -> None:
    source = load_model(f"{script}:{function}")
    assert source.name == f"{script}:{function}"
    assert source.input_names == ("image",)
    assert source.example_inputs[0].shape == (1, 3, 8, 8)
    assert not source.float_module.training


def test_a_mask_may_be_infinite(script: Path) -> None:
    source = load_model(f"{script}:masked")
    assert np.isinf(source.float_module.get_buffer("mask").numpy()).all()


def test_script_may_import_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_net.py").write_text("VALUE = 1\n")
    path = tmp_path / "net.py"
    path.write_text(SCRIPT.replace("{extra}", "import neighbour_of_net"))
    assert load_model(f"{path}:pair").input_names == ("image",)


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        ("absent", ModelError, "has no function 'absent'"),
        ("NOT_CALLABLE", ModelError, "has no function"),
        ("raising", ModelError, "KeyError: 'no weights'"),
        ("leaving", ModelError, "SystemExit: 3"),
        ("number", ModelError, "returned a int"),
        ("half", ModelError, "'conv.weight' .* is float16"),
        ("integers", ModelError, "input 0 .* is int16; .* int64 are supported"),
        ("infinite", InputError, "input 'image' .* has NaN or infinity"),
        ("hollowed", InputError, "input 'image' .* is empty: its shape is .0, 3, 8, 8."),
        ("diverged", ModelError, "'conv.weight' of model .* has NaN or infinity; train it again"),
        ("misnamed", ModelError, "names 2 inputs and gives 1"),
        ("hollow", ModelError, "holds a int; a Module is needed"),
        ("mismatched", InputError, "calibration batch 0"),
    ],
)
def test_bad_function_is_one_sentence(
    script: Path, function: str, kind: type[AccelsimError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        load_model(f"{script}:{function}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", range(18))
def test_bad_field_of_a_source_model_is_one_sentence(
    script: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIELD", str(number))
    with pytest.raises((InputError, ModelError)) as caught:
        load_model(f"{script}:field")
    assert "\n" not in str(caught.value)


def test_script_that_fails_to_run_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("def broken(:\n")
    with pytest.raises(ModelError, match="cannot be executed: SyntaxError"):
        load_model(f"{path}:broken")


@pytest.mark.parametrize("spec", ["absent.pt2", "absent.py:make"])
def test_missing_file_is_named(spec: str) -> None:
    with pytest.raises(ModelError, match=r"absent\.\w+ does not exist"):
        load_model(spec)


@pytest.mark.parametrize("spec", ["net.mlmodel", "net", "net.py", "net.py:", "", "zoo", ":make"])
def test_unknown_form_lists_the_known_ones(spec: str, tmp_path: Path) -> None:
    with pytest.raises((InputError, ModelError)) as caught:
        load_model(spec)
    assert "\n" not in str(caught.value)


FOREIGN = [
    ("saved", "a TensorFlow SavedModel: .* TFLite converter .* give the .tflite"),
    ("net.pb", "a frozen TensorFlow graph: .* TFLite converter"),
    ("net.h5", "a Keras model: .* TFLite converter"),
    ("net.keras", "a Keras model: .* TFLite converter"),
    ("net.pt", r"TorchScript archive: .* torch\.export\.export .* give the \.pt2"),
    ("net.pth", r"a PyTorch pickle .* torch\.export\.save"),
]


@pytest.mark.parametrize(("name", "way"), FOREIGN, ids=[name for name, _ in FOREIGN])
def test_form_that_is_not_read_is_refused_with_the_way_to_one_that_is(
    name: str, way: str, tmp_path: Path
) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(InputError, match=way) as caught:
        load_model(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_text_file_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "a.pt2"
    path.write_text("hello")
    with pytest.raises(ModelError, match=r"not a torch\.export archive"):
        load_model(str(path))


def test_other_zip_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "a.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.txt", "hello")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_model(str(path))


def test_state_dict_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "a.pt2"
    torch.save(Net().state_dict(), path)
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_model(str(path))


@pytest.mark.parametrize("part", [0.3, 0.9])
def test_truncated_program_is_refused(tmp_path: Path, part: float) -> None:
    path = _saved(tmp_path, Net().eval(), _batch())
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(ModelError, match=r"damaged|cannot be loaded"):
        load_model(str(path))


def test_dynamic_shape_is_refused(tmp_path: Path) -> None:
    batch = torch.export.Dim("batch", min=1, max=8)
    path = _saved(tmp_path, Net().eval(), _batch(), dynamic_shapes={"x": {0: batch}})
    with pytest.raises(ModelError, match="dynamic shape"):
        load_model(str(path))


def test_double_input_is_refused(tmp_path: Path) -> None:
    path = _saved(tmp_path, Net().double().eval(), _batch().double())
    with pytest.raises(ModelError, match="float64"):
        load_model(str(path))


def test_program_exported_in_training_mode_is_refused(tmp_path: Path) -> None:
    path = _saved(tmp_path, Net().train(), _batch())
    with pytest.raises(ModelError, match=r"call eval\(\)"):
        load_model(str(path))
