"""A small vision transformer: `zoo:digits-transformer`.

What comes in: nothing. What goes out: the untrained network. Blocks as in ViT (Dosovitskiy et al.
2021), norms before attention and MLP.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from accelsim.zoo.blocks import CLASSES

WIDTH, HEADS, HIDDEN, TOKENS = 32, 2, 64, 16


class Attention(nn.Module):
    """Self-attention of (n, tokens, width)."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.softmax = nn.Softmax(dim=-1)
        self.project = nn.Linear(WIDTH, WIDTH)

    def split(self, x: Tensor) -> Tensor:
        """(n, tokens, width) → (n, heads, tokens, width / heads)."""
        return x.view(-1, TOKENS, HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.split(f(x)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-2, -1)) * (WIDTH // HEADS) ** -0.5
        mixed = torch.matmul(self.softmax(scores), value)
        projected: Tensor = self.project(mixed.transpose(1, 2).reshape(-1, TOKENS, WIDTH))
        return projected


class Encoder(nn.Module):
    """Attention and an MLP with GELU, each behind a norm and beside a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.fc1 = nn.Linear(WIDTH, HIDDEN)
        self.gelu = nn.GELU()
        self.fc2 = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        y: Tensor = x + self.fc2(self.gelu(self.fc1(self.norm2(x))))
        return y


class VisionTransformer(nn.Module):
    """(n, 1, 16, 16) → patches of 4×4 → one encoder layer → mean over tokens → (n, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, 4, stride=4)
        self.position = nn.Parameter(0.1 * torch.randn(1, TOKENS, WIDTH))
        self.encoder = Encoder()
        self.norm = nn.LayerNorm(WIDTH)
        self.fc = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.position
        scores: Tensor = self.fc(self.norm(self.encoder(tokens)).mean(1))
        return scores
