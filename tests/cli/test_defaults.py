"""Defaults from accelsim.toml or pyproject.toml: known names only, and flags win."""

from __future__ import annotations

import pytest

from accelsim.cli.app import globals_first
from tests.cli.invocation import invoke

WRONG = [
    ("accelsim.toml", "[verfy]\nseed = 1", "no command 'verfy'; did you mean verify?"),
    ("accelsim.toml", "[verify]\nsed = 1", "verify: there is no option 'sed'; did you mean seed?"),
    ("accelsim.toml", "seed = 1", "there is no option 'seed'"),
    ("accelsim.toml", "[verify]\nseed = [1]", "seed cannot be a list"),
    ("accelsim.toml", "verify = 3", "write its options into a table [verify]"),
    ("accelsim.toml", "[cache]\nx = 1", "cache: there is no option 'x'; it has none"),
    ("accelsim.toml", "[verify", "is not valid TOML"),
    ("pyproject.toml", "[tool.accelsim.zoo]\nx = 1", "pyproject.toml, tool.accelsim, zoo"),
    ("pyproject.toml", "tool = 3", "tool must be a table"),
    ("pyproject.toml", "[tool]\naccelsim = 3", "tool.accelsim must be a table"),
]


@pytest.mark.parametrize(("file", "text", "named"), WRONG)
def test_an_unknown_name_is_an_error_that_names_it(tmp_path, file, text, named):
    (tmp_path / file).write_text(text)
    result = invoke(tmp_path, "zoo")
    assert result.code == 2 and named in result.err


@pytest.mark.parametrize(
    ("file", "table"), [("accelsim.toml", "verify"), ("pyproject.toml", "tool.accelsim.verify")]
)
def test_a_default_replaces_the_program_s_and_a_flag_replaces_it(tmp_path, file, table):
    (tmp_path / file).write_text(f"[{table}]\nconfig = 'huge'\nbackend = 'sim'\ndump-ir = 'd'\n")
    assert "'huge'" in invoke(tmp_path, "verify", "m.pt2").err
    assert "m.pt2 does not exist" in invoke(tmp_path, "verify", "m.pt2", "--config", "edge8").err


def test_accelsim_toml_wins_over_pyproject(tmp_path):
    (tmp_path / "accelsim.toml").write_text("[verify]\nconfig = 'mine'\n")
    (tmp_path / "pyproject.toml").write_text("[tool.accelsim.verify]\nconfig = 'theirs'\n")
    assert "'mine'" in invoke(tmp_path, "verify", "m.pt2").err


def test_global_options_may_stand_anywhere_before_two_dashes():
    given = ["verify", "m", "-q", "--color", "never", "--seed", "1", "--", "-v"]
    wanted = ["-q", "--color", "never", "verify", "m", "--seed", "1", "--", "-v"]
    assert globals_first(given) == wanted
