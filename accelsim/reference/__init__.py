"""The goldens that every backend is compared with.

What comes in: a `QuantizedModel`. What goes out: int8 tensors for every layer, (n, h, w, c), from
three sources that share no arithmetic with the compiler, the simulator or the RTL:

* `build` → `Reference`: the integer definition, read from the QDQ module before it is legalized and
  computed by TVM's own CPU code. It gates: every bit, isolated and accumulated.
* `build_framework` → `FrameworkGolden`: the kernels of the framework that the model came from, such
  as PyTorch's int8 kernels on the qnnpack engine (`TorchGolden`). Isolated they gate.
* `build_tvm` → `TvmGolden`: the QDQ module itself in floats. It is reported and gates nothing.

The last two take `Reference.network`, the layers and tensors that all goldens name alike: a tensor
has the name of the layer that makes it, a boundary tensor that of the model's input. Isolated
goldens take the tensors of any run, normally the reference's own:

    reference = build(quantized)
    values = reference.run(reference.quantize_inputs({"x": image}))
    framework = build_framework(quantized, reference.network)
    own = framework.run_layer("conv1", (values["x"],))

It must not know the legalized module, the hardware, or what the goldens are compared with.
"""

from __future__ import annotations

from accelsim.reference.causes import torch_cause
from accelsim.reference.framework import TITLES, FrameworkGolden, build_framework
from accelsim.reference.golden import GoldenSet, constant_goldens, is_constant
from accelsim.reference.integer import Reference, build
from accelsim.reference.network import Network, QuantizedTensor, ReferenceLayer
from accelsim.reference.pytorch import TorchGolden, build_torch
from accelsim.reference.selfcheck import check_qnnpack
from accelsim.reference.tvm_float import TvmGolden, build_tvm

__all__ = [
    "TITLES",
    "FrameworkGolden",
    "GoldenSet",
    "Network",
    "QuantizedTensor",
    "Reference",
    "ReferenceLayer",
    "TorchGolden",
    "TvmGolden",
    "build",
    "build_framework",
    "build_torch",
    "build_tvm",
    "check_qnnpack",
    "constant_goldens",
    "is_constant",
    "torch_cause",
]
