"""What an instruction touches: the rows of each memory that it reads and writes, and the ports.

What comes in: a decoded instruction and a configuration. What goes out: `Touch`es, exact to the
row. It knows no order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.decoded import END, Op
from accelsim.simulate.instructions import behaviour
from accelsim.simulate.rows import Rows, Touch
from accelsim.spec.config import Config

# Ports: one read and one write port a bank, numbered 2·bank and 2·bank + 1.
PORTS = {"act": "act port", "acc0": "acc port", "acc1": "acc port"}


def footprint(op: Op, config: Config) -> tuple[Touch, ...]:
    """Everything that an instruction touches, reads first. END touches nothing."""
    return () if op.engine == END else behaviour(op.name).touches(op.values, config)


def ports(op: Op, touches: tuple[Touch, ...], config: Config) -> tuple[Touch, ...]:
    """Ports of banked memories that an instruction uses: each use excludes other engines.

    The matrix engine uses both ports of its accumulator bank: it reads what it adds to.
    """
    result = []
    for touch in touches:
        if touch.memory == "act":
            banks = _banks(touch.rows, config.act_bank_rows)
            result.append(Touch(PORTS["act"], 2 * banks + touch.write, True))
        elif touch.memory in ("acc0", "acc1"):
            port = 2 * int(touch.memory[-1])
            both = touch.write
            result.append(Touch(PORTS[touch.memory], slice(port, port + 1 + both), True))
    return tuple(result)


def _banks(rows: Rows, bank_rows: int) -> NDArray[np.int64]:
    if isinstance(rows, slice):
        return np.arange(rows.start // bank_rows, (rows.stop - 1) // bank_rows + 1)
    first, last = int(rows.min()) // bank_rows, int(rows.max()) // bank_rows
    if first == last:
        return np.array([first])
    return np.unique(rows // bank_rows)
