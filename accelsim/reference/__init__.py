"""The goldens that every backend is compared with.

What comes in: a `QuantizedModel`. What goes out: int8 tensors for every layer, (n, h, w, c), from
three sources that share no arithmetic with the compiler, the simulator or the RTL:

* `build` → `Reference`: the integer definition, read from the QDQ module before it is legalized and
  computed by TVM's own CPU code. It gates: every bit, isolated and accumulated.
* `TorchGolden`: PyTorch's own int8 kernels on the qnnpack engine. Isolated it gates.
* `TvmGolden`: the QDQ module itself in floats. It is reported and gates nothing.

It must not know the legalized module, the hardware, or what the goldens are compared with.
"""

from __future__ import annotations

from accelsim.reference.golden import GoldenSet, constant_goldens, is_constant
from accelsim.reference.integer import Reference, build
from accelsim.reference.network import Network, QuantizedTensor, ReferenceLayer

__all__ = [
    "GoldenSet",
    "Network",
    "QuantizedTensor",
    "Reference",
    "ReferenceLayer",
    "build",
    "constant_goldens",
    "is_constant",
]
