"""Networks of table functions, softmax and layer normalization run whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accelsim.artifacts import SourceModel
from accelsim.quantize import quantize
from accelsim.reference.graph import read_network
from accelsim.verify.goldens import Goldens
from tests.cli.invocation import invoke, report_of
from tests.verify import rows


@pytest.mark.parametrize(
    ("network", "layers"),
    [
        ("functions", {"sigmoid", "tanh", "silu", "hard_swish", "hard_sigmoid", "gelu", "elu"}),
        ("attention", {"layer_norm", "softmax", "matmul", "linear"}),
        ("mixture", {"conv2d", "softmax"}),
    ],
)
def test_every_layer_equals_its_goldens_on_the_simulator(
    network: str, layers: set[str], tmp_path: Path
) -> None:
    where = f"{rows.__file__}:{network}"
    result = invoke(
        tmp_path, "verify", where, "--seed", "3", "--backend", "sim", "--out", "r", "-q"
    )
    assert result.code == 0, result.err + result.out
    report = report_of(tmp_path / "r")
    assert layers <= {layer["op"] for layer in report["layers"]}
    for layer in report["layers"]:
        gates = [c for c in layer["compare"] if c["gate"]]
        assert gates and all(c["status"] == "equal" and c["elements"] for c in gates), layer["name"]


@pytest.fixture(scope="module")
def goldens() -> Goldens:
    module, example = rows.attention()
    batch = example.numpy()
    model = quantize(SourceModel("m", module.eval(), (batch,), ("x",), calibration=(batch,)))
    names = [layer.name for layer in read_network(model.qdq).layers]
    return Goldens.of(model, lambda text: None, names)


def outputs(goldens: Goldens, name: str) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Random inputs of a layer, and what the reference makes of them."""
    shapes = goldens.reference.network.layer(name).input_shapes
    rng = np.random.default_rng(1)
    inputs = tuple(rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes)
    return inputs, goldens.reference.run_layer(name, inputs)


def changed(exact: np.ndarray, steps: int) -> np.ndarray:
    """One element in 50 moved towards 0."""
    moved = exact.copy().ravel()
    moved[::50] -= np.int8(steps) * np.sign(moved[::50])
    return moved.reshape(exact.shape)


@pytest.mark.parametrize(("name", "steps"), [("norm", 2), ("softmax", 1)])
def test_pytorch_may_be_steps_from_integers_that_keep_their_bound(
    goldens: Goldens, name: str, steps: int
) -> None:
    inputs, exact = outputs(goldens, name)
    assert goldens.framework.bound(name, inputs, exact, exact) == steps
    assert goldens.framework.bound(name, inputs, changed(exact, steps + 2), exact) is None
    assert goldens.framework.bound(name, inputs, exact, changed(exact, 3)) is None


def test_products_have_no_bound_and_must_be_equal(goldens: Goldens) -> None:
    inputs, exact = outputs(goldens, "query")
    assert goldens.framework.bound("query", inputs, exact, exact) is None
