"""Weight tiles known to the compiler, laid out in the order in which their instruction reads them.

What comes in: a weight tensor. What goes out: a load from the constants for each pass. It must not
know which operator multiplies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import I8
from accelsim.schedule.build import Unit
from accelsim.schedule.matrix import MatrixJob, Pass
from accelsim.schedule.view import Box
from accelsim.schedule.window import column_groups
from accelsim.spec.config import DEPTHWISE_TAPS


@dataclass(frozen=True, slots=True)
class ConstantWeights:
    """Weights of a convolution, or with `ConvShape.depthwise` of a depthwise one."""

    weight: I8  # (out_channels, kernel_h, kernel_w, in_channels), or (c, kernel_h, kernel_w, 1)

    def load(self, job: MatrixJob, unit: Unit, tile: int, p: Pass, out: Box) -> dict[str, int]:
        """One load from the constants."""
        fields: dict[str, int] = {}
        if job.shape.depthwise:
            chunk, fields = self._depthwise(job, p, out)
        else:
            chunk = self._tiles(job, p, out)
        key = (job.index, job.part, p, out.blocks, fields.get("wide"))
        base, missing = job.builder.weights.take(key)
        if missing:
            unit.weights.append(job.builder.load_constant(chunk, 1, base, job.index, tile))
        return {**fields, "wgt_base": base}

    def _tiles(self, job: MatrixJob, p: Pass, out: Box) -> bytes:
        """Rows are input lanes, bytes output lanes; missing channels are the zero point."""
        lanes = job.builder.config.lanes
        (h0, h1), (w0, w1) = p.kernel_rows, p.kernel_cols
        first, last = out.blocks[0] * lanes, out.blocks[1] * lanes
        i0, i1 = p.in_blocks[0] * lanes, p.in_blocks[1] * lanes
        part = self.weight[first:last, h0:h1, w0:w1, i0:i1]
        shape = (last - first, h1 - h0, w1 - w0, i1 - i0)
        rows = np.full(shape, job.weight_zero_point, np.int8)
        rows[: part.shape[0], :, :, : part.shape[3]] = part
        blocked = rows.reshape(-1, lanes, h1 - h0, w1 - w0, (i1 - i0) // lanes, lanes)
        # (out block, out lane, kh, kw, in block, in lane) → rows are input lanes
        return blocked.transpose(0, 2, 3, 4, 5, 1).tobytes()

    def _depthwise(self, job: MatrixJob, p: Pass, out: Box) -> tuple[bytes, dict[str, int]]:
        """Groups of three rows a tap or three taps, whichever streams fewer columns."""
        lanes, fill, axis = job.builder.config.lanes, job.weight_zero_point, job.shape.cols
        (h0, h1), (w0, w1) = p.kernel_rows, p.kernel_cols
        part = self.weight[out.blocks[0] * lanes : out.blocks[1] * lanes, h0:h1, w0:w1]
        channels, kernel_h, kernel_w = out.shape[2] * lanes, h1 - h0, w1 - w0
        wide, groups = column_groups(kernel_w, out.shape[1], axis)
        taps = DEPTHWISE_TAPS if wide else 1
        rows = np.full((channels, kernel_h, groups, DEPTHWISE_TAPS), fill, np.int8)
        padded = np.full((part.shape[0], kernel_h, groups * taps), fill, np.int8)
        padded[:, :, :kernel_w] = part[..., 0]
        rows[: part.shape[0], :, :, :taps] = padded.reshape(part.shape[0], kernel_h, groups, taps)
        blocked = rows.reshape(-1, lanes, kernel_h, groups, DEPTHWISE_TAPS)
        chunk = blocked.transpose(0, 2, 3, 4, 1).tobytes()
        return chunk, {"groups_w": groups, "wide": wide}
