"""What the reference knows of operators: one module of this folder for each family.

What comes in: `Island`s of the QDQ graph (`reference.flow`). What goes out: the `Operator` that
claims one, with its exact kernel, its parameters and PyTorch's kernel. No other module of the
reference may know a single operator.

A module named after its family defines `OPERATOR`, with

* `recognise(island)` → `Claim`, or None where the island is something else. It starts at
  `island.ending.value` (or `island.last`, to see the clamps too) and follows `Node.operands`
  backwards. Any subgraph can be claimed: N sources (a concat's operands are a tuple), constant
  operands (`np.ndarray` floats, `Weight` quantized), or a chain of elementwise operators from one
  source (`island.sources()`), whose float code is `island.code()`. Families with a lower `rank`
  are asked first; two of one rank must not claim the same island.
* `kernel(site)` → `Kernel`: how the layer is emitted in Relax and TE (`Emitter` has the steps
  that several share) and the values of its parameters, from the scales as `site.rounding`
  derives them. `ModelError` where they cannot be exact.
* `torch`: PyTorch's own quantized kernel of the layer, where there is one.
* `causes`: why PyTorch may differ, by the rounding that would give exactly PyTorch's outputs.
* `distance(site)`: output steps between the integers and the real result at most, of families
  whose integers are their own (tables, softmax, normalization): PyTorch may then differ within it.
  None of a layer whose integers are a framework's.
* `trusted(site)`: whether PyTorch's quantized kernel computes what the layer means; where it does
  not, its float kernels are the golden.

The modules are found in the folder when an operator is first asked for; `register` adds one from
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from accelsim.discovery import modules_in
from accelsim.errors import InputError
from accelsim.reference.flow import Claim, Island
from accelsim.reference.kernels import Kernel
from accelsim.reference.network import Network, ReferenceLayer
from accelsim.reference.site import Site, site_of

HOST = "host"  # the family of layers without an integer definition


@dataclass(frozen=True, slots=True)
class TorchKernel:
    """PyTorch's quantized kernel of a layer.

    `covers` says whether PyTorch has it for this very layer. `run` takes quint8 tensors in the
    shapes that the core sees and gives the quantized result before clamps.
    """

    covers: Callable[[Site], bool]
    run: Callable[[Site, list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Operator:
    """One family of operators, see the module's docstring."""

    name: str
    recognise: Callable[[Island], Claim | None]
    kernel: Callable[[Site], Kernel]
    torch: TorchKernel | None = None
    causes: Mapping[str, str] = field(default_factory=dict)
    distance: Callable[[Site], float | None] | None = None
    trusted: Callable[[Site], bool] = lambda site: True
    rank: int = 0
    tensor_ranks: frozenset[int] = frozenset({2, 4})  # of inputs and output, others: the host's


@cache
def _registry() -> dict[str, Operator]:
    """Families by name; those of this folder at first."""
    found = {}
    for module in modules_in(__name__):
        operator: Operator = module.OPERATOR
        found[operator.name] = operator
    return found


def register(operator: Operator) -> None:
    """Add a family. `InputError` where its name is taken."""
    if operator.name in _registry() or operator.name == HOST:
        raise InputError(f"the reference has an operator family '{operator.name}' already")
    _registry()[operator.name] = operator


def operators() -> tuple[Operator, ...]:
    """All families in the order in which they are asked: by rank, then by name."""
    return tuple(sorted(_registry().values(), key=lambda one: (one.rank, one.name)))


def family(name: str) -> Operator:
    """The family of that name. `InputError` where there is none."""
    if name not in _registry():
        raise InputError(f"the reference has no operator family '{name}'")
    return _registry()[name]


def distance_of(network: Network, layer: ReferenceLayer, rounding: str) -> float | None:
    """`Operator.distance` of a layer; None where its integers are those of a framework."""
    distance = None if layer.family == HOST else family(layer.family).distance
    return None if distance is None else distance(site_of(network, layer, rounding))


def is_trusted(network: Network, layer: ReferenceLayer, rounding: str) -> bool:
    """`Operator.trusted` of a layer."""
    return layer.family == HOST or family(layer.family).trusted(site_of(network, layer, rounding))


def claim_of(island: Island) -> tuple[Operator, Claim] | None:
    """The family that an island belongs to and its claim, or None: it is the host's."""
    for operator in operators():
        claim = operator.recognise(island)
        if claim is None:
            continue
        shapes = (*(source.tensor.shape for source in claim.sources), island.output.shape)
        if all(len(shape) in operator.tensor_ranks for shape in shapes):
            return operator, claim
    return None
