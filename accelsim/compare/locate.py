"""From a wrong element, or a run that stopped, to the tile and the instruction that are to blame.

Two sources: the stores of a layer tell which tile wrote an element; the records of two backends
tell which instruction first wrote something else. The second is the more precise where it exists,
and it tells which backend is wrong: the one whose tensor differs from the golden.

A layer cut out of a program has instruction numbers of its own; `numbers` gives those of the whole
program, which is what a user can look up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from accelsim.artifacts import Comparison, Program, Record, RunResult, Shape4
from accelsim.errors import ProgramError
from accelsim.spec.assembler import disassemble_one
from accelsim.spec.config import ENGINES
from accelsim.spec.encoding import decode
from accelsim.spec.registers import DISPATCH_ENGINE, ErrorCode


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known beside one tensor: all runs of this program in this mode, and who was right."""

    runs: Sequence[RunResult] = ()
    right: Sequence[str] = ()  # backends whose tensor equals the golden
    numbers: Sequence[int] | None = None  # instruction of a cut → of the whole program


def locate(comparison: Comparison, program: Program, tensor: str, evidence: Evidence) -> Comparison:
    """`comparison` with tile, instruction and cause filled in; unchanged where nothing differs."""
    first = comparison.first
    if first is None:
        return comparison
    store = writer_of(program, tensor, first.index)
    diverging = None
    if len(evidence.runs) == 2 and not _silent(evidence):
        diverging = first_diverging_record(*(run.records for run in evidence.runs))
    instruction = store if diverging is None else diverging
    if instruction < 0:
        return comparison
    found = replace(
        first,
        tile=program.tile_of[instruction],
        instruction=_number(instruction, evidence.numbers),
        text=disassemble_one(program.words[instruction], instruction),
    )
    cause = _cause(comparison.actual, program, instruction, diverging is not None, evidence)
    return replace(comparison, first=found, cause=comparison.cause or cause)


def _cause(
    backend: str, program: Program, instruction: int, diverging: bool, evidence: Evidence
) -> str:
    layer = layer_of(program, instruction)
    where = f"instruction {_number(instruction, evidence.numbers)} of layer {layer}"
    others = [run.backend for run in evidence.runs if run.backend != backend]
    if not others:
        return (
            f"only {backend} ran: the element is stored by {where}, and any earlier instruction of "
            "its tile may be wrong; run both backends to see which"
        )
    other = others[0]
    if silent := _silent(evidence):
        return (
            f"there are no records of {' and '.join(silent)}, so no instruction can be compared: "
            f"the element is stored by {where}, and any earlier instruction of its tile may be "
            "wrong"
        )
    if not diverging:
        return (
            f"{backend} and {other} wrote the same everywhere, so the program or the golden is "
            f"wrong rather than one of them; the element is stored by {where}"
        )
    if other in evidence.right:
        return f"{backend} is wrong and {other} is right: they first differ at {where}"
    return (
        f"{backend} and {other} both differ from the golden, and first from each other at {where}"
    )


def _silent(evidence: Evidence) -> list[str]:
    """Backends whose run ended well and left no records: of these nothing can be said."""
    return [run.backend for run in evidence.runs if not run.records and not run.error_code]


def _number(instruction: int, numbers: Sequence[int] | None) -> int:
    if numbers is None or instruction >= len(numbers):
        return instruction
    return numbers[instruction]


def layer_of(program: Program, instruction: int) -> str:
    """Name of the layer that an instruction belongs to, or "-" for END."""
    for layer in program.layers:
        if instruction in layer.instructions:
            return layer.name
    return "-"


def stopped(program: Program, result: RunResult, numbers: Sequence[int] | None = None) -> str:
    """Why a run ended with an error: code, layer, tile, instruction and what it waited for."""
    index = result.error_index
    code = result.error_code
    name = ErrorCode(code).name if code in set(ErrorCode) else "?"
    head = f"{result.backend} stopped with error {code} ({name})"
    if not 0 <= index < len(program.words):
        return f"{head} at instruction {index}"
    try:
        text = disassemble_one(program.words[index], index)
    except ProgramError:
        text = "an illegal encoding"
    engine = result.error_engine
    on = "dispatch" if engine == DISPATCH_ENGINE or engine >= len(ENGINES) else ENGINES[engine]
    found = (
        f"{head} on {on} in layer {layer_of(program, index)}, tile {program.tile_of[index]}, "
        f"instruction {_number(index, numbers)}: {text}"
    )
    givers = _givers(program, index) if code == ErrorCode.WATCHDOG else []
    if not givers:
        return found
    waits = " and ".join(
        f"{ENGINES[engine]} (instruction {_number(giver, numbers)})" for engine, giver in givers
    )
    return f"{found}; it waits for a token of {waits}"


def unfinished(
    program: Program,
    error: Exception,
    numbers: Sequence[int] | None = None,
    other: RunResult | None = None,
) -> str:
    """Where a run was that gave no result, "" where its error does not know.

    Its first instruction that had not retired; or the first that wrote something else than in
    `other`, a run of the same program that was right.
    """
    index: int | None = getattr(error, "instruction", None)
    digests: Mapping[int, int] | None = getattr(error, "digests", None)
    what = "had not retired"
    if other is not None and digests is not None:
        right = {record.index: record.digest for record in other.records}
        wrong = min((i for i in right if digests.get(i) != right[i]), default=None)
        if wrong is not None:
            index = wrong
            what = "wrote something else" if wrong in digests else what
    if index is None or not 0 <= index < len(program.words):
        return ""
    return (
        f"; the first instruction that {what} is in layer {layer_of(program, index)}, "
        f"tile {program.tile_of[index]}, instruction {_number(index, numbers)}: "
        f"{disassemble_one(program.words[index], index)}"
    )


def _givers(program: Program, index: int) -> list[tuple[int, int]]:
    """(engine, its last earlier instruction that gives a token) an instruction waits for."""
    row, values = decode(program.words[index])
    result = []
    for engine in range(len(ENGINES)):
        if row.engine is None or not values["take"] >> engine & 1:
            continue
        for earlier in range(index - 1, -1, -1):
            giver, given = decode(program.words[earlier])
            if giver.engine == engine and given["give"] >> row.engine & 1:
                result.append((engine, earlier))
                break
    return result


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
