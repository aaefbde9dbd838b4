"""The artifacts that one room hands to the next: frozen, slotted dataclasses and nothing else.

What comes in: nothing. What goes out: types. No module of this room imports TVM or torch, so that
instruction-set, simulator and RTL tests run without them; fields that hold their objects are `Any`.

Conventions: activations are int8 and given as (n, h, w, c) shapes; a matrix [n, k] is (n, 1, 1, k).
Convolution weights are (out_channels, kernel_h, kernel_w, in_channels_per_group) int8.
"""

from __future__ import annotations

from accelsim.artifacts.arrays import (
    F32,
    I8,
    I32,
    Shape4,
)
from accelsim.artifacts.compute import (
    Add,
    Assemble,
    Binary,
    Conv2d,
    ConvTranspose2d,
    Extremum,
    FixedAdd,
    Interpolation,
    LayerNorm,
    LayerOp,
    Lookup,
    MatMul,
    Piece,
    Pool2d,
    PRelu,
    Requantize,
    Resize2d,
    Seen,
    Softmax,
    TfliteAdd,
    Transpose,
)
from accelsim.artifacts.model import (
    FRAMEWORKS,
    ForeignModel,
    QuantizedModel,
    SourceModel,
    Training,
)
from accelsim.artifacts.program import (
    Access,
    LayerRecord,
    Patches,
    Program,
    Schedule,
    Step,
    TensorExtent,
    bare_program,
)
from accelsim.artifacts.region import (
    Layer,
    Region,
    Tensor,
)
from accelsim.artifacts.results import (
    STATUSES,
    Backend,
    Comparison,
    Difference,
    Launch,
    LayerReport,
    Record,
    RunResult,
)

__all__ = [
    "F32",
    "FRAMEWORKS",
    "I8",
    "I32",
    "STATUSES",
    "Access",
    "Add",
    "Assemble",
    "Backend",
    "Binary",
    "Comparison",
    "Conv2d",
    "ConvTranspose2d",
    "Difference",
    "Extremum",
    "FixedAdd",
    "ForeignModel",
    "Interpolation",
    "Launch",
    "Layer",
    "LayerNorm",
    "LayerOp",
    "LayerRecord",
    "LayerReport",
    "Lookup",
    "MatMul",
    "PRelu",
    "Patches",
    "Piece",
    "Pool2d",
    "Program",
    "QuantizedModel",
    "Record",
    "Region",
    "Requantize",
    "Resize2d",
    "RunResult",
    "Schedule",
    "Seen",
    "Shape4",
    "Softmax",
    "SourceModel",
    "Step",
    "Tensor",
    "TensorExtent",
    "TfliteAdd",
    "Training",
    "Transpose",
    "bare_program",
]
