"""Facts about calibration data: its forms, and what is wrong with it in one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from accelsim.artifacts import SourceModel
from accelsim.calibrate.running import batch_size, batches
from accelsim.calibrate.samples import read_samples
from accelsim.errors import InputError
from tests.calibrate.networks import Chain, chain, images, seeded

LABELS = np.arange(12) % 5


def _two_inputs() -> SourceModel:
    examples = (images(1), np.zeros((1, 3), np.float32))
    return SourceModel("two", seeded(Chain), examples, ("image", "state"))


FUNCTIONS = """
import numpy as np, torch
X = np.random.default_rng(0).normal(0, 1, (12, 2, 6, 6)).astype(np.float32)
Y = np.arange(12) % 5

def array(): return X
def tensor(): return torch.from_numpy(X)
def pair(): return X, Y
def named(): return {"x": X, "labels": Y}
def other_name(): return {"pixels": X}
def batches(): return [X[:5], X[5:]]
def loader():
    for start in range(0, 12, 4):
        yield torch.from_numpy(X[start:start + 4]), torch.from_numpy(Y[start:start + 4])
def endless():
    while True:
        yield X
def double(): return X.astype(np.float64)
def text(): return "samples"
def number(): return 3
def broken(): raise RuntimeError("no disk")
def breaking():
    yield X
    raise OSError("no disk")
def nothing(): return []
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.py"
    path.write_text(FUNCTIONS)
    return path


@pytest.mark.parametrize(
    ("function", "labelled"),
    [
        *(("array", False), ("tensor", False), ("pair", True), ("named", True)),
        *(("other_name", False), ("batches", False), ("loader", True)),
    ],
)
def test_a_function_may_return_samples_in_many_forms(
    file: Path, function: str, labelled: bool
) -> None:
    found = read_samples(f"{file}:{function}", chain(), 100)
    expected = np.random.default_rng(0).normal(0, 1, (12, 2, 6, 6)).astype(np.float32)
    assert len(found) == 12 and np.array_equal(found.inputs[0], expected)
    assert (found.labels is not None) == labelled
    if found.labels is not None:
        assert np.array_equal(found.labels, LABELS)


def test_no_more_samples_are_taken_than_were_asked_for(file: Path) -> None:
    assert len(read_samples(f"{file}:endless", chain(), 30)) == 30
    assert len(read_samples(f"{file}:pair", chain(), 7).labels) == 7


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("double", "input 'x' is float64 of shape .*; the model takes float32 .samples, 2, 6, 6."),
        ("text", "holds str; arrays of numbers"),
        ("number", "gave a int; give an array"),
        ("broken", "raised RuntimeError: no disk"),
        ("breaking", "raised OSError: no disk"),
        ("nothing", "there are no samples"),
        ("missing", "has no function 'missing'"),
    ],
)
def test_what_a_function_does_wrong_is_one_sentence(
    file: Path, function: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        read_samples(f"{file}:{function}", chain(), 100)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": images(4)[:, :1]}, "of shape .4, 1, 6, 6.; the model takes float32"),
        ({"x": images(4)[0]}, "the model takes float32"),
        ({"x": np.zeros((4, 2, 6, 6), np.uint8)}, "is uint8"),
        ({"x": images(0)}, "there are no samples"),
        ({"x": np.full((4, 2, 6, 6), 0.5, np.float32)}, "is 0.5 everywhere, and no range"),
        ({"x": np.where(images(4) > 2, np.nan, images(4))}, "has NaN or infinity"),
        ({"x": np.where(images(4) > 2, np.inf, images(4))}, "has NaN or infinity"),
        ({"x": images(4), "labels": np.arange(3)}, "different numbers of samples: 3, 4"),
        ({"x": images(4), "y": images(4)}, "has x, y; the model's inputs are x, and labels"),
        ({}, "has nothing; the model's inputs are x"),
    ],
)
def test_a_file_that_does_not_fit_is_one_sentence(
    tmp_path: Path, arrays: dict[str, np.ndarray], sentence: str
) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=sentence):
        read_samples(str(path), chain(), 100)


def test_a_file_keyed_by_input_name_feeds_a_model_of_two_inputs(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    state = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    np.savez(path, state=state, image=images(4))
    found = read_samples(str(path), _two_inputs(), 100)
    assert [array.shape for array in found.inputs] == [(4, 2, 6, 6), (4, 3)]


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04 and no more"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not an intact"):
        read_samples(str(path), chain(), 100)
    with pytest.raises(InputError, match="does not exist"):
        read_samples(str(tmp_path / "none.npz"), chain(), 100)


def test_a_model_of_any_batch_runs_many_samples_at_once() -> None:
    assert batch_size(chain()) == 64


class FixedBatch(Chain):
    """Reshapes to one sample, whatever it is given."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).reshape(1, -1)[:, :5]


def test_a_model_of_a_fixed_batch_runs_its_own() -> None:
    fixed = SourceModel("fixed", seeded(FixedBatch), (images(1),), ("x",))
    assert batch_size(fixed) == 1


def test_a_remainder_below_the_models_batch_is_left_out() -> None:
    assert [len(batch[0]) for batch in batches([images(11)], 4, 2)] == [4, 4, 2]
    with pytest.raises(InputError, match="there are 3 samples, and the model takes 4 at once"):
        batches([images(3)], 4, 4)


def test_samples_of_a_sorted_file_are_taken_from_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=images(100), labels=np.repeat(np.arange(10), 10))
    found = read_samples(str(path), chain(), 20)
    assert found.labels is not None
    assert np.array_equal(np.unique(found.labels, return_counts=True)[1], np.full(10, 2))
    assert np.array_equal(found.inputs[0], images(100)[::5])


def test_integers_that_are_all_alike_are_samples(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    mask = np.ones((4, 3), np.int64)
    np.savez(path, state=mask, image=images(4))
    model = _two_inputs()
    model = replace(model, example_inputs=(model.example_inputs[0], mask[:1]))
    assert np.array_equal(read_samples(str(path), model, 100).inputs[1], mask)


class _OneSample(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.reshape(x, (1, 72))


def test_a_network_of_one_sample_at_a_time_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    traced = torch.fx.symbolic_trace(_OneSample())
    assert batch_size(SourceModel("traced", traced, (images(1),), ("x",))) == 1
    assert capfd.readouterr() == ("", "")
