"""An operator as its proofs know it: everything that differs from one operator to the next.

What comes in: nothing. What goes out: the types that a module of `accelsim.ops.operators` fills.
It must not know any operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accelsim.ops.case import Case, Spec
from accelsim.ops.outcome import STAGES, Outcome, Stage
from accelsim.spec.config import Config

if TYPE_CHECKING:
    from accelsim.ops.batch import Batch
    from accelsim.ops.modules import Builder

Edges = Callable[[Config], tuple[Spec, ...]]
Draw = Callable[[np.random.Generator, Config], Spec]
Make = Callable[[np.random.Generator, str, Spec], Case]
Relax = Callable[["Builder", Case, list[Any], bool], Any]
Kernel = Callable[[Case, list[Any]], Any]
Bound = Callable[[Case, list[Any], Any], Any]
Product = Callable[["Builder", Case, Any, Any], Any]
Cause = Callable[[Case, NDArray[Any], NDArray[Any]], str | None]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the support matrix says of an operator; a test holds `instructions` to the programs."""

    types: str  # of its operands: "uint8 or int8 activations, int8 weights"
    limits: tuple[str, ...]  # sizes and forms beyond which it stays on the host
    instructions: tuple[str, ...]  # of the instruction table, in the order of that table
    roundings: tuple[str, ...]  # of `QuantizedModel.rounding`
    exact: tuple[str, ...]  # frameworks whose integers it equals in every bit
    notes: str = ""  # peers that it differs from, by how much and why


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator.

    * `edges` gives the edge cases of a configuration, `draw` a random spec named "random".
    * `make(rng, name, spec)` draws quantization and values.
    * `relax(build, case, sources, quantized)` emits the float operator on Relax values; constants
      are dequantized integers where `quantized`, plain float32 otherwise.
    * `torch(case, sources)` is PyTorch's float32 kernel, `error(case, sources, result)` the bound
      of |TVM - PyTorch| by element (None: they are equal).
    * `quantized(case, sources)` is PyTorch's quantized kernel on qnnpack. Where there is none
      (None), the reference is compared with the quantized result of `torch`. Either may differ by
      at most `steps`, and `cause(case, reference, torch)` must explain every difference.
    * `product(build, case, a, b)` is the bilinear operator on int32 values, for products.
    * `legalized(batch, case)` takes the place of that stage where the output is not what counts.
    * `legal` says whether a spec is one that the operator has: shrinking keeps to those.
    """

    name: str
    facts: Facts
    edges: Edges
    draw: Draw
    make: Make
    relax: Relax
    torch: Kernel
    quantized: Kernel | None = None
    error: Bound | None = None
    steps: int = 0
    cause: Cause | None = None
    product: Product | None = None
    legalized: Callable[[Batch, Case], Outcome] | None = None
    legal: Callable[[Any], bool] = lambda spec: True
    spec: type[Spec] = Spec

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages that this operator has: only products have an expansion."""
        absent = () if self.product is not None else (Stage.EXPANSION,)
        return tuple(stage for stage in STAGES if stage not in absent)
