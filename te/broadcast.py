"""Elementwise operations of several tensors under NumPy's broadcasting rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .errors import ShapeError, format_shape
from .expr import IterVar, convert
from .tensor import Compute, Tensor


def broadcast_shape(operator: str, *shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the common shape of several; ShapeError names the operator and the shapes where there is none."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    result = []
    for extents in zip(*padded, strict=True):
        wide = {e for e in extents if e != 1}
        if len(wide) > 1:
            listed = " and ".join(map(format_shape, shapes))
            raise ShapeError(f"{operator}: shapes {listed} do not broadcast together")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def broadcast(name: str, function: Callable[..., Any], *operands: Any) -> Tensor:
    """Return a tensor of `function(a, b, ...)` over tensors and numbers of shapes that broadcast together."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    shape = broadcast_shape(name.removeprefix("T_"), *(t.shape for t in tensors))
    axes = tuple(IterVar(f"ax{k}", e) for k, e in enumerate(shape))

    def element(operand: Any) -> Any:
        return operand[broadcast_indices(operand, axes)] if isinstance(operand, Tensor) else operand

    value = convert(function(*map(element, operands)))
    return Tensor(name, shape, value.dtype, Compute(name, axes, (), (value,), (value.dtype,)))


def broadcast_indices(tensor: Tensor, axes: Sequence[IterVar]) -> tuple[Any, ...]:
    """Indices of `tensor` at a point of the broadcast shape: 0 where its extent of 1 is stretched."""
    own = axes[len(axes) - len(tensor.shape) :]
    return tuple(axis if extent == axis.extent else 0 for extent, axis in zip(tensor.shape, own, strict=True))
