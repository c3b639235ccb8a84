"""An operation as its converter sees it: operands as tensors of the network, attributes as Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.cached_property import cached_property
from ...dialects.graph import ApplyOp, ConstantOp
from ...dialects.numpy_types import teach_numpy
from ...graph.evaluate import apply_arrays
from ...graph.network import Network, Value
from .errors import UnsupportedOperation
from .reader import Program, name_of
from .values import attributes, python, tensor_dtype, tensor_shape

Array: TypeAlias = npt.NDArray[Any]
Inline: TypeAlias = Callable[[Block | str, Sequence[Value]], Sequence[Value]]
"""Converts a block, which may read what stands around it, or a function by name, on tensors."""
_FOLDED = 1 << 14
"""Constants of up to so many elements are computed while a program is read: places and sizes are made of them."""


@dataclass
class Builder:
    """The network under construction; `apply` computes what depends on small constants alone."""

    net: Network
    label: str = ""

    def constant(self, values: Any, dtype: str | None = None) -> Value:
        """Return a constant; one number many times over is that number, broadcast."""
        if dtype is not None:
            teach_numpy(dtype)
        array = np.asarray(values, dtype=dtype)
        if array.size > 1 and (not any(array.strides) or bool((array == array.flat[0]).all())):
            return self.broadcast(self.net.constant(array.flat[0], self.label or None, array.dtype.name), array.shape)
        return self.net.constant(np.ascontiguousarray(array).reshape(array.shape), self.label or None)

    def apply(self, name: str, *tensors: Any, **options: Any) -> Any:
        """Add an operator; its result, or a tuple of several."""
        made = self.net.apply(name, *tensors, label=self.label or None, **options)
        return made if isinstance(made, tuple) else self._folded(made)

    def _folded(self, made: Value) -> Value:
        op = made.ssa.owner
        assert isinstance(op, ApplyOp)
        owners = [value.owner for value in op.inputs]
        if op.operator.data == "broadcast_to" or max(_size(v) for v in (*op.inputs, made.ssa)) > _FOLDED:
            return made
        if not all(isinstance(owner, ConstantOp) for owner in owners):
            return made
        arrays = [self.net.constant_values(owner) for owner in owners if isinstance(owner, ConstantOp)]
        values = apply_arrays(op, arrays)[0]
        assert op.parent is not None
        op.parent.erase_op(op)
        return self.constant(values)

    def elementwise(self, name: str, *tensors: Value, **options: Any) -> Value:
        """Add an operator that works element by element: tensors that were broadcast are read as they were before."""
        shape = np.broadcast_shapes(*(t.shape for t in tensors))
        thin = [self.thin(t) for t in tensors]
        made: Value = self.apply(name, *thin, **options)
        return self.broadcast(made, shape)

    def thin(self, value: Value) -> Value:
        """Return what a tensor was before it was broadcast."""
        op = value.ssa.owner
        if isinstance(op, ApplyOp) and op.operator.data == "broadcast_to":
            return Value(self.net, op.inputs[0])
        return value

    def broadcast(self, value: Value, shape: Sequence[int]) -> Value:
        """Return a tensor stretched to a shape by NumPy's rules."""
        if value.shape == tuple(shape):
            return value
        thin = self.thin(value)
        made: Value = self.net.apply("broadcast_to", thin, label=self.label or None, shape=tuple(shape))
        return made

    def iota(self, shape: Sequence[int], axis: int) -> Value:
        """Return the places along one axis of a shape, as places of MLIR: int64."""
        numbers = self.constant(np.arange(shape[axis]), "int64")
        return self.broadcast(self.reshape(numbers, (shape[axis], *(1,) * (len(shape) - axis - 1))), shape)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Return a tensor under another shape."""
        if value.shape == tuple(shape):
            return value
        op = value.ssa.owner
        if isinstance(op, ApplyOp) and op.operator.data == "broadcast_to" and _size(op.inputs[0]) == 1:
            return self.broadcast(self.reshape(self.thin(value), ()), shape)
        made: Value = self.apply("reshape", value, shape=tuple(shape))
        return made

    def transpose(self, value: Value, axes: Sequence[int]) -> Value:
        """Return a tensor with its axes in another order."""
        if list(axes) == list(range(len(value.shape))):
            return value
        made: Value = self.apply("transpose", value, axes=tuple(axes))
        return made

    def cast(self, value: Value, dtype: str) -> Value:
        """Return a tensor of another element type; conditions are what is not 0."""
        if value.dtype == dtype:
            return value
        if dtype == "bool":
            return self.elementwise("not_equal", value, self.number(0, value.dtype))
        return self.elementwise("cast", value, dtype=dtype)

    def number(self, value: Any, dtype: str) -> Value:
        """Return one number."""
        return self.constant(np.asarray(value), dtype)

    def like(self, value: float, tensor: Value) -> Value:
        """Return one number of a tensor's type."""
        return self.number(value, tensor.dtype)

    def slice(self, value: Value, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> Value:
        """Return a part of a tensor."""
        if value.shape == tuple(end) and not any(begin) and set(strides) <= {1}:
            return value
        axes = list(range(len(value.shape)))
        if not axes:
            return value
        options = {"begin": tuple(begin), "end": tuple(end), "strides": tuple(strides), "axes": tuple(axes)}
        made: Value = self.apply("strided_slice", value, **options)
        return made


def _size(value: SSAValue) -> int:
    return int(np.prod(tensor_shape(value.type), dtype=np.int64))


@dataclass(frozen=True)
class Node:
    """One operation. Converters return its result, a sequence of several, or None for none."""

    op: Operation
    build: Builder
    program: Program
    operands: Sequence[Value]
    inline: Inline
    indices: Sequence[Value] = ()
    around: Callable[[Sequence[Value]], Inline] | None = None

    @property
    def name(self) -> str:
        """The operation's name without its dialect."""
        return name_of(self.op).partition(".")[2]

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        """Attributes and properties by name."""
        return attributes(self.op)

    def with_indices(self, space: Sequence[int]) -> Node:
        """Return the node of an operation over a space, places in which its region may ask for."""
        assert self.around is not None
        indices = [self.build.iota(space, d) for d in range(len(space))]
        return replace(self, inline=self.around(indices))

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute as a Python value."""
        found = self.attributes.get(name)
        return default if found is None else python(found, self.program.resources)

    def need(self, name: str) -> Any:
        """Return an attribute that must be there."""
        if name not in self.attributes:
            raise UnsupportedOperation(f"it has no attribute '{name}'")
        return self.get(name)

    def ints(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Return whole numbers that are an array, a dense tensor or one number."""
        found = self.get(name)
        if found is None:
            return list(default)
        return [int(v) for v in np.asarray(found).reshape(-1)]

    def value(self, position: int = 0) -> Value:
        """Return an operand."""
        if position >= len(self.operands):
            raise UnsupportedOperation(f"operand {position} is missing")
        return self.operands[position]

    def constant(self, position: int, what: str) -> Array:
        """Return an operand whose values must be known."""
        return known_values(self.value(position), what)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return tensor_shape(self.op.results[0].type)

    @property
    def dtype(self) -> str:
        """The element type of the first result."""
        return tensor_dtype(self.op.results[0].type)

    def region(self, position: int = 0) -> Block:
        """Return the block of a region."""
        regions = self.op.regions
        if position >= len(regions) or len(regions[position].blocks) != 1:
            raise UnsupportedOperation(f"region {position} must be one block")
        return regions[position].block


def known_values(value: Value, what: str) -> Array:
    """Return the values of a constant, one that was broadcast included."""
    op = value.ssa.owner
    if isinstance(op, ApplyOp) and op.operator.data == "broadcast_to":
        return np.broadcast_to(known_values(Value(value.net, op.inputs[0]), what), value.shape)
    found = value.constant
    if found is None:
        raise UnsupportedOperation(f"{what} must be a constant")
    return found
