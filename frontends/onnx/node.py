"""A node of an ONNX graph as its converter sees it: inputs as values or constants, attributes as Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...dialects.numpy_types import teach_numpy
from ...graph.network import Network, Value
from .errors import NeedsConstantError, UnsupportedNode
from .weights import LARGE

Array: TypeAlias = npt.NDArray[Any]
Operand: TypeAlias = "Value | Array"
"""A tensor of the network, or one whose values are known."""


@dataclass(frozen=True)
class Node:
    """One node; `version` is that of its operator set, `lift` makes a tensor of the network of a constant.

    Converters return the results in order, those that are not computed left off.
    """

    net: Network
    operator: str
    version: int
    label: str
    names: Sequence[str]
    operands: Sequence[Operand | None]
    attributes: Mapping[str, Any]
    results: Sequence[str]
    lift: Callable[[Array, str], Value]

    def has(self, position: int) -> bool:
        """True where an optional input is there."""
        return position < len(self.operands) and self.operands[position] is not None

    def operand(self, position: int) -> Operand:
        """Return an input; UnsupportedNode where it is missing."""
        found = self.operands[position] if position < len(self.operands) else None
        if found is None:
            raise UnsupportedNode(f"input {position} is missing")
        return found

    def value(self, position: int = 0) -> Value:
        """Return an input as a tensor of the network."""
        found = self.operand(position)
        return found if isinstance(found, Value) else self.lift(found, self.names[position])

    def values(self) -> list[Value]:
        """Return all inputs as tensors of the network."""
        return [self.value(k) for k in range(len(self.operands))]

    def shape(self, position: int = 0) -> tuple[int, ...]:
        """Return the shape of an input."""
        return tuple(self.operand(position).shape)

    def dtype(self, position: int = 0) -> str:
        """Return the element type of an input."""
        found = self.operand(position)
        return found.dtype if isinstance(found, Value) else found.dtype.name

    def constant(self, position: int, what: str = "input") -> Array:
        """Return an input whose values must be known; NeedsConstantError where they are not."""
        found = self.operand(position)
        if isinstance(found, Value):
            known = found.constant
            if known is None:
                raise NeedsConstantError(self.names[position], what)
            return known
        return found

    def ints(self, attribute: str, position: int | None = None) -> list[int] | None:
        """Whole numbers that are an attribute or, in later versions, a constant input; None where there are none."""
        if attribute in self.attributes:
            found = self.attributes[attribute]
            return [int(found)] if isinstance(found, int) else [int(v) for v in found]
        if position is not None and self.has(position):
            found = self.constant(position, attribute).reshape(-1)
            if found.size >= LARGE:
                raise UnsupportedNode(f"{attribute} has {found.size:,} numbers, it may have {LARGE - 1:,}")
            return [int(v) for v in found]
        return None

    def number(self, attribute: str, position: int, default: float) -> float:
        """Return a number that is an attribute or a constant input."""
        if attribute in self.attributes:
            return float(self.attributes[attribute])
        return float(self.constant(position, attribute).reshape(())) if self.has(position) else default

    def get(self, attribute: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.attributes.get(attribute, default)

    def of(self, *values: Value) -> Node:
        """Return the node with other inputs."""
        return replace(self, operands=values, names=[""] * len(values))

    def apply(self, operator: str, *tensors: Any, **options: Any) -> Value:
        """Add an operator of the network, named after this node."""
        made: Value = self.net.apply(operator, *tensors, label=self.label, **options)
        return made

    def number_like(self, number: float, like: Value) -> Array:
        """Return a number as an array of another tensor's type."""
        return np.asarray(number, dtype=numpy_type(like.dtype))


def numpy_type(name: str) -> Any:
    """Return NumPy's type for the name of an element type; ValueError where NumPy does not know it here."""
    teach_numpy(name)
    return np.dtype(name)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the end where negative, as one in `[0, rank)`; UnsupportedNode where there is none."""
    if not -rank <= axis < max(rank, 1):
        raise UnsupportedNode(f"axis {axis} is out of range for a tensor with {rank} axes")
    return axis % rank if rank else 0
