"""One tensor against one golden."""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import I8, Comparison, Difference


def compare_tensors(
    actual: I8,
    golden: I8,
    *,
    backend: str,
    source: str,
    mode: str,
    gate: bool,
) -> Comparison:
    """Every element of `actual` against `golden`, both (n, h, w, c) int8, exactly.

    A golden of another shape or without elements counts as missing: it proved nothing. The first
    difference is located in its layer by `locate`, which needs the program.
    """
    if actual.shape != golden.shape or actual.size == 0:
        cause = f"golden of shape {golden.shape} cannot be compared with {actual.shape}"
        return missing(backend, source, mode, gate, cause)
    difference = np.abs(actual.astype(np.int16) - golden.astype(np.int16))
    wrong = np.flatnonzero(difference)
    first = None
    if wrong.size:
        n, h, w, c = (int(i) for i in np.unravel_index(wrong[0], actual.shape))
        at = (n, h, w, c)
        first = Difference(at, int(golden[at]), int(actual[at]), -1, -1, "")
    return Comparison(
        actual=backend,
        golden=source,
        mode=mode,
        elements=int(actual.size),
        mismatches=int(wrong.size),
        max_abs_diff=int(difference.max()),
        status="different" if wrong.size else "equal",
        gate=gate,
        first=first,
    )


def missing(backend: str, source: str, mode: str, gate: bool, cause: str) -> Comparison:
    """A comparison that could not be made; it fails where it gates."""
    return Comparison(backend, source, mode, 0, 0, 0, "missing", gate, cause=cause)
