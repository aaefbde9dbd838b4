"""Small networks of table functions and of operators over rows, for `tests/verify/rows.py:NAME`."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Functions(nn.Module):
    """(n, 4, 6, 6) → (n, 5, 6, 6): every function behind a convolution of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.ModuleList(
            [
                *(nn.Sigmoid(), nn.Tanh(), nn.SiLU(), nn.Hardswish(), nn.Hardsigmoid()),
                *(nn.GELU(), nn.ELU(), nn.LeakyReLU(0.2), nn.Mish(), nn.Softplus()),
            ]
        )
        self.convs = nn.ModuleList(nn.Conv2d(4 if not k else 5, 5, 1) for k in range(10))
        self.last = nn.Conv2d(5, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        """One behind the other."""
        for conv, kind in zip(self.convs, self.kinds, strict=True):
            x = kind(conv(x) * 3.0)
        result: Tensor = self.last(x)
        return result


class Attention(nn.Module):
    """(n, s, 24) → (n, s, 24): normalization and one head of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(24)
        self.query, self.key, self.value = (nn.Linear(24, 16) for _ in range(3))
        self.out = nn.Linear(16, 24)

    def forward(self, x: Tensor) -> Tensor:
        """Scores by softmax."""
        y = self.norm(x)
        scores = torch.matmul(self.query(y) * 2.0, self.key(y).transpose(1, 2))
        result: Tensor = self.out(torch.matmul(torch.softmax(scores, -1), self.value(y)))
        return result


class Mixture(nn.Module):
    """(n, 4, 6, 6) → (n, 5, 6, 6): weights of channels at each pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(4, 13, 3), nn.Conv2d(13, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Softmax over the second axis."""
        result: Tensor = self.last(self.first(x).softmax(dim=1))
        return result


def functions() -> tuple[nn.Module, Tensor]:
    """Table functions."""
    torch.manual_seed(6)
    return Functions(), torch.randn(1, 4, 6, 6)


def attention() -> tuple[nn.Module, Tensor]:
    """Softmax and layer normalization over the last axis."""
    torch.manual_seed(7)
    return Attention(), torch.randn(2, 9, 24)


def mixture() -> tuple[nn.Module, Tensor]:
    """Softmax over the channels of a map."""
    torch.manual_seed(8)
    return Mixture(), torch.randn(2, 4, 6, 6)
