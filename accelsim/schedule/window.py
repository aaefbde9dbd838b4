"""Geometry of a sliding window: which input an output tile needs, and where its origin lies."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from accelsim.spec.config import DEPTHWISE_TAPS


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis of a window operator."""

    size: int  # input elements
    out: int  # output elements
    stride: int
    dilation: int
    pad: int  # before the first element

    def needs(self, outputs: tuple[int, int], kernel: tuple[int, int]) -> tuple[int, int]:
        """Input range [start, end) for an output range and a kernel range, clipped to the input.

        Where every tap falls into padding, one existing element stands for the range.
        """
        first = outputs[0] * self.stride + kernel[0] * self.dilation - self.pad
        last = (outputs[1] - 1) * self.stride + (kernel[1] - 1) * self.dilation - self.pad
        start, end = max(first, 0), min(last + 1, self.size)
        if start < end:
            return start, end
        nearest = min(max(first, 0), self.size - 1)
        return nearest, nearest + 1

    def origin(self, outputs: tuple[int, int], kernel: tuple[int, int], start: int) -> int:
        """Input element of the first output and first kernel tap, relative to `start`."""
        return outputs[0] * self.stride + kernel[0] * self.dilation - self.pad - start

    def longest(self, outputs: int, kernel: int) -> int:
        """Upper bound of the length of `needs` for tiles of `outputs` outputs."""
        return min(self.size, (outputs - 1) * self.stride + (kernel - 1) * self.dilation + 1)


def column_groups(kernel_w: int, outputs: int, axis: Axis) -> tuple[int, int]:
    """(wide, groups) of a depthwise instruction of so many output columns.

    Wide is 1, three taps a group, where that streams fewer columns than one tap a group.
    """
    groups = -(-kernel_w // DEPTHWISE_TAPS)
    columns = groups * ((outputs - 1) * axis.stride + DEPTHWISE_TAPS)
    if axis.dilation == 1 and columns < kernel_w * outputs:
        return 1, groups
    return 0, kernel_w


def tile_sizes(total: int) -> list[int]:
    """Tile lengths that give different numbers of tiles, longest first: ceil(total / parts)."""
    root = isqrt(total) + 1
    long = {-(-total // parts) for parts in range(1, min(root, total) + 1)}
    short = {s for s in range(1, min(root, total) + 1) if -(-total // -(-total // s)) == s}
    return sorted(long | short, reverse=True)
