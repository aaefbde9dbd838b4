"""Building blocks of a schedule: buffers in two slots, constants, units of work.

Activation memory is split by banks: inputs live in the first half, outputs in the second, each in
two slots of a quarter. So matrix and load never share a port with vector and store within a layer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from accelsim.artifacts import I8, Step
from accelsim.errors import ModelError
from accelsim.schedule.step import make_step
from accelsim.schedule.view import View
from accelsim.spec.config import PAR_BEATS, TABLES, Config
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

    def take_both(self, key: Hashable) -> tuple[int, bool]:
        """Base of both slots together, and whether `key` must be loaded first."""
        missing = self.held != [key, key]
        self.held = [key, key]
        return self.bases[0], missing


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
    fills: bool = False  # it uses all of parameter memory, so no load of a neighbour may pass it


@dataclass(slots=True)
class Builder:
    """State that lasts over all layers of a region."""

    config: Config
    inputs: Slots = field(init=False)
    outputs: Slots = field(init=False)
    weights: Slots = field(init=False)
    params: Slots = field(init=False)
    acc: Slots = field(init=False)
    tables: Slots = field(init=False)
    constants: Constants = field(default_factory=Constants)
    units: list[Unit] = field(default_factory=list)
    layer: str = ""  # name of the layer that is being scheduled, for messages

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
        self.tables = Slots((0, 1), 1)  # bases are table numbers

    def arrange(self, input_banks: int, output_slots: int = 2) -> None:
        """Give inputs the first banks of activation memory, in two slots, and outputs the others.

        What the slots held is forgotten where the arrangement is another one.
        """
        rows = self.config.act_bank_rows
        first, size = input_banks * rows, input_banks * rows // 2
        rest = (self.config.act_rows - first) // output_slots
        if (size, rest) == (self.inputs.size, self.outputs.size):
            return
        self.inputs = Slots((0, size), size)
        self.outputs = Slots((first, first + rest * (output_slots - 1)), rest)

    def load_constant(self, chunk: bytes, memory: int, base: int, layer: int, tile: int) -> Step:
        """Load a constant chunk to weight (1), parameter (2) or table (3) memory.

        `base` counts rows of weight memory, beats of the others.
        """
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
        return make_step(self.config, "load", values, layer, tile)

    def load_params(self, key: Hashable, chunk: bytes, unit: Unit, tile: int) -> int:
        """Parameter row where `chunk` (whole rows) lies for this unit; loads it if need be.

        A unit may ask once. A chunk beyond a slot takes all of the memory. Raises ModelError for
        one beyond the memory.
        """
        rows = len(chunk) // (PAR_BEATS * self.config.lanes)
        if rows > self.config.par_rows:
            raise ModelError(
                f"layer {self.layer}: a tile needs {rows} parameter rows at once, configuration "
                f"{self.config.name} has {self.config.par_rows}; enlarge par_rows"
            )
        unit.fills = rows > self.params.size
        base, missing = self.params.take_both(key) if unit.fills else self.params.take(key)
        if missing:
            unit.weights.append(self.load_constant(chunk, 2, base * PAR_BEATS, unit.layer, tile))
        return base

    def load_table(self, key: Hashable, chunk: bytes, unit: Unit, tile: int) -> int:
        """Number of the table that holds `chunk` (256 words) for this unit, as `load_params`."""
        table, missing = self.tables.take(key)
        if missing:
            base = table * self.config.tab_beats // TABLES
            unit.weights.append(self.load_constant(chunk, 3, base, unit.layer, tile))
        return table

    def constant_view(self, values: I8) -> View:
        """An (n, h, w, c) tensor among the constants, laid out as activations are."""
        lanes = self.config.lanes
        n, h, w, c = values.shape
        blocks = -(-c // lanes)
        padded = np.zeros((n, h, w, blocks * lanes), np.int8)
        padded[..., :c] = values
        first = self.constants.add(padded.tobytes()) // lanes
        strides = (h * w * blocks, w * blocks, blocks)
        return View(WEIGHTS_BASE, first, (n, h, w), strides, c, blocks)
