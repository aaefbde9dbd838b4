"""How long pieces of a depthwise convolution take, by the closed forms of their instructions.

What comes in: a shape, its views and a configuration. What goes out: the `pipeline.Work` of pieces.
It must not know how they are chosen.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from accelsim.schedule.conv_tiling import ConvShape
from accelsim.schedule.depthwise_pieces import Piece
from accelsim.schedule.pipeline import Work, instruction_beats, load_cycles, store_cycles
from accelsim.schedule.view import Box, View, copy_values
from accelsim.schedule.window import column_groups
from accelsim.spec.config import DEPTHWISE_TAPS, PAR_BEATS, Config
from accelsim.spec.durations import VECTOR_LATENCY, dwconv_cycles


@dataclass(slots=True)
class Meter:
    """Estimates for one layer, each once."""

    shape: ConvShape
    views: tuple[View, View]
    config: Config
    known: dict[Hashable, Work] = field(default_factory=dict)

    def works(self, pieces: Sequence[Piece]) -> list[Work]:
        """Of all pieces in order; those of a group load its constants once."""
        before = [None, *(piece.constants for piece in pieces)]
        return [
            self.work(piece, piece.constants != constants)
            for piece, constants in zip(pieces, before[:-1], strict=True)
        ]

    def work(self, piece: Piece, loads: bool) -> Work:
        """Of one piece, which its shape decides."""
        rows = piece.added[1] - piece.added[0]
        opens = piece.added[0] == piece.buffer.rows[0]
        count = piece.constants[1] - piece.constants[0] if loads else 0
        key = (piece.buffer.shape[1:], rows, opens, piece.out.shape, count)
        if key not in self.known:
            self.known[key] = self._measured(piece, opens, count)
        return self.known[key]

    def _measured(self, piece: Piece, opens: bool, count: int) -> Work:
        config, out = self.config, piece.out
        source, target = self.views
        taken = copy_values(source, replace(piece.buffer, rows=piece.added), 0)
        given = copy_values(target, out, 0, stores_rows(target, out, config))
        products = tuple(self._product(part) for part in piece.parts)
        constants = self._constants(out.shape[1], count) if count else ()
        instructions = 2 + len(constants) + 2 * len(products)
        in_beats, out_beats = (v["count0"] * v["count1"] * v["count2"] for v in (taken, given))
        return Work(
            constants,
            load_cycles(taken, config) if in_beats else 0,
            opens,
            products,
            tuple(self._drain(part) for part in piece.parts),
            store_cycles(given, config),
            in_beats,
            out_beats + instruction_beats(instructions, config),
        )

    def _product(self, part: Box) -> int:
        """Cycles of `dwconv`."""
        height, width, blocks = part.shape
        kernel_h, kernel_w = self.shape.kernel
        wide, groups = column_groups(kernel_w, width, self.shape.cols)
        values = {
            "blocks": blocks,
            "kernel_h": kernel_h,
            "groups_w": groups,
            "wide": wide,
            "out_h": height,
            "out_w": width,
            "stride_w": self.shape.cols.stride,
        }
        return dwconv_cycles(values, self.config)

    def _drain(self, part: Box) -> int:
        """Cycles of `drain`."""
        height, width, blocks = part.shape
        return blocks * (height * width + self.shape.par_rows) + VECTOR_LATENCY

    def _constants(self, width: int, count: int) -> tuple[int, ...]:
        """Cycles of the loads of weights and parameters of some blocks."""
        kernel_h, kernel_w = self.shape.kernel
        _, groups = column_groups(kernel_w, width, self.shape.cols)
        weights = count * kernel_h * groups * DEPTHWISE_TAPS
        beats = (weights, count * self.shape.par_rows * PAR_BEATS)
        return tuple(load_cycles({"count0": b}, self.config) for b in beats)


def stores_rows(target: View, out: Box, config: Config) -> bool:
    """Whether a store is faster if each row is a run of its own: the last burst is shorter."""
    together, apart = (
        store_cycles(copy_values(target, out, 0, rows), config) for rows in (False, True)
    )
    return apart < together
