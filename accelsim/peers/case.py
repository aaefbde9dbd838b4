"""What a peer's case is: layers of ours, inputs, and the outputs that the peer computed from them.

What comes in: nothing. What goes out: the types that suites fill in and runs consume. It must not
know any peer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from accelsim.artifacts import (
    I8,
    Backend,
    Layer,
    LayerOp,
    QuantizedModel,
    Region,
    Shape4,
    Tensor,
)
from accelsim.errors import AccelsimError
from accelsim.spec.config import Config


class OutOfScopeError(AccelsimError):
    """The case is legible, and the project does not claim to run what it describes."""


class UnreadableError(AccelsimError):
    """The case's files are missing, malformed or of a form that the reader does not know."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The case as a network of one layer: the whole compiler must give the peer's output.

    `inputs` and `expected` lie as the graph has them.
    """

    model: Callable[[], QuantizedModel]
    inputs: tuple[I8, ...]
    expected: I8


@dataclass(frozen=True, slots=True)
class Trial:
    """A case that was read: what to run, on what, and what must come out.

    The NPU must equal the layers' definition in every element, and the peer as well; or
    `alternative`, what the peer is known to compute instead, must equal the peer in every element,
    and `cause` says how it differs from the definition.
    """

    region: Region
    inputs: Mapping[str, I8]  # by name of the region's inputs, (n, h, w, c)
    expected: Mapping[str, I8]  # by name of the region's outputs, (n, h, w, c)
    alternative: Mapping[str, I8] = field(default_factory=dict)
    cause: str = ""
    compiled: Compiled | None = None


@dataclass(frozen=True, slots=True)
class NetworkRun:
    """What a network gave: its outputs, and how its layers compared with the peer's tensors."""

    outputs: NDArray[Any]
    compared: int = 0  # elements of layers
    wrong: str = ""  # the first layer that differs, and how
    alternative: NDArray[Any] | None = None  # outputs that the peer computes otherwise
    step: float = 1.0  # of the outputs
    own: str = ""  # the first layer that differs because its integers are accelsim's own
    within: int = 0  # steps by which such layers may differ


@dataclass(frozen=True, slots=True)
class NetworkTrial:
    """A model file that was read: outputs and layers on a backend must be those of the peer.

    Outputs may be in every element those that a run says the peer computes otherwise, for `cause`.
    """

    run: Callable[[Config, Backend], NetworkRun]
    expected: NDArray[Any]
    cause: str = ""


@dataclass(frozen=True, slots=True)
class PeerCase:
    """One case of a suite. `load` raises AccelsimError where the case cannot be run."""

    suite: str
    name: str
    load: Callable[[], Trial | NetworkTrial] = field(compare=False)


def chain(name: str, source: I8, *ops: tuple[LayerOp, Shape4]) -> tuple[Region, dict[str, I8]]:
    """A region of layers, each fed by the one before, and its input."""
    tensors = {"x": Tensor("x", shape4(source), 0, 1.0)}
    layers, last = [], "x"
    for number, (op, shape) in enumerate(ops):
        output = f"y{number}"
        tensors[output] = Tensor(output, shape, 0, 1.0)
        layers.append(Layer(output, kind_of(op), (output,), (last,), output, op))
        last = output
    return Region(symbol(name), tensors, ("x",), (last,), tuple(layers)), {"x": source}


def binary(name: str, a: I8, b: I8, op: LayerOp, shape: Shape4) -> tuple[Region, dict[str, I8]]:
    """A region of one layer with two activations, and its inputs."""
    tensors = {
        "a": Tensor("a", shape4(a), 0, 1.0),
        "b": Tensor("b", shape4(b), 0, 1.0),
        "y": Tensor("y", shape, 0, 1.0),
    }
    layer = Layer("y", kind_of(op), ("y",), ("a", "b"), "y", op)
    return Region(symbol(name), tensors, ("a", "b"), ("y",), (layer,)), {"a": a, "b": b}


def kind_of(op: LayerOp) -> str:
    """Name of a layer's operator, for messages."""
    return type(op).__name__.lower()


def symbol(name: str) -> str:
    """A case's name as an identifier."""
    return "".join(c if c.isalnum() else "_" for c in name)


def shape4(values: NDArray[Any]) -> Shape4:
    """Shape of an (n, h, w, c) array. Raises UnreadableError for another rank."""
    if values.ndim != 4:
        raise UnreadableError(f"an activation has {values.ndim} axes, expected (n, h, w, c)")
    n, h, w, c = values.shape
    return (n, h, w, c)
