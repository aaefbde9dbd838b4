"""The self-test: one planted bug of the simulator must be found, or the run proves nothing."""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import Launch, Program, RunResult
from accelsim.compare import Evidence, compare_tensors, first_diverging_record, locate, stopped
from accelsim.emit import launch_memory, read_tensor
from accelsim.errors import ProgramError
from accelsim.simulate import BUGS, Simulator
from accelsim.spec.encoding import decode
from accelsim.verify.goldens import BatchGoldens

TRIES = 24


def self_test(
    program: Program, batch: BatchGoldens, honest: RunResult | None, seed: int
) -> dict[str, str]:
    """Plant a bug, drawn by seed, in one instruction of the program; say who caught it.

    A bug that changes nothing here (a zero point of 0 with another sign) is drawn again. Returns
    {"bug", "kind", "planted", "caught"}; "caught" is empty if nothing did, which fails the run.
    """
    rng = np.random.default_rng(seed)
    names = [decode(words)[0].name for words in program.words]
    sites = {
        bug: [i for i, name in enumerate(names) if name in BUGS[bug].opcodes]
        for bug in sorted(BUGS)
    }
    usable = [bug for bug, found in sites.items() if found]
    for _ in range(TRIES if usable else 0):
        bug = str(rng.choice(usable))
        site = int(rng.choice(sites[bug]))
        where = _caught(program, batch, honest, f"{bug}@{site}")
        if where is not None:
            return {
                "bug": f"{bug}@{site}",
                "kind": BUGS[bug].kind,
                "planted": f"{BUGS[bug].doc}, in instruction {site} ({names[site]})",
                "caught": where,
            }
    return {"bug": ", ".join(usable), "kind": "", "planted": "bugs of every kind", "caught": ""}


def _caught(
    program: Program, batch: BatchGoldens, honest: RunResult | None, name: str
) -> str | None:
    memory = launch_memory(program, {n: batch.values[n] for n in program.inputs})
    limit = 1 << 20 if honest is None else 4 * honest.cycles + (1 << 16)
    try:
        result = Simulator(program.config, bug=name).run(Launch(program, memory, (), limit))
    except ProgramError as error:
        return f"the simulator's own check: {error}"
    if result.error_code:
        return stopped(program, result)
    runs = [honest, result] if honest is not None else [result]
    for layer in program.layers:
        golden = batch.values[layer.output]
        actual = read_tensor(program, result.dram, layer.output)
        comparison = compare_tensors(
            actual, golden, backend="sim", source="integer", mode="accumulated", gate=True
        )
        first = locate(comparison, program, layer.output, Evidence(runs)).first
        if first is not None:
            return (
                f"layer {layer.name}, tile {first.tile}, instruction {first.instruction}: "
                f"{comparison.mismatches:,} elements differ"
            )
    if honest is not None:
        index = first_diverging_record(honest.records, result.records)
        if index is not None:
            return f"the digest of instruction {index}"
    return None
