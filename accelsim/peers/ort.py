"""ONNX Runtime's quantized operators on random models.

What comes in: nothing but a name. What goes out: `PeerCase`s, whose expected outputs the CPU
provider computes, graph optimisation off, when a case is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from accelsim.peers.case import PeerCase
from accelsim.peers.draws import Maker, random_cases
from accelsim.peers.ort_dense import DENSE
from accelsim.peers.ort_pointwise import POINTWISE
from accelsim.peers.ort_tables import TABLES

MAKERS: dict[str, Maker] = {**DENSE, **POINTWISE, **TABLES}


def discover(suite: str, _folder: Path) -> Iterator[PeerCase]:
    """The same random cases of every operator in every run."""
    return random_cases(suite, MAKERS)
