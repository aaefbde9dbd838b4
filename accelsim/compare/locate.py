"""From a wrong element to the tile and the instruction that are to blame.

Two sources: the stores of a layer tell which tile wrote an element; the records of two backends
tell which instruction first wrote something else. The second is the more precise where it exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from accelsim.artifacts import Comparison, Program, Record, RunResult, Shape4
from accelsim.spec.assembler import disassemble_one
from accelsim.spec.encoding import decode


def locate(
    comparison: Comparison,
    program: Program,
    tensor: str,
    runs: Sequence[RunResult] = (),
) -> Comparison:
    """`comparison` with tile and instruction filled in.

    `runs` are the results of two backends on this same program, in the mode of the comparison, if
    two have run: the first instruction whose digests differ is named, else the store.
    """
    if comparison.first is None:
        return comparison
    store = writer_of(program, tensor, comparison.first.index)
    blamed = first_diverging_record(*(r.records for r in runs)) if len(runs) == 2 else None
    instruction = store if blamed is None else blamed
    if instruction < 0:
        return comparison
    found = replace(
        comparison.first,
        tile=program.tile_of[instruction],
        instruction=instruction,
        text=disassemble_one(program.words[instruction], instruction),
    )
    return replace(comparison, first=found)


def writer_of(program: Program, tensor: str, index: Shape4) -> int:
    """The store that writes element (n, h, w, c) of a tensor; -1 if none does."""
    extent, lanes = program.tensors[tensor], program.config.lanes
    n, h, w, c = index
    _, height, width, _ = extent.shape
    beat = ((n * height + h) * width + w) * extent.blocks(lanes) + c // lanes
    beat += extent.offset_bytes // lanes
    for number, words in enumerate(program.words):
        row, v = decode(words)
        if row.name == "store" and v["base_reg"] == extent.base and _covers(v, beat):
            return number
    return -1


def _covers(v: dict[str, int], beat: int) -> bool:
    """Whether a store's runs contain a DRAM beat."""
    return any(start <= beat < start + v["count0"] for start in _runs(v))


def _runs(v: dict[str, int]) -> Iterator[int]:
    for i in range(v["count2"]):
        for j in range(v["count1"]):
            yield v["dram_offset"] + i * v["dram_stride2"] + j * v["dram_stride1"]


def first_diverging_record(one: Sequence[Record], other: Sequence[Record]) -> int | None:
    """Lowest instruction index that only one side retired or whose digests differ.

    Cycles are not compared. None where both sides wrote the same everywhere.
    """
    left = {r.index: r.digest for r in one}
    right = {r.index: r.digest for r in other}
    wrong = [i for i in left.keys() | right.keys() if left.get(i) != right.get(i)]
    return min(wrong, default=None)
