"""Horizontal bar charts as SVG text.

What comes in: labelled numbers. What goes out: SVG that takes its colours from the page's CSS
variables and its fonts from the page. It must not know what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH = 560
LABEL = 132  # columns of pixels for the labels
VALUE = 74  # and for the values behind the bars
BAR = 9
GAP = 2
ROW_GAP = 9
TOP = 8
AXIS = 22
LABEL_CHARS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One label with a value and its text for each series; None where there is none."""

    label: str
    values: tuple[float | None, ...]
    texts: tuple[str, ...]


def bars(
    title: str, rows: Sequence[Row], classes: Sequence[str], maximum: float | None = None
) -> str:
    """A chart: one bar a series in each row. `classes` are CSS classes of the series.

    `maximum` fixes the end of the axis, which otherwise is a round number.
    """
    largest = max((v for row in rows for v in row.values if v is not None), default=0.0)
    ticks = axis_ticks(largest if maximum is None else maximum)
    end = maximum or ticks[-1]
    height = len(classes) * (BAR + GAP) - GAP + ROW_GAP
    bottom = TOP + len(rows) * height
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {bottom + AXIS}" role="img" '
        f'aria-label="{escape(title)}">'
    ]
    room = WIDTH - LABEL - VALUE
    for tick in ticks:
        x = LABEL + room * tick / end
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">'
            f"{escape(tick_text(tick))}</text>"
        )
    for number, row in enumerate(rows):
        parts += _row(row, classes, TOP + number * height + ROW_GAP / 2, height, room, end)
    return "".join([*parts, "</svg>"])


def _row(
    row: Row, classes: Sequence[str], top: float, height: float, room: float, end: float
) -> list[str]:
    middle = top + (height - ROW_GAP) / 2
    short = row.label if len(row.label) <= LABEL_CHARS else f"…{row.label[1 - LABEL_CHARS :]}"
    parts = [
        f'<text class="label" x="{LABEL - 8}" y="{middle + 4:.1f}" text-anchor="end">'
        f"{escape(short)}<title>{escape(row.label)}</title></text>"
    ]
    for number, name in enumerate(classes):
        value, text = row.values[number], row.texts[number]
        if value is None:
            continue
        y = top + number * (BAR + GAP)
        width = max(room * min(value, end) / end, 1.0)
        parts.append(
            f'<path class="{name}" d="{_bar(LABEL, y, width)}">'
            f"<title>{escape(f'{row.label}: {text}')}</title></path>"
        )
        parts.append(
            f'<text class="value" x="{LABEL + width + 6:.1f}" y="{y + BAR - 0.5:.1f}">'
            f"{escape(text)}</text>"
        )
    return parts


def _bar(x: float, y: float, width: float) -> str:
    """A bar that is square at the axis and round at its end."""
    r = min(3.0, width / 2)
    return (
        f"M{x:.1f} {y:.1f}h{width - r:.1f}a{r:.1f} {r:.1f} 0 0 1 {r:.1f} {r:.1f}"
        f"v{BAR - 2 * r:.1f}a{r:.1f} {r:.1f} 0 0 1 {-r:.1f} {r:.1f}h{r - width:.1f}z"
    )


def axis_ticks(largest: float) -> list[float]:
    """Four to six round numbers from 0 to at least `largest`."""
    if largest <= 0:
        return [0.0, 1.0]
    raw = largest / 4
    magnitude = 10.0 ** floor(log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw)
    return [step * i for i in range(ceil(largest / step - 1e-9) + 1)]


def tick_text(value: float) -> str:
    """A short number: 12k instead of 12,000."""
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    if value >= 1e3:
        return f"{value / 1e3:g}k"
    return f"{value:g}"
