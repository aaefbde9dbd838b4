"""The artifacts that one room hands to the next: frozen, slotted dataclasses and nothing else.

What comes in: nothing. What goes out: types. This module imports neither TVM nor torch, so that
instruction-set, simulator and RTL tests run without them; fields that hold their objects are `Any`.

Conventions: activations are int8 and given as (n, h, w, c) shapes; a matrix [n, k] is (n, 1, 1, k).
Convolution weights are (out_channels, kernel_h, kernel_w, in_channels_per_group) int8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.spec.config import Config

Shape4 = tuple[int, int, int, int]
I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
F32 = NDArray[np.float32]


# --- importer → quantize
@dataclass(frozen=True, slots=True)
class SourceModel:
    """A model as its user gave it, with the data that quantization and accuracy need."""

    name: str  # as given on the command line: "zoo:digits-resnet", "net.pt2", "file.py:make"
    float_module: Any  # torch.nn.Module in eval mode
    example_inputs: tuple[np.ndarray, ...]  # one batch, in the model's own layout and dtype
    input_names: tuple[str, ...]
    calibration: tuple[np.ndarray, ...] = ()  # batches for post-training quantization
    test_inputs: np.ndarray | None = None  # (samples, ...) in the model's own layout
    test_labels: np.ndarray | None = None  # (samples,) integer class labels
    already_quantized: bool = False  # a QDQ `.pt2`: skip calibration


# ----- quantize → legalize
@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """The quantized network in the three forms that the rest needs.

    `qdq` is the living definition of the arithmetic: compiler and reference both start from it.
    Every call in it carries a `relax` span whose source name is the user's layer name.
    """

    name: str
    exported: Any  # torch.export.ExportedProgram, quantized_decomposed q/dq around float ops
    qdq: Any  # tvm.IRModule, relax.quantize/dequantize around float ops, integer weights
    torch_int8: Any | None  # convert_fx GraphModule for the qnnpack engine: the bit-exact golden
    layer_names: tuple[str, ...]  # in execution order, unique
    input_names: tuple[str, ...]
    input_shapes: tuple[tuple[int, ...], ...]
    input_dtypes: tuple[str, ...]
    # How sums of two tensors are rounded, for compiler and reference alike: "qnnpack" as PyTorch's
    # kernel does (integer multipliers, see `FixedAdd`) wherever that kernel is defined, "fp32" as
    # float32 operations one by one. "qnnpack" for models whose golden is PyTorch's qnnpack.
    add_rule: str = "fp32"


# ----- partition → schedule
@dataclass(frozen=True, slots=True)
class Tensor:
    """An int8 activation that crosses a layer boundary."""

    name: str
    shape: Shape4
    zero_point: int  # int8 domain
    scale: float  # for reports only: no arithmetic uses it


@dataclass(frozen=True, slots=True)
class Requantize:
    """int32 accumulator → int8. See the `fp32` mode in `accelsim.spec.arithmetic`."""

    multiplier: F32  # (channels,) positive normal float32
    zero_point: int
    clamp_min: int  # int8 domain, already includes ReLU and the exporter's clamp
    clamp_max: int
    mode: str = "fp32"


@dataclass(frozen=True, slots=True)
class Conv2d:
    """Σ (x - input_zero_point)(w - weight_zero_point) + bias, then requantized.

    `depthwise` means groups == in_channels == out_channels and weight shape (c, kh, kw, 1).
    A linear layer is a convolution of a (n, 1, 1, k) tensor with a (m, 1, 1, k) weight.
    """

    weight: I8
    bias: I32  # (out_channels,)
    input_zero_point: int
    weight_zero_point: int
    requantize: Requantize
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, left, bottom, right
    dilation: tuple[int, int] = (1, 1)
    depthwise: bool = False


@dataclass(frozen=True, slots=True)
class FixedAdd:
    """Parameters of the `fixed` mode of an addition, see `accelsim.spec.arithmetic.add_fixed`."""

    a_multiplier: int  # 0 to 2^22
    b_multiplier: int
    shift: int  # 0 to 31


@dataclass(frozen=True, slots=True)
class Add:
    """rint(((a - za)·sa + (b - zb)·sb) · (1/so)) + zo, every operation rounded to float32.

    With `fixed`, round(((a - za)·ma + (b - zb)·mb) / 2^shift) + zo instead, ties away from zero;
    no arithmetic uses the scales then.
    """

    a_zero_point: int
    b_zero_point: int
    a_scale: np.float32
    b_scale: np.float32
    inverse_output_scale: np.float32
    zero_point: int
    clamp_min: int
    clamp_max: int
    fixed: FixedAdd | None = None


@dataclass(frozen=True, slots=True)
class Pool2d:
    """`max` over a window, or `sum` of (x - input_zero_point) over it, requantized.

    Padding never wins a maximum and adds nothing to a sum. `requantize` is None for `max`, whose
    result is only clamped.
    """

    kind: str  # "max" or "sum"
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]
    input_zero_point: int
    requantize: Requantize | None
    clamp_min: int = -128
    clamp_max: int = 127


LayerOp = Conv2d | Add | Pool2d


@dataclass(frozen=True, slots=True)
class Layer:
    """One fused layer of a region: what the user calls it, what it reads, writes and computes."""

    name: str  # the user's name of the layer whose output this is; unique in the network
    op: str  # "conv2d" | "depthwise_conv2d" | "linear" | "add" | "max_pool2d" | "avg_pool2d" | …
    members: tuple[str, ...]  # every user layer fused into this one, in order
    inputs: tuple[str, ...]  # tensor names
    output: str
    compute: LayerOp


@dataclass(frozen=True, slots=True)
class Region:
    """A partition that runs on the NPU: layers in execution order over named tensors."""

    symbol: str  # the global symbol of the partitioned function
    tensors: Mapping[str, Tensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    layers: tuple[Layer, ...]


# ----- schedule → emit
@dataclass(frozen=True, slots=True)
class Access:
    """What a step touches: [start, end) of a memory, or a port that engines may not share.

    Memories: "act", "wgt", "par" (beats), "acc0", "acc1", "dram0" … "dram7" (beats from the base
    register). Ports: "act0.read", "act0.write", … one for each bank.
    """

    memory: str
    start: int
    end: int
    exclusive: bool  # a write, or any use of a port: ordered against every other engine's use


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction before its tokens are known."""

    instruction: str  # name in the instruction table
    values: Mapping[str, int]
    layer: int
    tile: int
    accesses: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in program order; every dependence points backwards in it."""

    region: Region
    config_name: str
    steps: tuple[Step, ...]
    tensors: Mapping[str, TensorExtent]
    constants: bytes
    arena_bytes: int
    input_bytes: int
    output_bytes: int
    facts: tuple[Mapping[str, int], ...]  # one a layer, see LayerRecord.facts


# ----- emit → simulate, cosim, compare
@dataclass(frozen=True, slots=True)
class Patches:
    """The host stores, in place of an image, the window of every output pixel as channels.

    Channel (row · kernel_w + column) · c + channel of output pixel (i, j) is the input element
    under that tap; padding is `fill`, the zero point. `image` is the shape of what is packed.
    """

    image: Shape4
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]  # top, left, bottom, right
    dilation: tuple[int, int]
    fill: int


@dataclass(frozen=True, slots=True)
class TensorExtent:
    """Where a tensor lies in DRAM: layout n, h, w, c/LANES, LANES, one byte an element."""

    name: str
    base: int  # base register number
    offset_bytes: int
    shape: Shape4  # as it lies in memory, without pad lanes
    zero_point: int
    patches: Patches | None = None  # how the host makes it from an image, if it does

    @property
    def logical(self) -> Shape4:
        """Shape of the tensor as the network knows it."""
        return self.shape if self.patches is None else self.patches.image

    def blocks(self, lanes: int) -> int:
        """Channel blocks of LANES lanes."""
        return -(-self.shape[3] // lanes)

    def size_bytes(self, lanes: int) -> int:
        """Bytes that the tensor occupies, pad lanes included."""
        n, h, w, _ = self.shape
        return n * h * w * self.blocks(lanes) * lanes


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """A layer in a program: which instructions it is, and which tensors it reads and writes."""

    name: str
    op: str
    members: tuple[str, ...]
    instructions: tuple[int, ...]  # indices into the program, ascending
    inputs: tuple[str, ...]  # names in Program.tensors
    output: str
    elements: int
    macs: int
    tiles: int
    # What the tiling of this layer exercises: splits of rows, input and output channels, padding.
    facts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """Relocatable instructions for one configuration, with all that a launch needs.

    `words` is (instructions, INSTRUCTION_WORDS) uint32, little-endian in memory, ending in END.
    """

    symbol: str
    config: Config
    words: NDArray[np.uint32]
    opcode_mask: int  # bit i set: opcode i occurs
    contract_hash: int  # 64 bits over the instruction rows and configuration fields used
    constants: bytes  # goes to the weights base register: weight tiles and parameter rows
    arena_bytes: int
    input_bytes: int
    output_bytes: int
    tensors: Mapping[str, TensorExtent]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    layers: tuple[LayerRecord, ...]
    tile_of: tuple[int, ...]  # per instruction: tile number within its layer, -1 for END
    partial: bool = False  # one layer cut out of a program: tokens may be left at its end

    @property
    def config_name(self) -> str:
        """Name of the configuration that the program was compiled for."""
        return self.config.name


# ----- simulate, cosim → compare
@dataclass(frozen=True, slots=True)
class Record:
    """One retired instruction of one engine. Cycles count from the start command."""

    engine: int
    index: int  # instruction index in the program
    start_cycle: int
    end_cycle: int
    digest: int  # 64 bits, see `accelsim.spec.digest`


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a backend did with a program."""

    backend: str  # "sim" or "rtl"
    cycles: int
    error_code: int  # 0: none; see `accelsim.spec.registers`
    error_index: int
    error_engine: int
    records: tuple[Record, ...]
    dram: Mapping[int, NDArray[np.uint8]]  # base register number → contents after the run
    semaphores: tuple[int, ...]
    counters: Mapping[str, int] = field(default_factory=dict)  # saturations, stalls, beats, …


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a program: memory contents by base register, presets and limits."""

    program: Program
    dram: Mapping[int, NDArray[np.uint8]]
    semaphores: tuple[int, ...] = ()
    cycle_limit: int = 1 << 31
    observe: bool = True  # records and digests


Backend = Callable[[Launch], RunResult]


# ----- compare → report
@dataclass(frozen=True, slots=True)
class Difference:
    """The first wrong element of a layer and who wrote it."""

    index: Shape4  # n, h, w, c
    expected: int
    actual: int
    tile: int
    instruction: int  # in the program that ran; -1 where no instruction wrote the element
    text: str  # the instruction, disassembled


@dataclass(frozen=True, slots=True)
class Comparison:
    """One tensor of one backend against one golden. `status` is one of STATUSES."""

    actual: str  # "sim" | "rtl"
    golden: str  # "integer" | "torch" | "tvm"
    mode: str  # "isolated" | "accumulated"
    elements: int
    mismatches: int
    max_abs_diff: int
    status: str
    gate: bool
    bound: int | None = None  # for "within"; every comparison of today is exact and has none
    cause: str | None = None
    first: Difference | None = None
    waived: str | None = None  # the reason in the waiver file; the gate stays what it is


# The words of report.json. "within" is a difference up to `bound`; no golden of today allows one.
STATUSES = ("equal", "within", "different", "missing")


@dataclass(frozen=True, slots=True)
class LayerReport:
    """All that is known of one layer after a run."""

    name: str
    op: str
    members: tuple[str, ...]
    placement: str  # "npu" | "host"
    elements: int
    macs: int
    tiles: int
    compare: tuple[Comparison, ...]
    cycles: Mapping[str, int]  # by backend, of the layer on its own
    waived: str | None = None  # the reason in the waiver file
    reason: str | None = None  # why it runs on the host
    facts: Mapping[str, int] = field(default_factory=dict)
