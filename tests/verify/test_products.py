"""Networks of convolutions over time, transposed ones and products of activations run whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.invocation import invoke, report_of
from tests.verify import products


@pytest.mark.parametrize(
    ("network", "layers"),
    [
        ("spotter", {"conv2d", "max_pool2d", "avg_pool2d", "linear"}),
        ("decoder", {"conv_transpose2d"}),
        ("scores", {"linear", "matmul"}),
        ("heads", {"linear", "matmul", "softmax", "permute"}),
        ("pools", {"conv2d", "max_pool2d", "avg_pool2d"}),
    ],
)
def test_every_layer_equals_its_goldens_on_the_simulator(
    network: str, layers: set[str], tmp_path: Path
) -> None:
    where = f"{products.__file__}:{network}"
    result = invoke(
        tmp_path, "verify", where, "--seed", "3", "--backend", "sim", "--out", "r", "-q"
    )
    assert result.code == 0, result.err + result.out
    report = report_of(tmp_path / "r")
    assert layers <= {layer["op"] for layer in report["layers"]}
    for layer in report["layers"]:
        gates = [c for c in layer["compare"] if c["gate"]]
        assert gates and all(c["elements"] for c in gates), layer["name"]
        exact = [c["status"] for c in gates if c["golden"] == "integer"]
        assert exact and set(exact) == {"equal"}
        # PyTorch adds windows and products in float32, and may fall on the other side of a tie.
        assert {c["status"] for c in gates} <= {"equal", "within"}
