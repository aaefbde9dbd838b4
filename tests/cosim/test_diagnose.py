"""`accelsim diagnose` with a planted bug of the RTL."""

from __future__ import annotations

import json

from accelsim.mutate import Mutants
from accelsim.spec.config import load_config
from tests.cli.invocation import invoke
from tests.diagnose import nets

ROUNDS_DOWN = "- 32'(round_up)"  # npu_fp_round takes 1 off where it should add it


def test_a_bug_planted_in_the_rtl_is_the_rtl_with_its_layer_and_replay(tmp_path):
    sites = Mutants.of(load_config("edge8")).sites
    bug = next(i for i, site in enumerate(sites) if str(site).endswith(ROUNDS_DOWN))
    given = ("diagnose", f"{nets.__file__}:sound", "--rtl-bug", bug, "--out", "run", "-q")
    result = invoke(tmp_path, *given, "--json", "d.json")
    found = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))
    assert result.code == 1 and found["verdict"] == "rtl", result.out
    assert found["faults"][0]["layer"] == "first"
    assert result.out.splitlines()[-1].strip() == "accelsim replay run"
