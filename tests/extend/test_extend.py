"""A team's own pieces work from end to end, and none is added twice or in part."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accelsim import extend
from accelsim.errors import InputError, ModelError
from accelsim.legalize.operators import Operator as LegalizeOperator
from accelsim.legalize.operators import operators as legalize_operators
from accelsim.ops import known_operators, operator_of
from accelsim.ops.loading import load_extension
from accelsim.reference.operators import Operator as ReferenceOperator
from accelsim.reference.operators import operators as reference_operators

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "extension.py"
WAIVERS = ROOT / "examples" / "extension_waivers.toml"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which alone the pieces are registered in."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def verified(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code of a verification of the example, and its layers by name."""
    code = "import sys; from accelsim.cli import main; main(sys.argv[1:])"
    model = ("verify", f"{EXAMPLE}:make", "--backend", "sim", "--out", "r")
    done = run(folder, "-c", code, *model, *arguments)
    report = json.loads((folder / "r" / "report.json").read_text(encoding="utf-8"))
    return done.returncode, {layer["name"]: layer for layer in report["layers"]}


def test_a_network_with_a_piece_of_each_kind_is_verified(tmp_path: Path) -> None:
    code, layers = verified(tmp_path, "--waive", str(WAIVERS))
    assert code == 0
    mirror, contrast = layers["mirror"], layers["contrast"]
    assert (mirror["op"], mirror["placement"]) == ("mirror", "npu")  # operator and converter
    assert mirror["elements"] == 512
    assert layers["mirror_2"]["op"] == "conv2d"  # the pass left nothing to mirror
    assert contrast["placement"] == "host" and layers["last"]["placement"] == "npu"


def test_the_host_function_is_a_host_layer_that_wants_a_waiver(tmp_path: Path) -> None:
    code, layers = verified(tmp_path)
    assert code == 1 and layers["contrast"]["placement"] == "host"


@pytest.mark.rtl
def test_the_operator_has_a_regression_at_every_stage(tmp_path: Path) -> None:
    arguments = ("mirror", "--case", "plain", "--case", "lanes_plus_one")
    done = run(tmp_path, "-m", "accelsim.ops", *arguments, "--extend", str(EXAMPLE))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 passed" in done.stdout


def test_the_matrix_shows_the_operator(tmp_path: Path) -> None:
    code = "import sys; from accelsim.cli import main; main(sys.argv[1:])"
    done = run(tmp_path, "-c", code, "ops", "mirror", "--extend", str(EXAMPLE), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["operators"]["mirror"]["runs_on"] == ["load", "store"]


def names() -> tuple[set[str], set[str], set[str]]:
    """What the rooms know."""
    legalized = {name for one in legalize_operators() for name in one.ops}
    return legalized, {one.name for one in reference_operators()}, set(known_operators())


class Unscheduled:
    """A dataclass of a layer that no scheduler knows."""


@pytest.mark.parametrize(
    ("op", "family", "compute", "proof", "said"),
    [
        ("add", "mine", None, None, "An operator named 'add' exists"),
        ("mine", "add", None, None, "the reference has an operator family 'add' already"),
        ("mine", "mine", Unscheduled, None, "Unscheduled has no schedule"),
        ("mine", "mine", None, "add", "the operator 'add' is there already"),
    ],
)
def test_an_operator_that_one_room_refuses_is_added_to_none(
    op: str, family: str, compute: type | None, proof: str | None, said: str
) -> None:
    before = names()
    with pytest.raises(InputError, match=said):
        extend.register_operator(
            legalize=LegalizeOperator(
                (op,), ("relax.flip",), compute, lambda frame, node: None, lambda op, given: None
            ),
            reference=ReferenceOperator(family, lambda island: None, lambda site: None),  # type: ignore[arg-type, return-value]
            proof=None if proof is None else operator_of(proof),
        )
    assert names() == before


@pytest.mark.parametrize("operator", ["conv2d.default", "relu6.default"])
def test_a_converter_of_ours_is_not_replaced(operator: str) -> None:
    with pytest.raises(InputError, match=operator):
        extend.register_converter(operator, lambda node, importer: None)


def test_a_host_function_takes_tensors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, Any] = {}
    monkeypatch.setattr(extend, "register_converter", found.setdefault)
    extend.register_host_operator("scaled.default", lambda x: x)
    node = SimpleNamespace(args=("x", 3), kwargs={})
    with pytest.raises(ModelError, match="takes tensors alone"):
        found["scaled.default"](node, SimpleNamespace(env={"x": None}))


def test_an_extension_that_fails_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no Python file"):
        load_extension(tmp_path / "none.py")
    (tmp_path / "bad.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match=r"bad\.py failed: ZeroDivisionError"):
        load_extension(tmp_path / "bad.py")
