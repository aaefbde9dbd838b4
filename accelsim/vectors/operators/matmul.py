"""Vectors of products of two activations."""

from __future__ import annotations

import torch

from accelsim.vectors.module import formula

CASES = {
    "matmul": formula(
        "matmul",
        "two inputs, neither transposed",
        ((1, 6, 9), (1, 9, 5)),
        lambda m, x, y: torch.matmul(x, y),
    ),
    "matmul_transposed": formula(
        "matmul",
        "queries times keys of two heads",
        ((2, 7, 9), (2, 10, 9)),
        lambda m, x, y: torch.matmul(x, y.transpose(1, 2)),
    ),
}
