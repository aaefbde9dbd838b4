"""Weight tiles taken from an activation in DRAM: the second operand of a product.

What comes in: the pixels of a view as rows of a matrix. What goes out: loads to weight memory, and
zeros where a tile reaches beyond the matrix. It must not know which operator multiplies.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelsim.schedule.build import Unit
from accelsim.schedule.limits import MAX_COUNT, MAX_DRAM_STRIDE
from accelsim.schedule.matrix import MatrixJob, Pass
from accelsim.schedule.step import make_step
from accelsim.schedule.view import Box, Span, View, spans
from accelsim.spec.isa import WEIGHTS_BASE

Loop = tuple[int, int, int]  # count, DRAM stride, stride in weight memory


@dataclass(frozen=True, slots=True)
class ActivationWeights:
    """A matrix of view.shape[2] rows by view.channels columns.

    Rows are input channels of the product and columns output channels; with `transposed` rows are
    output channels and columns input channels.
    """

    view: View
    transposed: bool = False

    def load(self, job: MatrixJob, unit: Unit, tile: int, p: Pass, out: Box) -> dict[str, int]:
        """Loads of the tiles of a pass, in the order in which `conv` reads them."""
        key = (job.index, self.view, self.transposed, p.in_blocks, out.blocks)
        base, missing = job.builder.weights.take(key)
        if missing:
            lanes = job.builder.config.lanes
            if self.transposed:
                self._by_output(job, unit, tile, base, p.in_blocks, out.blocks, lanes)
            else:
                self._by_input(job, unit, tile, base, p.in_blocks, out.blocks, lanes)
        return {"wgt_base": base, "transposed": int(self.transposed)}

    def _by_input(
        self, job: MatrixJob, unit: Unit, tile: int, base: int, ins: Span, outs: Span, lanes: int
    ) -> None:
        """Row k of every output block is one run; the rows of a block lie together on chip."""
        height = (ins[1] - ins[0]) * lanes
        rows = (ins[0] * lanes, min(ins[1] * lanes, self.view.shape[2]))
        count, stride = outs[1] - outs[0], self.view.strides[2]
        for first, last in spans(rows[1] - rows[0], MAX_COUNT):
            beat = self.view.first + (rows[0] + first) * stride + outs[0]
            loops = (count, 1, height), (last - first, stride, 1)
            _load(job, unit, tile, (self.view.base, beat, base + first), loops)
        missing = height - (rows[1] - rows[0])
        if missing:
            _zeros(job, unit, tile, base + height - missing, (missing, 1), (count, height))

    def _by_output(
        self, job: MatrixJob, unit: Unit, tile: int, base: int, ins: Span, outs: Span, lanes: int
    ) -> None:
        """Row o of every input block is one run; a tile's rows are the outputs of one block."""
        blocks, stride, size = ins[1] - ins[0], self.view.strides[2], self.view.shape[2]
        step = blocks * lanes  # weight rows of one output block
        whole = min(outs[1], size // lanes) - outs[0]
        most = 1 if lanes * stride > MAX_DRAM_STRIDE else MAX_COUNT
        for first, last in [*spans(whole, most), (whole, outs[1] - outs[0])]:
            rows = min(size - (outs[0] + first) * lanes, lanes)
            if first == last:
                continue
            beat = self.view.first + (outs[0] + first) * lanes * stride + ins[0]
            at = (self.view.base, beat, base + first * step)
            count = last - first
            loops = (blocks, 1, lanes), (rows, stride, 1), (count, lanes * stride, step)
            _load(job, unit, tile, at, loops)
            if rows < lanes:
                loops_of_zeros = (lanes - rows, 1), (blocks, lanes)
                _zeros(job, unit, tile, at[2] + rows, *loops_of_zeros)


def _load(
    job: MatrixJob, unit: Unit, tile: int, at: tuple[int, int, int], loops: tuple[Loop, ...]
) -> None:
    """A load to weight memory; `at` is base register, first beat, first weight row."""
    base_reg, beat, row = at
    values = {"memory": 1, "base_reg": base_reg, "dram_offset": beat, "local_base": row}
    for i, (count, dram, local) in enumerate(loops):
        values |= {f"count{i}": count, f"local_stride{i}": local if count > 1 else 0}
        if i:
            values[f"dram_stride{i}"] = dram if count > 1 else 0
    # Activations, so never before the work that stores them.
    unit.inputs.append(make_step(job.builder.config, "load", values, job.index, tile))


def _zeros(
    job: MatrixJob, unit: Unit, tile: int, row: int, inner: tuple[int, int], outer: tuple[int, int]
) -> None:
    """Zeros to weight rows: what a tile reads there must be defined. (count, row stride) loops."""
    lanes = job.builder.config.lanes
    beat = job.builder.constants.add(bytes(lanes)) // lanes
    loops = (1, 1, 1), (inner[0], 0, inner[1]), (outer[0], 0, outer[1])
    _load(job, unit, tile, (WEIGHTS_BASE, beat, row), loops)
