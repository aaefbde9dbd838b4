"""The instruction table, its encoding, text form and checks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from accelsim.errors import ProgramError
from accelsim.spec.assembler import assemble, disassemble
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.encoding import (
    check,
    contract_hash,
    decode,
    encode,
    extent_end,
    extent_limit,
    positions,
    row_hash,
)
from accelsim.spec.isa import BY_NAME, INSTRUCTION_BITS, INSTRUCTIONS, Instruction
from accelsim.spec.registers import REGISTERS, ErrorCode

EDGE8 = CONFIGS["edge8"]


def random_values(row: Instruction, config: Config, rng: np.random.Generator) -> dict[str, int]:
    values = {}
    for field in row.fields:
        low, high = field.bounds(config)
        values[field.name] = int(rng.integers(low, high + 1))
    return values | {"opcode": row.opcode}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=str)
@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda r: r.name)
def test_random_fields_survive_encoding_and_text(row: Instruction, config: Config) -> None:
    rng = np.random.default_rng(row.opcode)
    for _ in range(50):
        values = random_values(row, config, rng)
        words = encode(row.name, values, config)
        assert decode(words) == (row, values)
        assert (assemble(disassemble(words), config) == words).all()


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda r: r.name)
def test_fields_do_not_overlap_and_fit(row: Instruction) -> None:
    used: set[int] = set()
    for field in row.fields:
        at = positions(row.name)[field.name]
        bits = set(range(at, at + field.width))
        assert not bits & used
        used |= bits
    assert max(used) < INSTRUCTION_BITS


def test_opcodes_are_unique_and_zero_is_none_of_them() -> None:
    opcodes = [row.opcode for row in INSTRUCTIONS]
    assert len(set(opcodes)) == len(opcodes)
    assert 0 not in opcodes
    assert max(opcodes) < 32


def test_encode_names_field_value_and_limits() -> None:
    with pytest.raises(ProgramError, match=r"conv: in_tail is 9, legal in edge8 are 1 to 8"):
        encode("conv", {"in_tail": 9}, EDGE8)
    with pytest.raises(ProgramError, match="no field 'colour'"):
        encode("conv", {"colour": 1}, EDGE8)
    with pytest.raises(ProgramError, match="unknown instruction 'fly'"):
        encode("fly", {}, EDGE8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("conv in_h", "line 1: 'in_h' is not field=value"),
        ("\nconv in_h=2 in_h=3", "line 2: field in_h stands twice"),
        ("conv in_h=two", "in_h=two is not an integer"),
        ("conv take=bus", "unknown engine 'bus'"),
        ("conv opcode=3", "leave it out"),
        ("# nothing", "no instructions"),
    ],
)
def test_assembler_names_line_and_word(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        assemble(text, EDGE8)


def test_disassembler_refuses_what_text_cannot_express() -> None:
    words = encode("end", {}, EDGE8)
    words[15] = 1
    with pytest.raises(ProgramError, match="bits set above its last field"):
        disassemble(words)
    with pytest.raises(ProgramError, match="opcode 0 is not an instruction"):
        disassemble(np.zeros(16, np.uint32))


def test_check_finds_each_kind_of_violation() -> None:
    conv = encode("conv", {}, EDGE8)
    assert check(conv, EDGE8) is None
    assert _code(np.zeros(16, np.uint32)) == ErrorCode.OPCODE
    unlisted = check(conv, EDGE8, opcode_mask=1 << 1)
    assert unlisted is not None and unlisted.code == ErrorCode.OPCODE
    reserved = conv.copy()
    reserved[15] = 1
    assert _code(reserved) == ErrorCode.FIELD
    assert _code(encode("conv", {"give": 2}, EDGE8)) == ErrorCode.FIELD
    assert _code(encode("conv", {"in_base": EDGE8.act_rows}, EDGE8)) == ErrorCode.EXTENT
    load = encode("load", {"count0": 100, "dram_offset": 10}, EDGE8)
    assert check(load, EDGE8, region_bytes=[880] * 8) is None
    short = check(load, EDGE8, region_bytes=[879] * 8)
    assert short is not None and short.code == ErrorCode.DRAM_EXTENT


def _code(words: np.ndarray) -> ErrorCode | None:
    violation = check(words, EDGE8)
    return violation.code if violation else None


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda r: r.name)
def test_every_on_chip_extent_is_legal_at_its_end_and_not_one_row_further(row: Instruction) -> None:
    for extent in row.extents:
        if extent.memory == "dram":
            continue
        values = {f.name: f.default for f in row.fields} | {"opcode": row.opcode}
        limit = extent_limit(extent, values, EDGE8)
        assert limit is not None
        values[extent.base] += limit - extent_end(extent, values, EDGE8)
        assert check(encode(row.name, values, EDGE8), EDGE8) is None
        values[extent.base] += 1
        assert _code(encode(row.name, values, EDGE8)) == ErrorCode.EXTENT


def test_contract_hash_ignores_documentation_and_unused_opcodes() -> None:
    row = BY_NAME["conv"]
    changed = dataclasses.replace(row, doc="another text", duration_doc="slower", duration=None)
    assert row_hash(changed, EDGE8) == row_hash(row, EDGE8)
    wider = dataclasses.replace(row, fields=(*row.fields[:-1],))
    assert row_hash(wider, EDGE8) != row_hash(row, EDGE8)
    deeper = dataclasses.replace(EDGE8, queue_depth=9)
    assert contract_hash([1, 4], deeper) == contract_hash([1, 4], EDGE8)
    assert contract_hash([1, 4], CONFIGS["base16"]) != contract_hash([1, 4], EDGE8)
    assert contract_hash([1, 4], EDGE8) != contract_hash([1, 4, 5], EDGE8)


def test_registers_do_not_overlap() -> None:
    places = [r.offset + i * r.stride for r in REGISTERS for i in range(r.count)]
    assert len(set(places)) == len(places)
    assert all(p % 4 == 0 and p < 1 << 12 for p in places)
