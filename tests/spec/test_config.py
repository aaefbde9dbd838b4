"""Configurations: named ones, those from TOML files, and what hardware cannot be built with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accelsim.errors import InputError
from accelsim.spec.config import CONFIGS, load_config

EDGE8 = CONFIGS["edge8"]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=lambda c: c.name)
def test_a_name_gives_its_configuration(config: Any) -> None:
    assert load_config(config.name) is config


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("lanes", 12, "lanes is 12, use 8, 16 or 32"),
        ("act_banks", 3, "act_banks is 3, use a power of two"),
        ("act_banks", 1, "act_banks is 1, use a power of two"),
        ("act_bank_rows", 100, "act_bank_rows is 100"),
        ("act_bank_rows", 1, "act_bank_rows is 1, use 2 or more"),
        ("act_bank_rows", 1 << 15, "act_rows is 131072, the limit is 65536"),
        ("par_rows", 1, "par_rows is 1, use 2 or more"),
        ("par_rows", 1 << 15, "par_beats is 131072, the limit is 65536"),
        ("acc_rows", 7, "acc_rows must be at least lanes"),
        ("wgt_rows", 15, "wgt_rows at least two weight tiles"),
        ("queue_depth", 0, "queue_depth is 0, use a positive integer"),
        ("queue_depth", 65, "queue_depth is 65, the limit is 64"),
        ("fetch_depth", True, "fetch_depth is True, use a positive integer"),
        ("read_outstanding", 2.5, "read_outstanding is 2.5, use a positive integer"),
        ("name", "../up", "the name is not a word"),
        ("name", "", "the name is not a word"),
        ("name", 7, "the name is not a word"),
    ],
)
def test_what_cannot_be_built_is_refused_by_field(field: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(EDGE8, **{field: value})


def test_a_file_changes_fields_of_its_base_and_is_named_after_itself(tmp_path: Path) -> None:
    file = tmp_path / "large.toml"
    file.write_text('base = "edge8"\nact_bank_rows = 256\n')
    assert load_config(str(file)) == replace(EDGE8, name="large", act_bank_rows=256)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lanes = ", "is not valid TOML"),
        ("lanes = 8", "field 'acc_rows' is missing"),
        ('base = "huge"', "base 'huge' is not one of"),
        ('base = "edge8"\nrows = 3', "unknown field 'rows'"),
        ('base = "edge8"\nname = "a/b"', "the name is not a word"),
        ('base = "edge8"\nname = "edge8"\nacc_rows = 32', "belongs to a built-in configuration"),
        ('base = "edge8"\nlanes = "8"', "lanes is '8'"),
        ('base = ["edge8"]', r"base \['edge8'\] is not one of"),
    ],
)
def test_a_wrong_file_is_refused_with_its_mistake(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        load_config(str(file))


@pytest.mark.parametrize("name", ["edge9", "none.toml", "."])
def test_an_unknown_name_or_absent_file_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown configuration|cannot read configuration"):
        load_config(name)
