"""Parts that networks that nobody here wrote share: their types, inputs, and the first of several outputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Built = tuple[nn.Module, tuple[Tensor, ...]]
Builder = Callable[[bool], Built]


def floats(*shape: int) -> Tensor:
    """Return normally distributed numbers, the same each time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def tokens(words: int, *shape: int) -> Tensor:
    """Return tokens of `words` in all but for the first, the same each time."""
    return torch.randint(1, words, shape, generator=torch.Generator().manual_seed(0))


class FirstOutput(nn.Module):
    """A model that returns its first result alone, which may be an entry of a mapping."""

    def __init__(self, model: nn.Module, key: str | int) -> None:
        super().__init__()
        self.model, self.key = model, key

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model(*inputs)[self.key]
