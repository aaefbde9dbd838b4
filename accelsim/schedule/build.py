"""Building blocks of a schedule: buffers in two slots, DRAM copies, constants, units of work.

Activation memory is split by banks: inputs live in the first half, outputs in the second, each in
two slots of a quarter. So matrix and load never share a port with vector and store within a layer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from accelsim.artifacts import Access, Step, TensorExtent
from accelsim.spec.config import PAR_BEATS, Config
from accelsim.spec.isa import WEIGHTS_BASE

ALIGN_BYTES = 64


@dataclass(slots=True)
class Slots:
    """Two equal buffers in one memory, reused least recently used first, with their content known.

    Two suffice for double buffering: a unit of work uses one slot of each memory, and the loads of
    the next unit go to the other one.
    """

    bases: tuple[int, int]
    size: int
    held: list[Hashable] = field(default_factory=lambda: [None, None])
    last: int = 1

    def take(self, key: Hashable) -> tuple[int, bool]:
        """Base of the slot that holds `key`, and whether it must be loaded first."""
        if key is not None and key in self.held:
            self.last = self.held.index(key)
            return self.bases[self.last], False
        self.last = 1 - self.last
        self.held[self.last] = key
        return self.bases[self.last], True


@dataclass(slots=True)
class Constants:
    """The image behind the weights base register, grown chunk by chunk, each chunk once."""

    data: bytearray = field(default_factory=bytearray)
    offsets: dict[bytes, int] = field(default_factory=dict)  # SHA-256 of a chunk → its offset

    def add(self, chunk: bytes) -> int:
        """Offset in bytes of `chunk`, which is appended, aligned, where it is new."""
        key = hashlib.sha256(chunk).digest()
        if key not in self.offsets:
            self.data += bytes(-len(self.data) % ALIGN_BYTES)
            self.offsets[key] = len(self.data)
            self.data += chunk
        return self.offsets[key]


@dataclass(slots=True)
class Unit:
    """Loads that a piece of work needs, and the work: loads of the next unit are issued first."""

    layer: int
    weights: list[Step] = field(default_factory=list)  # constants: may move before earlier layers
    inputs: list[Step] = field(default_factory=list)  # activations: only within the layer
    compute: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Builder:
    """State that lasts over all layers of a region."""

    config: Config
    inputs: Slots = field(init=False)
    outputs: Slots = field(init=False)
    weights: Slots = field(init=False)
    params: Slots = field(init=False)
    acc: Slots = field(init=False)
    constants: Constants = field(default_factory=Constants)
    units: list[Unit] = field(default_factory=list)

    def __post_init__(self) -> None:
        c = self.config
        quarter = c.act_rows // 4
        self.inputs = Slots((0, quarter), quarter)
        self.outputs = Slots((2 * quarter, 3 * quarter), quarter)
        half = c.wgt_rows // 2
        self.weights = Slots((0, half), half)
        half_rows = c.par_rows // 2
        self.params = Slots((0, half_rows), half_rows)
        self.acc = Slots((0, 1), c.acc_rows)  # bases are bank numbers

    def ports(self, start: int, end: int, kind: str) -> tuple[Access, ...]:
        """The bank ports that activation rows [start, end) use."""
        rows = self.config.act_bank_rows
        return tuple(
            Access(f"act{bank}.{kind}", 0, 1, True)
            for bank in range(start // rows, (end - 1) // rows + 1)
        )

    def act(self, start: int, rows: int, write: bool) -> tuple[Access, ...]:
        """Access to activation rows together with the ports it needs."""
        ports = self.ports(start, start + rows, "write" if write else "read")
        return (Access("act", start, start + rows, write), *ports)

    def load_constant(self, chunk: bytes, memory: int, base: int, layer: int, tile: int) -> Step:
        """Load a constant chunk to weight (1) or parameter (2) memory; `base` in rows or beats."""
        lanes = self.config.lanes
        beats = -(-len(chunk) // lanes)
        offset = self.constants.add(chunk.ljust(beats * lanes, b"\0"))
        values = {
            "memory": memory,
            "base_reg": WEIGHTS_BASE,
            "dram_offset": offset // lanes,
            "count0": beats,
            "local_base": base,
            "local_stride0": 1,
        }
        name = ("act", "wgt", "par")[memory]
        accesses = (
            Access(name, base, base + beats, True),
            Access(f"dram{WEIGHTS_BASE}", offset // lanes, offset // lanes + beats, False),
        )
        return Step("load", values, layer, tile, accesses)

    def load_params(self, key: Hashable, chunk: bytes, unit: Unit, tile: int) -> int:
        """Parameter row where `chunk` (whole rows) lies for this unit; loads it if need be."""
        base, missing = self.params.take(key)
        if missing:
            unit.weights.append(self.load_constant(chunk, 2, base * PAR_BEATS, unit.layer, tile))
        return base


@dataclass(frozen=True, slots=True)
class Box:
    """A piece of a tensor: image, rows, columns, channel blocks, each [start, end)."""

    image: int
    rows: tuple[int, int]
    cols: tuple[int, int]
    blocks: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, blocks)."""
        return (
            self.rows[1] - self.rows[0],
            self.cols[1] - self.cols[0],
            self.blocks[1] - self.blocks[0],
        )

    @property
    def size(self) -> int:
        """Activation rows that the piece takes on chip."""
        h, w, b = self.shape
        return h * w * b


