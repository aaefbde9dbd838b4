"""PyTorch's quantized kernels of its qnnpack engine on random cases.

What comes in: nothing but a name. What goes out: `PeerCase`s, whose expected outputs the kernels
compute when a case is loaded. Sums take 22-bit integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from accelsim.peers.case import PeerCase
from accelsim.peers.draws import Maker, random_cases
from accelsim.peers.qnnpack_dense import DENSE
from accelsim.peers.qnnpack_pointwise import POINTWISE

MAKERS: dict[str, Maker] = {**DENSE, **POINTWISE}


def discover(suite: str, _folder: Path) -> Iterator[PeerCase]:
    """The same random cases of every operator in every run."""
    return random_cases(suite, MAKERS)
