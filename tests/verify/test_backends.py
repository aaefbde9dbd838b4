"""How the backends of a verification are set up."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelsim.cosim.session import Cosim
from accelsim.spec.config import CONFIGS
from accelsim.verify import VerifyOptions, backends


def test_the_run_with_stalls_has_every_base_off_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Cosim] = []

    def start(cosim: Cosim) -> None:
        opened.append(cosim)

    monkeypatch.setattr(Cosim, "start", start)
    options = VerifyOptions("net", CONFIGS["edge8"], tmp_path)
    with backends.open_backends(options, None), backends.stalling_rtl(options):
        plain, stalling = opened
    assert plain.skews == {} and plain.memory.r_gap == 0
    assert stalling.memory.r_gap > 0 and set(stalling.skews) == set(range(8))
    assert all(0 < skew < 4096 and skew % 64 == 0 for skew in stalling.skews.values())
