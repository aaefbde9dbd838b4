"""Where the peers' data lies, and what happens without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("ACCELSIM_PEER_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of peer data: it must be there in CI; elsewhere a test without it is skipped."""
    if not (DATA / "cmsis_nn").is_dir():
        reason = f"there is no peer data in {DATA}; set ACCELSIM_PEER_DATA"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return DATA
