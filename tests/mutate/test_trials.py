"""The trials that campaigns hold mutants against: the RTL as it is passes them, in any order."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.cosim.session import Cosim
from accelsim.mutate import Trial, trials
from accelsim.spec.config import CONFIGS
from accelsim.spec.isa import BY_NAME
from accelsim.spec.registers import ErrorCode


@pytest.mark.rtl
@pytest.mark.timeout(900)  # the model may have to be built
@pytest.mark.parametrize("config", ["edge8", pytest.param("base16", marks=pytest.mark.campaign)])
def test_every_trial_passes_and_follows_any_other(config: str, seed: int) -> None:
    suite = trials(CONFIGS[config], seed)
    with Cosim(CONFIGS[config]) as rtl:
        for index in np.random.default_rng(seed).permutation(len(suite)):
            assert suite[index].run(rtl) == "", suite[index].name


def test_trials_see_every_error_code_and_every_extent(seed: int) -> None:
    suite = [t for t in trials(CONFIGS["edge8"], seed) if isinstance(t, Trial)]
    assert {trial.expected.error_code for trial in suite} == set(ErrorCode)
    for name in sorted(set(BY_NAME) - {"end"}):
        for slot in range(len(BY_NAME[name].extents)):
            for side in ("at", "beyond"):
                wanted = f"{name} {side} the limit of extent {slot}"
                assert any(trial.name == wanted for trial in suite), wanted
