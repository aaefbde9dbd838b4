"""LiteRT's reference kernels on random models of one operator.

What comes in: nothing but a name. What goes out: `PeerCase`s, whose expected outputs the kernels
compute when a case is loaded. Layers are derived from the models' scales as `tflite_rules` states.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from accelsim.peers.case import PeerCase
from accelsim.peers.draws import Maker, random_cases
from accelsim.peers.litert_dense import DENSE
from accelsim.peers.litert_moves import MOVES
from accelsim.peers.litert_places import PLACES
from accelsim.peers.litert_pointwise import POINTWISE
from accelsim.peers.litert_resize import RESIZES

MAKERS: dict[str, Maker] = {**DENSE, **POINTWISE, **MOVES, **PLACES, **RESIZES}


def discover(suite: str, _folder: Path) -> Iterator[PeerCase]:
    """The same random cases of every operator in every run."""
    return random_cases(suite, MAKERS)
