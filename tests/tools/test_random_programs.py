"""The campaign of random programs agrees on a slice, and says what differs where it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accelsim.artifacts import Record, RunResult
from tools.random_programs import difference, main

RESULT = RunResult(
    "sim", 100, 0, 0, 0, (Record(0, 0, 5, 9, 7),), {2: np.arange(8, dtype=np.uint8)}, ()
)


@pytest.mark.rtl
@pytest.mark.timeout(900)
def test_a_slice_of_the_campaign_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "12", "--seed", "5"]) == 0
    assert "12 programs of seed 5 agree on edge8" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cycles": 101}, "cycles is 100 on sim and 101 on rtl"),
        ({"error_code": 3}, "error_code is 0 on sim and 3 on rtl"),
        ({"records": ()}, "1 records on sim, 0 on rtl"),
        ({"records": (Record(0, 0, 5, 9, 8),)}, "digest=7"),
        ({"dram": {2: np.arange(1, 9, dtype=np.uint8)}}, "byte 0 of base register 2 is 0 on sim"),
    ],
)
def test_every_difference_is_told(change: dict[str, object], message: str) -> None:
    assert difference(RESULT, RESULT) == ""
    assert message in difference(RESULT, replace(RESULT, **change))  # type: ignore[arg-type]


def test_nothing_compared_is_a_difference() -> None:
    empty = replace(RESULT, dram={})
    assert difference(empty, empty) == "no memory was compared"


def test_bad_input_is_refused() -> None:
    assert main(["--config", "edge9", "--count", "1"]) == 2
    with pytest.raises(SystemExit) as stopped:
        main(["--count", "0"])
    assert stopped.value.code == 2
