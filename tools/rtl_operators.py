"""Which instructions and operators an RTL module takes part in, and a layer of each operator.

What comes in: a module's name. What goes out: an engine, instructions, and for each operator that
uses one of them a case of its regression, whose golden is the integer reference. The operators are
those that `accelsim.ops` finds. A module that every instruction passes through belongs to all.
"""

from __future__ import annotations

from collections.abc import Iterator

from accelsim.artifacts import Backend
from accelsim.ops import Batch, Operator, Spec, Stage, known_operators, make_case
from accelsim.ops.stages import run
from accelsim.spec.config import Config
from accelsim.spec.isa import BY_NAME, INSTRUCTIONS

SUMS = ("conv", "dwconv")
SCALED = ("drain", "pool", "add", "binary")
ALL = tuple(row.name for row in INSTRUCTIONS if row.name != "end")

# The longest prefix of a module's name decides.
ENGINES: dict[str, tuple[str, tuple[str, ...]]] = {
    "npu_matrix": ("matrix", SUMS),
    "npu_matrix_mac": ("matrix", ("conv",)),
    "npu_matrix_weights": ("matrix", ("conv",)),
    "npu_matrix_depthwise": ("matrix", ("dwconv",)),
    "npu_wgt_mem": ("matrix", SUMS),
    "npu_acc_mem": ("matrix and vector", (*SUMS, "drain")),
    "npu_vector": ("vector", SCALED),
    "npu_requant": ("vector", SCALED),
    "npu_fp_": ("vector", SCALED),
    "npu_scale": ("vector", SCALED),
    "npu_rows": ("vector", ("lookup", "softmax", "layernorm")),
    "npu_tab_mem": ("vector", ("lookup", "softmax")),
    "npu_load": ("load", ALL),
    "npu_store": ("store", ALL),
}
EVERYTHING = ("all engines", ALL)
CASES = ("lanes_plus_one", "plain")  # pad lanes and several blocks, where the operator has that
SEED = 7


def reach(module: str) -> tuple[str, tuple[str, ...]]:
    """Engine and instructions that a module takes part in."""
    found = [prefix for prefix in ENGINES if module.startswith(prefix)]
    return ENGINES[max(found, key=len)] if found else EVERYTHING


def uses(opcode_mask: int, instructions: tuple[str, ...]) -> bool:
    """Whether a program with these opcodes has one of the instructions."""
    return any(opcode_mask >> BY_NAME[name].opcode & 1 for name in instructions)


def operators_with(instructions: tuple[str, ...]) -> tuple[Operator, ...]:
    """Operators whose programs have one of the instructions."""
    known = known_operators().values()
    return tuple(one for one in known if set(instructions) & set(one.facts.instructions))


def run_layers(
    instructions: tuple[str, ...], config: Config, backend: Backend
) -> Iterator[tuple[str, int, int]]:
    """Run a layer of each operator that has one of the instructions: (operator, elements, wrong).

    Raises RtlError, TimeLimitError or ToolError of the backend. A run that ends with an error code
    counts every element as wrong.
    """
    chosen = operators_with(instructions)
    cases = [make_case(one.name, _spec(one, config), SEED) for one in chosen]
    for rounding in dict.fromkeys(case.spec.rounding for case in cases):
        batch = Batch([case for case in cases if case.spec.rounding == rounding])
        for case in batch.cases.values():
            outcome = run(batch, case, Stage.SIM, config, (backend,))
            yield case.operator, outcome.elements, outcome.mismatches


def _spec(operator: Operator, config: Config) -> Spec:
    edges = {spec.name: spec for spec in operator.edges(config)}
    return next(edges[name] for name in (*CASES, *edges) if name in edges)
