"""What diagnosis measures: noise by layer, clipping, classes, and ways to make an input right."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accelsim.diagnose.inputs import _candidates, input_facts, traps
from accelsim.diagnose.noise import clipped_share, layer_rows, noisiest, range_of
from accelsim.diagnose.record import LayerRow
from accelsim.diagnose.rungs import classes_of, real_outputs, rung
from accelsim.reference import QuantizedTensor

RNG = np.random.default_rng(12)


def tensor(name: str, shape: tuple[int, ...], scale: float, **fields: Any) -> QuantizedTensor:
    zero = fields.pop("zero_point", 0)
    return QuantizedTensor(name, shape, np.float32(scale), zero, "int8", **fields)


def network(*tensors: QuantizedTensor, **fields: Any) -> Any:
    """A chain: the first tensor is the input x, each other one the output of a layer."""
    names = [one.name for one in tensors]
    layers = [
        SimpleNamespace(name=f"layer_{after}", op="op", inputs=(before,), output=after)
        for before, after in pairwise(names)
    ]
    plain = {"direct": (), "prepared": (), "tail": None}
    known = {one.name: one for one in tensors}
    inputs = ((names[0], names[0]),)
    return SimpleNamespace(
        tensors=known, layers=layers, boundary=(names[0],), inputs=inputs, **(plain | fields)
    )


def test_noise_and_what_each_layer_adds_are_in_decibels() -> None:
    net = network(
        tensor("x", (1, 2, 3, 3), 0.1, zero_point=10),
        tensor("y", (1, 2, 3, 3), 0.5, zero_point=-20, clamp_min=-20),
        tensor("z", (1, 2, 3, 3), 0.25),
    )
    exact = {name: RNG.normal(size=(1, 2, 3, 3)).astype(np.float32) for name in net.tensors}
    levels = {name: RNG.integers(-20, 20, (1, 3, 3, 2)).astype(np.int8) for name in net.tensors}
    decibels = {}
    for name, one in net.tensors.items():
        real = (levels[name].transpose(0, 3, 1, 2) - one.zero_point) * float(one.scale)
        noise = ((real - exact[name]) ** 2).sum()
        decibels[name] = 10 * np.log10((exact[name].astype(float) ** 2).sum() / noise)
    rows = layer_rows(net, exact, levels)
    assert [row.name for row in rows] == ["layer_y", "layer_z"]
    assert [row.sqnr_db for row in rows] == pytest.approx([decibels["y"], decibels["z"]], rel=1e-5)
    lost = [decibels["x"] - decibels["y"], decibels["y"] - decibels["z"]]
    assert [row.lost_db for row in rows] == pytest.approx(lost, rel=1e-5)
    assert rows[0].clipped == pytest.approx((exact["y"] < -0.25).mean())


def test_noise_is_lost_against_the_worse_input_and_from_what_int8_can_have() -> None:
    net = network(tensor("x", (1, 64), 1e-6), tensor("y", (1, 64), 0.01))
    net.layers[0].inputs = ("x", "x2")
    net.tensors["x2"], net.boundary = tensor("x2", (1, 64), 2.0), ("x", "x2")
    exact = {name: RNG.uniform(-1e-4, 1e-4, (1, 64)) for name in ("x", "x2")}
    exact["x2"] = RNG.uniform(-50, 50, (1, 64))
    exact["y"] = RNG.uniform(-1, 1, (1, 64))
    levels = {
        name: np.round(exact[name] / float(net.tensors[name].scale)).astype(np.int8)[:, None, None]
        for name in exact
    }
    (row,) = layer_rows(net, exact, levels)

    def db(name: str) -> float:
        real = levels[name][:, 0, 0] * float(net.tensors[name].scale)
        return 10 * np.log10((exact[name] ** 2).sum() / ((real - exact[name]) ** 2).sum())

    assert db("x") != pytest.approx(db("x2"), abs=1)
    assert row.lost_db == pytest.approx(min(50, db("x"), db("x2")) - min(50, db("y")), abs=1e-2)
    same = {"x": exact["y"], "x2": exact["y"], "y": exact["y"]}
    levels["x"] = levels["x2"] = levels["y"]
    net.tensors["x"] = net.tensors["x2"] = net.tensors["y"]
    exact["x"] = exact["x2"] = levels["y"][:, 0, 0] * np.float32(0.01)  # no noise: 150 dB
    (row,) = layer_rows(net, {**same, "x": exact["x"], "x2": exact["x2"]}, levels)
    assert row.lost_db == pytest.approx(max(0, 50 - row.sqnr_db), abs=1e-6)


def test_the_noisiest_layers_are_three_that_lose_three_decibels_or_more() -> None:
    lost = {"a": 3.0, "b": 9.0, "c": 2.9, "d": 5.0, "e": 4.0}
    rows = [LayerRow(name, "op", 20.0, db, 0.0) for name, db in lost.items()]
    assert [row.name for row in noisiest(rows)] == ["b", "d", "e"]


def test_a_range_has_its_zero_point_and_limits() -> None:
    assert range_of(tensor("x", (1,), 0.5, zero_point=-28)) == (-50, 77.5)
    limited = tensor("x", (1,), 0.5, zero_point=-28, clamp_min=-28, clamp_max=100)
    assert range_of(limited) == (0, 64)


def test_what_rounds_into_the_range_is_not_clipped() -> None:
    limited = tensor("x", (1,), 0.5, clamp_min=0, clamp_max=100)
    values = np.array([-0.3, -0.2, 0.0, 50.2, 50.3, 60.0])
    assert clipped_share(values, limited) == pytest.approx(3 / 6)


def test_integers_of_an_output_become_real_numbers() -> None:
    one = QuantizedTensor("y", (1, 3), np.float32(0.5), -28, "uint8")
    net = network(one, outputs=("y",), integer_outputs=(True,))
    (found,) = real_outputs(net, (np.array([[100, 101, 255]], np.uint8),))
    np.testing.assert_allclose(found, [[0, 0.5, 77.5]])


@pytest.mark.parametrize(
    ("shape", "classes"),
    [((2, 5), (4, 4)), ((2, 1, 1, 5), (4, 4)), ((2, 5, 2), None), ((5,), None), ((2, 1), None)],
)
def test_only_one_score_a_class_makes_classes(shape: tuple[int, ...], classes: Any) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    assert classes_of((values,)) == classes


def test_a_rung_shows_its_greatest_elements_and_its_noise_against_float() -> None:
    exact = np.array([[1.0, 8.0, 2.0, 4.0]], np.float32)
    given = exact + np.array([[0, 0, 0, 2]], np.float32)
    net = network(tensor("y", (1, 4), 1.0), outputs=("y",), integer_outputs=(False,))
    found = rung("sim", "t", (given,), net, (exact,))
    assert found.top == ((1, 8.0), (3, 6.0), (2, 2.0)) and found.classes == (1,)
    assert found.output_db == pytest.approx(10 * np.log10(85 / 4))


IMAGE = RNG.random((1, 3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize(
    ("slip", "title"),
    [
        (lambda x: x * 255, "divided by 255"),
        (lambda x: x / 255, "multiplied by 255"),
        (lambda x: (x + 1) * 127.5, "as x / 127.5 - 1"),
        (lambda x: (x + 1) / 2, "as 2 x - 1"),
        (lambda x: 2 * x - 1, "as (x + 1) / 2"),
        (lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape), "turned from NHWC into NCHW"),
        (lambda x: x[:, ::-1], "with its channels reversed"),
    ],
)
def test_each_slip_has_its_way_back(slip: Any, title: str) -> None:
    given = np.ascontiguousarray(slip(IMAGE.astype(np.float64)))
    back = dict(_candidates(given, 1))
    (found,) = [values for name, values in back.items() if name.startswith(title)]
    np.testing.assert_allclose(found, IMAGE, rtol=1e-5, atol=1e-6)


def test_an_image_of_channels_last_is_turned_back() -> None:
    right = IMAGE.transpose(0, 2, 3, 1)
    given = np.ascontiguousarray(IMAGE).reshape(right.shape)  # its bytes are NCHW
    back = dict(_candidates(given, 3))
    np.testing.assert_array_equal(back["turned from NCHW into NHWC"], right)
    mirrored = dict(_candidates(np.ascontiguousarray(right[..., ::-1]), 3))
    (found,) = [one for name, one in mirrored.items() if "channels reversed" in name]
    np.testing.assert_array_equal(found, right)


def test_of_scales_only_those_are_told_that_fill_the_calibrated_range() -> None:
    net = network(tensor("x", (1, 3, 4, 5), 1 / 255, zero_point=-128))
    assert traps(net, {"x": IMAGE * 255}, None) == [
        "input x would fill the calibrated range divided by 255 (0..255 was given for 0..1)"
    ]
    assert traps(net, {"x": IMAGE / 5}, None) == []  # too small, and no known slip


def test_facts_of_an_input_are_its_range_and_the_levels_that_it_reaches() -> None:
    net = network(tensor("x", (1, 5), 0.5, zero_point=-128))
    values = np.array([[-2.0, 0.1, 0.2, 60.0, 200.0]], np.float32)
    (facts,) = input_facts(net, {"x": values}, {})
    assert (facts.low, facts.high) == (-2, 200)
    assert (facts.range_low, facts.range_high) == (0, 127.5)
    assert facts.clipped == pytest.approx(2 / 5) and facts.levels == 3
