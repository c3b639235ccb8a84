"""Tensors of PyTorch as networks know them: element types, memory orders, arrays on the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dialects.numpy_types import ELEMENT_TYPES, teach_numpy
from .errors import UnsupportedNode

Array = npt.NDArray[Any]
Tensor = Any
"""A torch.Tensor: torch is loaded by those who call."""


TARGET_KINDS = {"cpu": "llvm", "cuda": "cuda"}
"""The kind of target for each kind of device whose tensors are taken."""


@dataclass(frozen=True)
class TensorKind:
    """The shape and the element type of a tensor."""

    shape: tuple[int, ...]
    dtype: str


def tensor_kind(value: Tensor) -> TensorKind:
    """Return the kind of a tensor; UnsupportedNode where networks have none such."""
    dtype = dtype_of(value)
    if any(not isinstance(n, int) for n in value.shape):
        raise UnsupportedNode("the shape is not known")
    if not value.numel():
        raise UnsupportedNode("a tensor has no elements")
    return TensorKind(tuple(value.shape), dtype)


def dtype_of(value: Tensor) -> str:
    """Return the name of a tensor's elements; UnsupportedNode where networks have none such."""
    import torch

    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.is_quantized:
        raise UnsupportedNode("only dense tensors are supported")
    if value.device.type not in TARGET_KINDS:
        raise UnsupportedNode(f"tensors on {value.device} stay PyTorch's")
    return dtype_name(value.dtype)


def own_name(dtype: Any) -> str:
    """Return PyTorch's name of a torch.dtype, by which it is an attribute of torch."""
    return str(dtype).removeprefix("torch.")


def dtype_name(dtype: Any) -> str:
    """Return the name of a torch.dtype; UnsupportedNode where networks have none such."""
    name = own_name(dtype)
    if name not in ELEMENT_TYPES:
        raise UnsupportedNode(f"elements of type {name} are not supported")
    return name


def memory_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """Return the axes from the outermost in memory to the innermost, None where elements are not dense in memory.

    Axes of extent 1 stay where they are in a contiguous tensor, whatever their stride.
    """
    moving = [d for d, n in enumerate(shape) if n != 1]
    ordered = sorted(moving, key=lambda d: (-strides[d], d))
    step = 1
    for d in reversed(ordered):
        if strides[d] != step:
            return None
        step *= shape[d]
    places = iter(ordered)
    return tuple(next(places) if n != 1 else d for d, n in enumerate(shape))


def has_symbols(inputs: Sequence[Any]) -> bool:
    """True where the shapes of a graph's inputs, or the inputs themselves, are not numbers yet."""
    import torch

    def is_open(value: Any) -> bool:
        if isinstance(value, torch.Tensor):
            return any(isinstance(n, torch.SymInt) for n in (*value.shape, *value.stride(), value.storage_offset()))
        return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)

    return any(map(is_open, inputs))


def array_of(tensor: Tensor) -> Array:
    """Return a tensor as an array: on the same memory if it is on the CPU, else a copy."""
    import torch

    plain = tensor.detach().cpu()
    if plain.dtype is torch.bfloat16:
        teach_numpy("bfloat16")
        found: Array = plain.view(torch.int16).numpy().view(np.dtype("bfloat16"))
        return found
    array: Array = plain.numpy()
    return array
