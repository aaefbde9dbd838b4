"""Programs built from (name, fields) pairs, and launches of them over random memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accelsim.artifacts import Launch, Program
from accelsim.spec.config import ENGINES, Config
from accelsim.spec.encoding import contract_hash, encode
from accelsim.spec.isa import BY_NAME

REGION_BEATS = 8192
Step = tuple[str, Mapping[str, int]]


def mask(*engines: str) -> int:
    """A `take` or `give` mask of engine names."""
    return sum(1 << ENGINES.index(e) for e in engines)


def program(config: Config, steps: Sequence[Step], **changes: Any) -> Program:
    """A program of one instruction a step; END is a step like any other."""
    opcodes = {BY_NAME[name].opcode for name, _ in steps}
    parts: dict[str, Any] = {
        "symbol": "test",
        "config": config,
        "words": np.stack([encode(name, v, config) for name, v in steps]),
        "opcode_mask": sum(1 << o for o in opcodes),
        "contract_hash": contract_hash(opcodes, config),
        "constants": b"",
        "arena_bytes": 0,
        "input_bytes": 0,
        "output_bytes": 0,
        "tensors": {},
        "inputs": (),
        "outputs": (),
        "layers": (),
        "tile_of": (),
    }
    return Program(**{**parts, **changes})


def launch(config: Config, steps: Sequence[Step], seed: int = 1, **changes: Any) -> Launch:
    """A launch over random DRAM regions behind base registers 1 to 7.

    Beats 64 to 71 behind base register 1 are one bias row and one multiplier row.
    """
    rng = np.random.default_rng(seed)
    size = REGION_BEATS * config.lanes
    dram = {b: rng.integers(0, 256, size, dtype=np.uint8) for b in range(1, 8)}
    # Where `chain` expects multipliers.
    biases = rng.integers(-9999, 9999, config.lanes).astype(np.int32)
    dram[1][64 * config.lanes : 68 * config.lanes] = biases.view(np.uint8)
    multipliers = rng.uniform(1e-4, 1e-2, config.lanes).astype(np.float32)
    dram[1][68 * config.lanes : 72 * config.lanes] = multipliers.view(np.uint8)
    own = {"dram": dram, "cycle_limit": 1_000_000, **changes}
    return Launch(program(config, steps), **own)


def pixels(rows: int) -> dict[str, int]:
    """Window fields of a 1×1 kernel over `rows` pixels of one block in activation rows 0 on."""
    return {"in_h": 1, "in_w": rows, "in_col_stride": 1, "out_w": rows}


def chain(config: Config, rows: int = 8) -> list[Step]:
    """Load activations, weights and parameters, convolve, drain and store them."""
    lanes = config.lanes
    return [
        ("load", {"base_reg": 2, "count0": rows, "local_stride0": 1}),
        ("load", {"memory": 1, "base_reg": 1, "count0": lanes, "local_stride0": 1}),
        (
            "load",
            {"memory": 2, "base_reg": 1, "dram_offset": 64, "count0": 8, "local_stride0": 1}
            | {"give": mask("matrix", "vector")},
        ),
        (
            "conv",
            {**pixels(rows), "in_tail": lanes, "out_tail": lanes, "take": mask("load")}
            | {"give": mask("vector")},
        ),
        (
            "drain",
            {"out_w": rows, "tail": lanes, "dst_base": config.act_bank_rows, "dst_col_stride": 1}
            | {"clamp_min": -128, "clamp_max": 127, "take": mask("load", "matrix")}
            | {"give": mask("store")},
        ),
        (
            "store",
            {"base_reg": 3, "count0": rows, "local_base": config.act_bank_rows}
            | {"local_stride0": 1, "take": mask("vector")},
        ),
        ("end", {}),
    ]
