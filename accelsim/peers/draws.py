"""Random cases of a suite: the same in every run, and varied enough to tell anything.

What comes in: makers of trials by name. What goes out: `PeerCase`s. It must not know any peer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from zlib import crc32

import numpy as np

from accelsim.peers.case import PeerCase, Trial

CASES = 8  # of each operator
COMPILED = 3  # of them also through the whole compiler
DISTINCT = 16  # values that every golden has at least
Generator = np.random.Generator
Maker = Callable[[Generator], Trial]


def random_cases(suite: str, makers: Mapping[str, Maker]) -> Iterator[PeerCase]:
    """CASES of every operator, named operator-number."""
    for operator, make in makers.items():
        for number in range(CASES):
            name = f"{operator}-{number}"
            yield PeerCase(suite, name, partial(_load, make, name, number < COMPILED))


def _load(make: Maker, name: str, compiled: bool) -> Trial:
    """The first draw with a varied golden."""
    rng = np.random.default_rng(crc32(name.encode()))
    while True:
        trial = make(rng)
        values = np.concatenate([golden.ravel() for golden in trial.expected.values()])
        if np.unique(values).size >= DISTINCT:
            return trial if compiled else replace(trial, compiled=None)
