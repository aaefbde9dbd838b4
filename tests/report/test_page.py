"""The page is one file, says what the terminal says, and a browser shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

from accelsim.report.html import page, write_html
from accelsim.report.plots import Row, axis_ticks, bars
from tests.report.documents import TEXT, failed, passed, stopped

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--window-size=1280,1600"),
)


class Elements(HTMLParser):
    """Text of a page by enclosing section, hidden parts left out."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.rows: list[list[str]] = []
        self.section = ""
        self.quiet = 0

    def handle_starttag(self, tag, attributes):
        """Follow sections and rows."""
        values = dict(attributes)
        self.quiet += tag in ("style", "title", "script")
        if tag in ("section", "header", "div") and "id" in values:
            self.section = values["id"]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        """Leave quiet elements."""
        self.quiet -= tag in ("style", "title", "script")

    def handle_data(self, data):
        """Collect visible text."""
        if self.quiet or not data.strip():
            return
        self.texts[self.section] = self.texts.get(self.section, "") + data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()


def parsed(text):
    elements = Elements()
    elements.feed(text)
    return elements


def chromium(tmp_path, *arguments):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    assert browser, "this test needs Chromium: install it (Debian: chromium)"
    command = [browser, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def pixels(path):
    """(height, width, channels) of an 8-bit PNG without interlace."""
    data = path.read_bytes()
    at, packed, shape = 8, b"", (0, 0, 0)
    while at < len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height = (int.from_bytes(body[i : i + 4], "big") for i in (0, 4))
            shape = (height, width, {2: 3, 6: 4}[body[9]])
        packed += body if kind == b"IDAT" else b""
        at += size + 12
    height = shape[0]
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, -1)
    return shape, lines  # filtered lines: enough to tell content from emptiness


@pytest.mark.parametrize(("make", "status"), [(passed, "PASSED"), (failed, "FAILED")])
def test_a_browser_shows_verdict_and_a_row_a_layer(tmp_path, make, status):
    report = make()
    write_html(tmp_path / "report.html", report)
    url = (tmp_path / "report.html").as_uri()
    shot = tmp_path / "shot.png"
    shown = parsed(chromium(tmp_path, "--dump-dom", url))
    assert status in shown.texts["verdict"] and "net.py:make on edge8" in shown.texts["verdict"]
    names = [row[0] for row in shown.rows]
    assert all(layer["name"] in names for layer in report["layers"])
    row = shown.rows[names.index("a")]
    assert row[:5] == ["a", "conv2d", "npu", "2", "768"] and row[-3:] == [
        "1,152",
        "1,153",
        "28.1 %",
    ]
    assert "accelsim replay build/runs/x" in shown.texts["replay"]
    assert ("failures" in shown.texts) == (status == "FAILED")
    chromium(tmp_path, f"--screenshot={shot}", url)
    (height, width, _), lines = pixels(shot)
    assert (height, width) == (1600, 1280)
    busy = np.count_nonzero(lines[:, 1:].any(axis=1))  # lines that are not one flat colour
    assert busy > 500


def test_a_failure_can_be_read_without_opening_anything():
    text = page(failed())
    opened = re.search(r'<details class="failure" open>(.*?)</details>', text, re.S)[1]
    assert TEXT in opened and "expected 5, got -6; tile 1, instruction 12" in opened
    assert "b/&lt;add&gt;" in opened  # names are escaped
    assert "Waived: known (until 2099-01-01)" in text


@pytest.mark.parametrize("make", [passed, failed, stopped])
def test_a_page_needs_nothing_from_outside(make):
    text = page(make())
    assert not re.search(r"<(script|link|img|iframe)\b|@import|url\(|(src|href)=", text)
    assert not re.search(r"https?://", text)
    assert "prefers-color-scheme: dark" in text


def test_a_page_says_all_that_a_terminal_says():
    shown = parsed(page(passed())).texts
    assert "conv 12" in shown["exercised"] and "matrix 50 %" in shown["exercised"]
    assert "hardware: no board" in shown["not-run"]
    for value in ("aa11", "bb22", "cc33", "dd44", "2.13.0", "test image 3", "lanes 8"):
        assert value in shown["environment"]


def test_charts_have_a_bar_for_each_number_and_none_for_what_is_missing():
    rows = [Row("a<b", (3.0, None), ("3", "")), Row("c", (0.0, 7.5), ("0", "7.5"))]
    svg = bars("Bars", rows, ["sim", "rtl"])
    assert svg.count('<path class="sim"') == 2 and svg.count('<path class="rtl"') == 1
    assert "a&lt;b" in svg and "a<b" not in svg


@pytest.mark.parametrize(
    ("largest", "ticks"),
    [(0, [0, 1]), (10, [0, 2.5, 5, 7.5, 10]), (10266, [0, 5000, 10000, 15000]), (100, 5)],
)
def test_an_axis_has_round_numbers_up_to_the_largest(largest, ticks):
    found = axis_ticks(float(largest))
    assert found == ticks or len(found) == ticks
    assert found[-1] >= largest
