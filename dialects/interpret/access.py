"""Reads of a tensor over a box of axis values: strided views where indices are affine, gathers elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..index import Div, IndexExpr, Lookup
from .vector import Array

Box = Mapping[str, tuple[int, int]]
"""Half-open range of each axis."""


class Grid:
    """A box of axis values as NumPy dimensions, one per axis in the given order."""

    def __init__(self, axes: Sequence[str], box: Box) -> None:
        self.axes = axes
        self.starts = [box[a][0] for a in axes]
        self.shape = tuple(box[a][1] - box[a][0] for a in axes)
        self.ranges = {a: (box[a][0], box[a][1] - 1) for a in axes}
        self._points: dict[str, Array] = {}

    def points(self, axis: str) -> Array:
        """Return an axis's values along its own dimension, so that they broadcast over the others."""
        if axis not in self._points:
            d = list(self.axes).index(axis)
            shape = [1] * len(self.axes)
            shape[d] = self.shape[d]
            self._points[axis] = np.arange(self.starts[d], self.starts[d] + self.shape[d]).reshape(shape)
        return self._points[axis]

    def evaluate(self, expr: IndexExpr, positions: Sequence[Array] = ()) -> Array:
        """Evaluate the expression at every point, with extent 1 along the axes it does not use.

        `positions` are the values of those that the program reads, not clamped yet.
        """
        total = np.full((1,) * len(self.axes), expr.const, dtype=np.int64)
        for atom, factor in expr.terms:
            if isinstance(atom, str):
                value = self.points(atom)
            elif isinstance(atom, Lookup):
                value = np.clip(positions[atom.number], 0, atom.extent - 1).astype(np.int64)
            else:
                inner = self.evaluate(atom.expr, positions)
                value = inner // atom.divisor if isinstance(atom, Div) else inner % atom.divisor
            total = total + factor * value
        return total

    def holds(self, conditions: Sequence[IndexExpr]) -> Array:
        """Return a mask of the points where every `condition >= 0`."""
        result = np.ones((1,) * len(self.axes), dtype=bool)
        for condition in conditions:
            result = result & (self.evaluate(condition) >= 0)
        return result

    def read(
        self,
        source: Array,
        indices: Sequence[IndexExpr],
        where: Sequence[IndexExpr],
        positions: Sequence[Array] = (),
    ) -> Array:
        """Gather the elements at `indices`, zero where a condition fails; IndexError for an index beyond the array."""
        if where:
            return self._masked(source, indices, where, positions)
        if all(is_affine(e) for e in indices):
            return self.view(source, indices)
        return self._gather(source, [self.evaluate(e, positions) for e in indices])

    def view(self, source: Array, indices: Sequence[IndexExpr]) -> Array:
        """Return a strided view, with extent 1 along the axes that do not matter; indices must be affine."""
        source = np.asarray(source, order="C")
        offset = 0
        steps = dict.fromkeys(self.axes, 0)
        for d, (expr, extent) in enumerate(zip(indices, source.shape, strict=True)):
            lowest, highest = expr.bounds(self.ranges)
            if lowest < 0 or highest >= extent:
                raise IndexError(f"index {expr} ranges over [{lowest}, {highest}], axis {d} has extent {extent}")
            stride = source.strides[d]
            offset += stride * expr.const
            for atom, factor in expr.terms:
                assert isinstance(atom, str)
                steps[atom] += stride * factor
        offset += sum(steps[a] * s for a, s in zip(self.axes, self.starts, strict=True))
        flat = source.reshape(-1)[offset // source.itemsize :]
        shape = [n if steps[a] else 1 for a, n in zip(self.axes, self.shape, strict=True)]
        return as_strided(flat, shape, [steps[a] for a in self.axes], writeable=False)

    def _masked(
        self,
        source: Array,
        indices: Sequence[IndexExpr],
        where: Sequence[IndexExpr],
        positions: Sequence[Array],
    ) -> Array:
        mask = self.holds(where)
        places = [self.evaluate(e, positions) for e in indices]
        for d, (position, extent) in enumerate(zip(places, source.shape, strict=True)):
            wrong = (position < 0) | (position >= extent)
            if wrong.any() and (wrong & mask).any():
                raise IndexError(f"index {indices[d]} leaves axis {d} of extent {extent} where its conditions hold")
        safe = [np.clip(p, 0, n - 1) for p, n in zip(places, source.shape, strict=True)]
        zero = np.zeros((), dtype=source.dtype)
        return np.where(mask, self._gather(source, safe), zero)

    def _gather(self, source: Array, positions: Sequence[Array]) -> Array:
        offset: Any = np.zeros((1,) * len(self.axes), dtype=np.int64)
        stride = 1
        for d in range(source.ndim - 1, -1, -1):
            if (positions[d] < 0).any() or (positions[d] >= source.shape[d]).any():
                raise IndexError(f"an index leaves axis {d} of extent {source.shape[d]}")
            offset = offset + positions[d] * stride
            stride *= source.shape[d]
        return np.asarray(np.asarray(source, order="C").reshape(-1)[offset])


def is_affine(expr: IndexExpr) -> bool:
    """True where no floordiv and no mod occurs, nor a position that is read."""
    return all(isinstance(atom, str) for atom, _ in expr.terms)
