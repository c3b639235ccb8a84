"""Inputs that a graph was compiled for, as tensors without memory: to trace it again keeps no parameter alive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .types import Tensor


@dataclass(frozen=True)
class Example:
    """A tensor without its elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    device: Any
    requires_grad: bool
    is_parameter: bool

    @staticmethod
    def of(tensor: Tensor) -> Example:
        """Return the example of a tensor."""
        import torch

        is_parameter = isinstance(tensor, torch.nn.Parameter)
        kind = (tensor.dtype, tensor.device, tensor.requires_grad, is_parameter)
        return Example(tuple(tensor.shape), tuple(tensor.stride()), *kind)

    def tensor(self) -> Tensor:
        """Return a tensor such as this, of no values in particular."""
        import torch

        made = torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device=self.device)
        if self.is_parameter:
            return torch.nn.Parameter(made, self.requires_grad)
        return made.requires_grad_(self.requires_grad)

    def zeros(self) -> Tensor:
        """Return a tensor such as this, of zeros."""
        made = self.tensor()
        made.detach().zero_()
        return made


@dataclass(frozen=True)
class Examples:
    """Shapes, strides and types of inputs, and whether gradients were computed."""

    _examples: tuple[Example, ...]
    _grad: bool
    _inference: bool

    @staticmethod
    def of(inputs: Sequence[Tensor]) -> Examples:
        """Return the examples of tensors."""
        import torch

        return Examples(tuple(map(Example.of, inputs)), torch.is_grad_enabled(), torch.is_inference_mode_enabled())

    @staticmethod
    def mode() -> Any:
        """Return a mode in which tensors have no memory."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        return FakeTensorMode()

    def tensors(self, mode: Any) -> list[Tensor]:
        """Return the inputs in such a mode."""
        with mode:
            return [each.tensor() for each in self._examples]

    @contextmanager
    def settings(self) -> Iterator[None]:
        """Compute gradients as it was then, and take no part in what goes on now."""
        import torch
        from torch.utils._python_dispatch import _disable_current_modes

        grad = torch.set_grad_enabled(self._grad)
        with (
            _disable_current_modes(),
            torch.inference_mode(self._inference),
            grad,
            torch.autocast("cpu", enabled=False),
        ):
            yield
