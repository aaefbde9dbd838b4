"""Small networks of products and pools, for `tests/verify/products.py:FUNCTION`."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Spotter(nn.Module):
    """(n, 10, 32) → (n, 5): convolutions over time, pools over it, a linear layer of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(10, 16, 5, padding=2)
        self.pool = nn.MaxPool1d(3, 2, padding=1)
        self.grouped = nn.Conv1d(16, 24, 3, groups=4, dilation=2)
        self.average = nn.AvgPool1d(2)
        self.last = nn.AdaptiveAvgPool1d(1)
        self.fc = nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        y = self.average(torch.relu(self.grouped(self.pool(torch.relu(self.conv(x))))))
        result: Tensor = self.fc(torch.flatten(self.last(y), 1))
        return result


class Decoder(nn.Module):
    """(n, 6, 5, 6) → (n, 3, 20, 24): a map made larger twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ConvTranspose2d(6, 12, 3, 2, 1, output_padding=1)
        self.second = nn.ConvTranspose2d(12, 3, 4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The larger map."""
        result: Tensor = self.second(torch.relu(self.first(x)))
        return result


class Scores(nn.Module):
    """(n, s, k) → (n, s, s): every row's projection times every other's."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(12, 20)
        self.key = nn.Linear(12, 20)

    def forward(self, x: Tensor) -> Tensor:
        """The scores."""
        return torch.matmul(self.query(x), self.key(x).transpose(1, 2))


class Pools(nn.Module):
    """(n, 3, 13, 14) → (n, 9, 2, 1): windows over the edge, of different sizes, whole maps."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 9, 3, padding=1)
        self.over = nn.AvgPool2d(2, ceil_mode=True)
        self.inside = nn.AvgPool2d(3, 1, padding=1, count_include_pad=False)
        self.maxima = nn.MaxPool2d(2, 1, dilation=2)
        self.rows = nn.AdaptiveMaxPool2d((5, 1))
        self.uneven = nn.AdaptiveAvgPool2d((2, 1))

    def forward(self, x: Tensor) -> Tensor:
        """The averages."""
        y = self.maxima(self.inside(self.over(torch.relu(self.conv(x)))))
        result: Tensor = self.uneven(self.rows(y))
        return result


class Heads(nn.Module):
    """(n, s, 24) → (n, s, 24): attention of three heads."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(24, 24)
        self.key = nn.Linear(24, 24)
        self.value = nn.Linear(24, 24)
        self.softmax = nn.Softmax(dim=-1)
        self.out = nn.Linear(24, 24)

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], 3, 8).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        """The attended rows."""
        q, k, v = (self._split(one(x)) for one in (self.query, self.key, self.value))
        weights = self.softmax(torch.matmul(q, k.transpose(2, 3)))
        rows = torch.matmul(weights, v).transpose(1, 2)
        result: Tensor = self.out(rows.reshape(x.shape))
        return result


def heads() -> tuple[nn.Module, Tensor]:
    """Attention."""
    torch.manual_seed(7)
    return Heads(), torch.randn(2, 6, 24)


def pools() -> tuple[nn.Module, Tensor]:
    """Pools."""
    torch.manual_seed(6)
    return Pools(), torch.randn(1, 3, 13, 14)


def spotter() -> tuple[nn.Module, Tensor]:
    """Convolutions over time."""
    torch.manual_seed(3)
    return Spotter(), torch.randn(2, 10, 32)


def decoder() -> tuple[nn.Module, Tensor]:
    """Transposed convolutions."""
    torch.manual_seed(4)
    return Decoder(), torch.randn(1, 6, 5, 6)


def scores() -> tuple[nn.Module, Tensor]:
    """A product of two activations."""
    torch.manual_seed(5)
    return Scores(), torch.randn(2, 7, 12)