def copy_values(
    tensor: TensorExtent, box: Box, local_base: int, lanes: int
) -> tuple[Mapping[str, int], int, int]:
    """Fields of a load or store between DRAM and a dense (h, w, blocks) buffer on chip.

    Also returns the first and one past the last DRAM beat touched. The longest contiguous runs are
    formed: whole rows where all blocks are wanted, everything where whole rows are wanted.
    """
    _, height, width, _ = tensor.shape
    blocks = tensor.blocks(lanes)
    h, w, b = box.shape
    first = tensor.offset_bytes // lanes
    first += ((box.image * height + box.rows[0]) * width + box.cols[0]) * blocks + box.blocks[0]
    last = first + ((h - 1) * width + w - 1) * blocks + b
    if b == blocks and w == width and h * w * b < 1 << 16:
        runs = (h * w * b, 1, 1, 0, 0)
    elif b == blocks:
        runs = (w * b, h, 1, width * blocks, 0)
    else:
        runs = (b, w, h, blocks, width * blocks)
    count0, count1, count2, stride1, stride2 = runs
    values = {
        "base_reg": tensor.base,
        "dram_offset": first,
        "count0": count0,
        "count1": count1,
        "count2": count2,
        "dram_stride1": stride1 if count1 > 1 else 0,
        "dram_stride2": stride2 if count2 > 1 else 0,
        "local_base": local_base,
        "local_stride0": 1,
        "local_stride1": count0 if count1 > 1 else 0,
        "local_stride2": count0 * count1 if count2 > 1 else 0,
    }
    return values, first, last


def load_box(
    builder: Builder, tensor: TensorExtent, box: Box, base: int, layer: int, tile: int
) -> Step:
    """Load a piece of a tensor to activation memory as dense (h, w, blocks)."""
    values, first, last = copy_values(tensor, box, base, builder.config.lanes)
    accesses = (
        *builder.act(base, box.size, True),
        Access(f"dram{tensor.base}", first, last, False),
    )
    return Step("load", {"memory": 0, **values}, layer, tile, accesses)


def store_box(
    builder: Builder, tensor: TensorExtent, box: Box, base: int, layer: int, tile: int
) -> Step:
    """Store a dense (h, w, blocks) buffer to its place in a tensor."""
    values, first, last = copy_values(tensor, box, base, builder.config.lanes)
    accesses = (
        *builder.act(base, box.size, False),
        Access(f"dram{tensor.base}", first, last, True),
    )
    return Step("store", values, layer, tile, accesses)


def dense(prefix: str, shape: tuple[int, int, int]) -> dict[str, int]:
    """Row, column and block strides of a dense (h, w, blocks) buffer, named `prefix_…`."""
    _, w, b = shape
    return {
        f"{prefix}_row_stride": w * b,
        f"{prefix}_col_stride": b,
        f"{prefix}_block_stride": 1,
    }


def spans(total: int, step: int) -> list[tuple[int, int]]:
    """[0, total) cut into pieces of `step`, the last one shorter."""
    return [(i, min(i + step, total)) for i in range(0, total, step)]


def tail(channels: int, blocks: tuple[int, int], lanes: int) -> int:
    """Valid lanes in the last block of a block range."""
    return min(lanes, channels - (blocks[1] - 1) * lanes)
