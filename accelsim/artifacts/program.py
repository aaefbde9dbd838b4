"""Steps and programs: schedule → emit → simulate, cosim, compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts.arrays import Shape4
from accelsim.artifacts.region import Region
from accelsim.spec.config import Config


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
    layout: str = "nchw"  # axes of the graph's tensor, see `Tensor`

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


def bare_program(
    symbol: str,
    config: Config,
    words: NDArray[np.uint32],
    opcode_mask: int,
    contract_hash: int,
) -> Program:
    """A program that is instructions alone: memory is given and read as bytes, not tensors."""
    return Program(
        symbol,
        config,
        words,
        opcode_mask,
        contract_hash,
        constants=b"",
        arena_bytes=0,
        input_bytes=0,
        output_bytes=0,
        tensors={},
        inputs=(),
        outputs=(),
        layers=(),
        tile_of=(-1,) * len(words),
    )
