"""Integer Relax module → a module with accelerated regions, and each region as an artifact.

What comes in: a `Legalized` module. What goes out: the partitioned module, in which every region
is one function annotated for the `accelsim` code generator, and `Region`s that need no TVM. It must
not know tiling, instructions or runtime modules.
"""

from __future__ import annotations

from accelsim.partition.patterns import Stages, partition
from accelsim.partition.regions import regions_of
from accelsim.partition.symbols import CODEGEN, region_calls

__all__ = ["CODEGEN", "Stages", "partition", "region_calls", "regions_of"]
