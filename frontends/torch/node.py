"""A node of an FX graph as its converter sees it: arguments by their names in the operator's schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...dialects.element import DTYPES, element_bytes, is_float
from ...graph.network import Network, Value
from .bounds import MOST_HALF_TERMS
from .errors import UnsupportedNode
from .types import TensorKind

Converter = Callable[["Node"], Any]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class MatrixUnits:
    """Matrix units of a device, as far as schedules use them; without, all fields are empty.

    `factors` are the 16-bit types of floats that are multiplied there; `attention_tile` divides queries, keys and
    elements of attention of such types that is one kernel, and is 0 where none is. Convolutions of the types that are
    `convolved` are faster than PyTorch's, with units or without, and so are those `upward`, which are transposed or
    over three axes.
    """

    factors: frozenset[str] = frozenset()
    attention_tile: int = 0
    convolved: frozenset[str] = frozenset()
    upward: frozenset[str] = frozenset()


NO_UNITS = MatrixUnits()
CONVOLUTIONS, UPWARD = "convolutions", "convolutions that are transposed or over three axes"
"""The words for them in reasons."""


def aten(*names: str) -> Callable[[F], F]:
    """Mark a function as the converter of operators of ATen, by name and overload: `add.Tensor`."""

    def mark(function: F) -> F:
        function.aten = names  # type: ignore[attr-defined]
        return function

    return mark


@dataclass(frozen=True)
class Node:
    """One node of a graph.

    `arguments` are all of the schema's, tensors as values of the network, defaults where none was given; `results` are
    the kinds that PyTorch says the results have, `used` which of them are. Converters return a value, or one for each
    result, None where it is not computed.
    """

    net: Network
    operator: str
    label: str
    arguments: Mapping[str, Any]
    results: Sequence[TensorKind | None]
    used: frozenset[int]
    dense: frozenset[str]
    """Tensors among the arguments that are contiguous in PyTorch's memory."""
    is_optional: bool = False
    """True where PyTorch runs what is refused."""
    units: MatrixUnits = NO_UNITS
    """The matrix units of the device."""

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def value(self, name: str = "self") -> Value:
        """Return an argument that is a tensor, or a number as one."""
        found = self.arguments[name]
        if isinstance(found, Value):
            return found
        if isinstance(found, bool | int | float):
            return self.number(found, self.dtype)
        raise UnsupportedNode(f"{name} is missing" if found is None else f"{name} is {type(found).__name__}")

    def number(self, number: float, dtype: str) -> Value:
        """Return a number as a tensor: one that its type does not hold goes around, as PyTorch has it."""
        return self.net.constant(np.asarray(number).astype(dtype), "number")

    def ints(self, name: str) -> list[int]:
        """Return an argument that is numbers."""
        found = self.arguments[name]
        return [int(found)] if isinstance(found, int) else [int(n) for n in found or ()]

    def spatial(self, name: str, count: int, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return numbers for spatial axes: one stands for all, none for the default."""
        found = self.ints(name) or list(default or ())
        return tuple(found * count if len(found) == 1 else found)

    def axis(self, name: str = "dim", rank: int | None = None) -> int:
        """Return an argument that is an axis, counted from the first."""
        n = len(self.value().shape) if rank is None else rank
        return int(self.arguments[name]) % max(n, 1)

    def axes(self, name: str = "dim") -> list[int]:
        """Return an argument that is axes, all where it names none."""
        rank = len(self.value().shape)
        return sorted({d % max(rank, 1) for d in self.ints(name)}) if rank else []

    @property
    def kind(self) -> TensorKind:
        """The kind of the first result."""
        found = self.results[0]
        assert found is not None
        return found

    @property
    def dtype(self) -> str:
        return self.kind.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.kind.shape

    def apply(self, operator: str, *tensors: Any, **options: Any) -> Any:
        """Add an operator of the network, named after this node."""
        return self.net.apply(operator, *tensors, label=self.label, **options)

    def cast(self, value: Value, dtype: str) -> Value:
        """Return a value in an element type."""
        if value.dtype == dtype:
            return value
        made: Value = self.net.cast(value, dtype=dtype)
        return made

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """Return the elements of a value under another shape."""
        if value.shape == tuple(shape):
            return value
        made: Value = self.apply("reshape", value, shape=tuple(shape))
        return made

    def stretched(self, value: Value, shape: Sequence[int]) -> Value:
        """Return a value repeated along axes of extent 1, and along new leading ones."""
        if value.shape == tuple(shape):
            return value
        wide = self.reshaped(value, [1] * (len(shape) - len(value.shape)) + list(value.shape))
        made: Value = wide if wide.shape == tuple(shape) else self.apply("broadcast_to", wide, shape=tuple(shape))
        return made

    def require_products(self, what: str, dtype: str, terms: int) -> None:
        """Refuse sums of so many products of numbers that are no floats, and what PyTorch is faster at, if it can run.

        Of 16-bit floats those are what the device has no matrix units for, and sums of `MOST_HALF_TERMS` and more.
        """
        element = DTYPES[dtype]
        if not is_float(element):
            raise UnsupportedNode(f"{what} of {dtype} stay PyTorch's")
        if not self.is_optional or element_bytes(element) != 2:
            return
        quick = {CONVOLUTIONS: self.units.convolved, UPWARD: self.units.upward}
        if dtype not in quick.get(what, self.units.factors):
            raise UnsupportedNode(f"{what} of {dtype} stay PyTorch's, for want of matrix units that schedules use")
        if terms >= MOST_HALF_TERMS:
            raise UnsupportedNode(f"{what} of {dtype} with {terms:,} terms are faster in PyTorch")

    def prefer_pytorch(self, steps: int, most: int) -> None:
        """Refuse the node where PyTorch can run it, and our way takes more steps than are worth it."""
        if self.is_optional and steps > most:
            raise UnsupportedNode(f"{steps:,} steps, more than {most:,}, are faster in PyTorch, which needs less")
