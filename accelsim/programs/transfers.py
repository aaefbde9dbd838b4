"""Random fields of loads and stores, often at the edge of a page, with every kind of stride."""

from __future__ import annotations

import numpy as np

from accelsim.spec.config import Config

Values = dict[str, int]
PAGE_BYTES = 4096


def random_fields(rng: np.random.Generator, config: Config, beats: int) -> Values:
    """Fields of a transfer, legal or not; strides of 0 are frequent."""
    long = rng.random() < 0.3
    count0 = int(rng.integers(1, beats + 1) if long else rng.integers(1, 9))
    page = PAGE_BYTES // config.lanes
    offset = int(rng.integers(0, 1 << 30))
    if rng.random() < 0.6:
        offset = offset // page * page + page - int(rng.integers(0, count0 + 2))
    near = rng.random() < 0.7

    def stride(bits: int, few: int) -> int:
        return int(rng.integers(0, few) if near else rng.integers(0, 1 << bits))

    return {
        "base_reg": int(rng.integers(8)),
        "dram_offset": offset,
        "count0": count0,
        "count1": int(rng.integers(1, 3 if long else 9)),
        "count2": int(rng.integers(1, 2 if long else 6)),
        "dram_stride1": stride(24, 12),
        "dram_stride2": stride(24, 100),
        "local_base": int(rng.integers(0, 60)),
        "local_stride0": int(rng.integers(0, 3)),
        "local_stride1": int(rng.integers(0, 10)),
        "local_stride2": int(rng.integers(0, 20)),
    }
