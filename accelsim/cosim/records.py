"""The file of retirement records that the simulation writes.

What comes in: fixed-size little-endian records (`rtl/tb/npu_observe.cpp`). What goes out: `Record`s
in the order of retirement. This module must not know how a digest is computed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from accelsim.artifacts import Record

RECORD = np.dtype(
    [
        ("engine", "<u4"),
        ("index", "<u4"),
        ("start_cycle", "<u8"),
        ("end_cycle", "<u8"),
        ("digest", "<u8"),
    ]
)


def read_records(path: Path) -> tuple[Record, ...]:
    """All records of a run. A torn record at the end, from a simulation that died, is dropped."""
    data = path.read_bytes()
    whole = len(data) - len(data) % RECORD.itemsize
    table = np.frombuffer(data[:whole], dtype=RECORD)
    return tuple(Record(*(int(value) for value in row)) for row in table)
