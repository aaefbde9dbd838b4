"""What tests of operators share."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest


@pytest.fixture
def known() -> Iterator[dict[str, Any]]:
    """The table of operators, which is again what it was after the test."""
    table = import_module("accelsim.ops.operators")._known()
    before = dict(table)
    yield table
    table.clear()
    table.update(before)
