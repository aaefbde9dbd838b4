"""The network as the goldens see it: quantized tensors and the layers between them.

What comes in: nothing. What goes out: frozen dataclasses that `graph` fills from the QDQ module and
that every golden reads. It must not know TVM, torch, the hardware or the compiler's own layers.

Shapes: a *logical* shape is the model's own, (n, c, h, w) or (n, k). What leaves this room is int8
in (n, h, w, c), where (n, k) becomes (n, 1, 1, k). Zero points and clamp limits are in the int8
domain: a uint8 value minus 128.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.artifacts import Shape4
from accelsim.errors import ModelError
from accelsim.quantize.layouts import nhwc_shape

Shape = tuple[int, ...]
Pair = tuple[int, int]
Padding = tuple[int, int, int, int]  # top, left, bottom, right


@dataclass(frozen=True, slots=True)
class QuantizedTensor:
    """A quantized activation. `stored` is its dtype in the QDQ module, int8 or uint8."""

    name: str
    shape: Shape  # logical
    scale: np.float32
    zero_point: int  # int8 domain
    stored: str
    clamp_min: int = -128  # int8 domain, the quantizer's own limits
    clamp_max: int = 127
    axis: int = 1  # of its channels, see `quantize.layouts`
    divides: bool = False  # whether floats are divided by the scale, or multiplied by its inverse

    @property
    def layout(self) -> Shape4:
        """(n, h, w, c)."""
        return nhwc_shape(self.shape, self.axis)

    @property
    def offset(self) -> int:
        """Stored value minus int8-domain value."""
        return 128 if self.stored == "uint8" else 0


@dataclass(frozen=True, slots=True)
class Host:
    """No integer definition: the module's own float code of the layer, see `reference.host`.

    `module` takes the layer's inputs as they are stored and returns floats before the quantize.
    `given` has one entry a parameter: the name of the model's own input that it is, or None for the
    next of the layer's inputs.
    """

    module: Any
    given: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class ReferenceLayer:
    """Everything between the dequantizes of its inputs and its quantize.

    `family` names the operator module that knows the layer, and `core` is what it recognised;
    nothing else looks into it. The family of a `Host` core is "host".
    `core_shapes` are the logical shapes of the inputs as the core operator sees them (after a
    reshape, where there is one). `limits` are real clamp limits (ReLU, ReLU6) before the quantize.
    """

    name: str
    op: str
    members: tuple[str, ...]
    inputs: tuple[str, ...]
    output: str
    input_shapes: tuple[Shape4, ...]
    macs: int
    family: str
    core: Any
    core_shapes: tuple[Shape, ...]
    core_output_shape: Shape
    limits: tuple[float, float] = (-math.inf, math.inf)

    @property
    def kind(self) -> str:
        """ "integer", or "host" for a layer that is computed in floats."""
        return "host" if isinstance(self.core, Host) else "integer"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A tensor quantized from float operators on the model's own inputs, which the host runs."""

    tensor: str
    inputs: tuple[str, ...]  # names of the model's inputs
    shapes: tuple[Shape, ...]  # of these inputs
    dtypes: tuple[str, ...]
    module: Any  # as that of `Host`


@dataclass(frozen=True, slots=True)
class Network:
    """Tensors by name and layers in execution order.

    `inputs` pairs a model input's name with the tensor that its boundary quantize makes, or that it
    is where the model takes integers: those are in `direct`. Tensors with float operators before
    the first quantize are in `prepared`. `outputs` are the tensors dequantized at the end, in the
    model's order, and `integer_outputs` says which are returned as integers instead. `float_tail`
    is true where float operators follow the last dequantize, so that the tensors alone are not the
    model's output; `tail` is their code, None where it takes nothing that is quantized, and
    `tail_inputs` the tensors that it takes.
    """

    tensors: dict[str, QuantizedTensor]
    layers: tuple[ReferenceLayer, ...]
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    direct: tuple[str, ...] = ()
    integer_outputs: tuple[bool, ...] = ()
    float_tail: bool = False
    tail: Host | None = None
    tail_inputs: tuple[str, ...] = ()
    prepared: tuple[Prepared, ...] = ()

    @property
    def boundary(self) -> tuple[str, ...]:
        """Tensors that come from the model's inputs and not from a layer."""
        return (*(name for _, name in self.inputs), *(one.tensor for one in self.prepared))

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All float code that takes quantized tensors, the tail's included."""
        found = [layer.core for layer in self.layers if isinstance(layer.core, Host)]
        return (*found, *([] if self.tail is None else [self.tail]))

    def layer(self, name: str) -> ReferenceLayer:
        """The layer of that name; `ModelError` where there is none."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ModelError(f"the network has no quantized layer '{name}'")
