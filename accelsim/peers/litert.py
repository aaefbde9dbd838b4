"""LiteRT's reference kernels on random models of one operator.

What comes in: seeds. What goes out: `PeerCase`s, whose expected outputs the kernels compute when a
case is loaded. Layers are derived from the models' scales as `tflite_rules` states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np

from accelsim.peers.case import PeerCase, Trial
from accelsim.peers.litert_dense import DENSE
from accelsim.peers.litert_moves import MOVES
from accelsim.peers.litert_pointwise import POINTWISE

CASES = 6  # of each operator
DISTINCT = 16  # values that every golden has at least
MAKERS: dict[str, Callable[[np.random.Generator], Trial]] = {**DENSE, **POINTWISE, **MOVES}


def discover(suite: str, _folder: Path) -> Iterator[PeerCase]:
    """The same random cases of every operator in every run."""
    for operator, make in MAKERS.items():
        for number in range(CASES):
            name = f"{operator}-{number}"
            yield PeerCase(suite, name, partial(_load, make, name))


def _load(make: Callable[[np.random.Generator], Trial], name: str) -> Trial:
    """The first draw whose golden is varied enough to tell anything."""
    rng = np.random.default_rng(crc32(name.encode()))
    while True:
        trial = make(rng)
        values = np.concatenate([golden.ravel() for golden in trial.expected.values()])
        if np.unique(values).size >= DISTINCT:
            return trial
