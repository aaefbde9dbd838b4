"""Padding of windows, as the words SAME and VALID mean it.

What comes in: sizes of an axis. What goes out: how far windows reach over its ends. It must not
know operators.
"""

from __future__ import annotations

from collections.abc import Sequence

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.graph import Graph

SAME, VALID = 0, 1
Pair = tuple[int, int]


def pair(graph: Graph, operator: TfliteOperator, name: str, least: int = 1) -> Pair:
    """Two options, of height and width. Raises ModelError below `least` or beyond 2^16."""
    values = tuple(int(str(operator.options[f"{name}_{axis}"])) for axis in "hw")
    if not all(least <= one < 1 << 16 for one in values):
        raise graph.wrong(f"has {name} {values}; {least} to 65535 are possible")
    return values[0], values[1]


def padding(
    graph: Graph,
    operator: TfliteOperator,
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Pair,
    dilation: Pair = (1, 1),
) -> tuple[int, int, int, int]:
    """(top, left, bottom, right); the odd one of SAME's comes last. Raises ModelError."""
    kind = operator.options["padding"]
    if kind not in (SAME, VALID):
        raise graph.wrong(f"has padding of the unknown kind {kind}")
    before, after = [], []
    for extent, taps, step, apart in zip(size, kernel, stride, dilation, strict=True):
        reach = (taps - 1) * apart + 1
        if kind == VALID and reach > extent:
            raise graph.wrong(f"has a window of {reach} elements on an axis of {extent}")
        total = 0 if kind == VALID else max(0, (-(-extent // step) - 1) * step + reach - extent)
        before.append(total // 2)
        after.append(total - total // 2)
    return before[0], before[1], after[0], after[1]
