"""Cut one layer out of a program: its own instructions, never recompiled, and preset tokens.

The presets are the tokens that earlier layers would have left for it; what its instructions give to
later layers stays behind. Tokens are counted, so the cut is refused where a preset token could be
taken in place of one that the layer itself gives later.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from accelsim.artifacts import Program
from accelsim.errors import ProgramError
from accelsim.spec.config import ENGINES
from accelsim.spec.encoding import contract_hash, decode


def isolate(program: Program, layer: int) -> tuple[Program, tuple[int, ...]]:
    """The layer as a program of its own, and its semaphore presets (giver·4 + taker).

    Raises ProgramError if counted tokens cannot express the cut.
    """
    record = program.layers[layer]
    chosen = set(record.instructions)
    presets = [0] * (len(ENGINES) ** 2)
    own: dict[int, bool] = defaultdict(bool)  # semaphore → a token given inside was taken
    for semaphore, giver, taker in matched_tokens(program):
        if taker not in chosen:
            continue
        if giver in chosen:
            own[semaphore] = True
        elif own[semaphore]:
            raise ProgramError(
                f"layer {record.name} cannot run alone: instruction {taker} takes a token of an "
                "earlier layer after one of its own"
            )
        else:
            presets[semaphore] += 1
    words = np.concatenate([program.words[list(record.instructions)], program.words[-1:]])
    opcodes = {int(w[0]) & 0xFF for w in words}
    cut = replace(
        program,
        symbol=f"{program.symbol}:{record.name}",
        words=words,
        opcode_mask=sum(1 << o for o in opcodes),
        contract_hash=contract_hash(opcodes, program.config),
        layers=(replace(record, instructions=tuple(range(len(words) - 1))),),
        tile_of=(*(program.tile_of[i] for i in record.instructions), -1),
        partial=True,
    )
    return cut, tuple(presets)


def matched_tokens(program: Program) -> list[tuple[int, int, int]]:
    """(semaphore, giving instruction, taking instruction) of every token, in order of taking."""
    given: dict[int, list[int]] = defaultdict(list)
    taken: dict[int, list[int]] = defaultdict(list)
    for index, words in enumerate(program.words):
        row, values = decode(words)
        if row.engine is None:
            continue
        for other in range(len(ENGINES)):
            if values["give"] >> other & 1:
                given[row.engine * len(ENGINES) + other].append(index)
            if values["take"] >> other & 1:
                taken[other * len(ENGINES) + row.engine].append(index)
    return sorted(
        ((s, g, t) for s in taken for g, t in zip(given[s], taken[s], strict=True)),
        key=lambda item: item[2],
    )
