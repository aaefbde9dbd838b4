"""What a report says: one verdict, true counts, origins before what follows from them."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from accelsim.report import print_report, summary, verdict
from tests.report.documents import TEXT, failed, passed, stopped


def printed(report, width=150, color=False):
    stream = io.StringIO()
    kind = "truecolor" if color else None
    print_report(report, Console(file=stream, width=width, force_terminal=color, color_system=kind))
    return stream.getvalue()


def test_the_verdict_is_the_last_line_with_all_counts():
    assert printed(passed()).splitlines()[-1] == (
        "PASSED: net.py:make on edge8: 2 layers, 9,216 elements compared, 0 mismatches, "
        "0 waivers, 0 host layers"
    )
    assert verdict(failed()) == (
        "FAILED: net.py:make on edge8: 4 layers, 2 of them failing, "
        "7,680 elements compared, 634 mismatches, 1 waiver, 0 host layers, 1 problem"
    )


def test_a_waived_difference_is_neither_a_mismatch_nor_hidden():
    report = failed()
    waived = report["layers"][3]["compare"][0]
    assert waived["gate"] is True and waived["waived"] == "known (until 2099-01-01)"
    assert summary.cell(report["layers"][3], "rtl", "framework").state == "waived"
    assert summary.failures(report)[-1].waived == "known (until 2099-01-01)"
    assert report["waivers"] == [
        {"layer": "d", "golden": "framework", "reason": "known", "expires": "2099-01-01"}
    ]


def test_the_origin_is_shown_first_with_element_tile_and_instruction():
    first = summary.failures(failed())[0]
    assert first.layer == "b/<add>" and first.instruction == TEXT
    assert "34 of 768 elements differ from integer, isolated, by at most 11" in first.title
    assert "[0, 1, 2, 3]: expected 5, got -6; tile 1, instruction 12" in first.details[0]
    assert "rtl is wrong and sim is right" in first.details[1]
    assert first.details[2] == "also: integer accumulated 300"
    text = printed(failed())
    assert "wrong only in the whole network: c" in text and "waiver of layer 'z'" in text


def test_the_framework_is_named_by_its_golden_and_the_legend_says_what_that_is():
    text = printed(passed())
    assert "sim litert" in text and "litert is LiteRT's kernels and gates the first" in text
    failure = summary.failures(failed())[-1]
    assert "differ from litert, isolated" in failure.title


def test_a_row_shows_isolated_and_accumulated_mismatches():
    row = next(line for line in printed(passed()).splitlines() if line.startswith("a "))
    wanted = "a conv2d npu 2 768 0+0 0+0 5 0+0 0+0 5 1,152 1,153 28.1 %"
    assert " ".join(row.split()) == wanted


@pytest.mark.parametrize("width", [60, 80, 110, 120, 200])
def test_every_width_shows_every_layer_and_the_verdict(width):
    for report in (passed(), failed()):
        text = printed(report, width)
        assert all(any(line.startswith(x) for line in text.splitlines()) for x in ("a ", "b/<add>"))
        table = text.split("Mismatches are")[0]
        assert max(len(line.rstrip()) for line in table.splitlines()) <= width
        assert report["status"].upper() in text


def test_colour_is_for_meaning_and_text_is_plain_without_it():
    assert "\x1b" not in printed(failed())
    colored = printed(failed(), color=True)
    assert re.search(r"\x1b\[1;31m *34\+300", colored)
    assert re.search(r"\x1b\[1;32mPASSED", printed(passed(), color=True))


def test_a_run_that_found_nothing_still_has_a_verdict():
    assert printed(stopped()).splitlines()[-1].endswith("; model file m.pt2 does not exist")
