"""Damaged `.tflite` files are read or refused; none ends the process or fills its memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.importer.fuzz_tflite import damaged
from tests.importer.tflite_files import plain, saved

ROOT = Path(__file__).parents[2]


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.importer.fuzz_tflite", saved(tmp_path, plain())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {what: int(n) for n, what in (x.split(" ", 1) for x in done.stdout.split(", "))}
    assert counts["refused"] > 100 and counts["converted"] > 10 and counts["wrong\n"] == 0


def test_damage_changes_most_files() -> None:
    data = plain()
    same = sum(damaged(data, np.random.default_rng((1, n))) == data for n in range(100))
    assert same < 20
