"""A waiver names one layer, one golden, a reason and a day; unused and expired ones are refused."""

from __future__ import annotations

from datetime import date

import pytest

from accelsim.artifacts import Comparison, LayerReport
from accelsim.compare import apply_waivers, failing, not_needed, read_waivers
from accelsim.errors import InputError

TODAY = date(2026, 6, 1)
GOOD = """
[[waive]]
layer = "block1/add"
golden = "framework"
reason = "known rounding"
expires = 2026-06-01
"""

WRONG = [
    (GOOD.replace("block1/add", "block*"), "has a wildcard; name one layer"),
    (GOOD.replace("framework", "onnx"), "golden 'onnx' is not one of"),
    (GOOD.replace("known rounding", " "), "reason must be a text that is not empty"),
    (GOOD.replace("2026-06-01", "2026-05-31"), "expired on 2026-05-31"),
    (GOOD.replace("2026-06-01", '"soon"'), "soon is not a date"),
    (GOOD + "until = 1\n", "expected exactly the keys"),
    (GOOD.replace('golden = "framework"\n', ""), "expected exactly the keys"),
    ("layer = 'a'\n", "expected one or more [[waive]] tables"),
    ("", "expected one or more [[waive]] tables"),
    ("[[waive]\n", "not valid TOML"),
]
# One value of every kind that TOML has.
KINDS = """"text"
1
20300101
1.5
inf
nan
true
[]
[2030-01-01]
{}
{a = 1}
2030-01-01
10:00:00
2030-01-01T00:00:00
2030-01-01T00:00:00Z""".splitlines()
LEGAL = {"layer": {'"text"'}, "golden": set(), "reason": {'"text"'}, "expires": {"2030-01-01"}}


def comparison(golden: str, status: str = "different", gate: bool = True) -> Comparison:
    return Comparison("sim", golden, "isolated", 9, 3, 1, status, gate)


def layer(name: str, *compare: Comparison, placement: str = "npu") -> LayerReport:
    return LayerReport(name, "add", (name,), placement, 9, 0, 1, compare, {})


def waivers(tmp_path, text=GOOD):
    path = tmp_path / "waivers.toml"
    path.write_text(text)
    return read_waivers(path, TODAY)


@pytest.mark.parametrize(("text", "named"), WRONG)
def test_a_wrong_waiver_is_refused_with_what_is_wrong(tmp_path, text, named):
    with pytest.raises(InputError) as caught:
        waivers(tmp_path, text)
    assert named in str(caught.value)


@pytest.mark.parametrize("key", sorted(LEGAL))
@pytest.mark.parametrize("value", KINDS)
def test_every_other_kind_of_value_is_refused_naming_the_key(tmp_path, key, value):
    text = "\n".join(
        f"{key} = {value}" if line.startswith(f"{key} =") else line for line in GOOD.splitlines()
    )
    if value in LEGAL[key]:
        (waiver,) = waivers(tmp_path, text)
        assert str(getattr(waiver, key)) == value.strip('"')
        return
    with pytest.raises(InputError, match=rf"waiver 1: {key} "):
        waivers(tmp_path, text)


@pytest.mark.parametrize("text", ["waive = 1", "waive = [1]", "waive = {}", "[waive]\nlayer = 'a'"])
def test_a_table_of_another_kind_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="expected"):
        waivers(tmp_path, text)


def test_a_day_may_be_written_as_text_in_one_form_only(tmp_path):
    (waiver,) = waivers(tmp_path, GOOD.replace("2026-06-01", '"2030-01-31"'))
    assert waiver.expires == date(2030, 1, 31)
    for text in ('"20300131"', '"2030-W05-4"', '"2030-01-31T00:00"', '"2030-02-30"'):
        with pytest.raises(InputError, match=r"expires .* is not a date YYYY-MM-DD"):
            waivers(tmp_path, GOOD.replace("2026-06-01", text))


def test_a_waiver_covers_its_golden_alone_and_the_gate_stays(tmp_path):
    given = layer("block1/add", comparison("framework"), comparison("integer"))
    (found,), used = apply_waivers([given], waivers(tmp_path))
    torch, integer = found.compare
    assert torch.gate and torch.waived == "known rounding (until 2026-06-01)"
    assert not failing(torch) and failing(integer) and integer.waived is None
    assert found.waived == torch.waived and len(used) == 1


@pytest.mark.parametrize(
    "given",
    [
        layer("block2/add", comparison("framework")),
        layer("block1/add", comparison("framework", "equal"), comparison("integer")),
        layer("block1/add", comparison("framework", gate=False)),
        layer("block1/add", placement="host"),
    ],
)
def test_a_waiver_that_nothing_needs_is_reported(tmp_path, given):
    ((waiver,), (found,)) = waivers(tmp_path), apply_waivers([given], waivers(tmp_path))[0]
    assert found == given and apply_waivers([given], (waiver,))[1] == ()
    assert "layer 'block1/add' for golden 'framework' was not needed" in not_needed(waiver)


def test_a_missing_golden_and_a_host_layer_can_be_waived(tmp_path):
    text = GOOD + GOOD.replace("framework", "host").replace("block1/add", "head")
    given = [
        layer("block1/add", comparison("framework", "missing")),
        layer("head", placement="host"),
    ]
    found, used = apply_waivers(given, waivers(tmp_path, text))
    assert all(one.waived for one in found) and len(used) == 2
    assert not failing(found[0].compare[0])
