"""Sums of products of two tensors at affine indices (matrix products, convolutions) as matrix multiplications."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ..element import is_float
from ..te import ComputeOp, ReadOp, YieldOp
from .access import Grid, is_affine
from .vector import Array, Values

MATRIX_ELEMENTS = 1 << 24
"""Most elements of one operand that are copied at once (128 MiB of doubles)."""


@dataclass(frozen=True)
class MultipliedReads:
    """The two reads that a sum of products multiplies."""

    left: ReadOp
    right: ReadOp


def product_of(op: ComputeOp) -> MultipliedReads | None:
    """The two unguarded reads at affine indices whose product `op` sums, or None where its body is something else."""
    if op.combiner.data != "add" or len(op.outputs) != 1:
        return None
    last = op.body.block.last_op
    assert isinstance(last, YieldOp)
    multiplied = last.values[0].owner
    if not isinstance(multiplied, arith.MulfOp | arith.MuliOp):
        return None
    left, right = (_read_below(v) for v in multiplied.operands)
    if left is None or right is None:
        return None
    return MultipliedReads(left, right)


def _read_below(value: SSAValue) -> ReadOp | None:
    op = value.owner
    while isinstance(op, arith.ExtFOp | arith.ExtSIOp | arith.SIToFPOp):
        op = op.operands[0].owner
    if isinstance(op, ReadOp) and not op.conditions and all(is_affine(e) for e in op.indices.data):
        return op
    return None


def contract(op: ComputeOp, product: MultipliedReads, tensors: Values) -> Array:
    """Compute the sums over `op`'s domain: in double precision for floats and for int8, else in 64-bit integers."""
    spatial = [a.name for a in op.spatial_axes]
    reduced = [a.name for a in op.reduce_axes]
    grid = Grid([*spatial, *reduced], {a.name: (0, a.extent) for a in op.axes.data})
    sources = [r.tensor for r in (product.left, product.right)]
    small = all(is_float(s.type.get_element_type()) or tensors[s].dtype == np.int8 for s in sources)  # type: ignore[attr-defined]
    kind = np.float64 if small else np.int64
    views = [grid.view(tensors[r.tensor].astype(kind), r.indices.data) for r in (product.left, product.right)]
    shape = grid.shape
    rank, inner = len(spatial), range(len(spatial), len(shape))
    scale = prod(shape[d] for d in inner if views[0].shape[d] == 1 and views[1].shape[d] == 1)
    left, right = _sum_alone(views[0], views[1], inner), _sum_alone(views[1], views[0], inner)
    shared = [d for d in inner if left.shape[d] > 1]
    batch = [d for d in range(rank) if left.shape[d] > 1 and right.shape[d] > 1]
    first = [d for d in range(rank) if left.shape[d] > 1 and d not in batch]
    second = [d for d in range(rank) if right.shape[d] > 1 and d not in batch]
    result = _multiply(left, right, batch, first, second, shared) * scale
    order = [*batch, *first, *second]
    compact = result.transpose(np.argsort(order)) if order else result
    full = compact.reshape([shape[d] if d in order else 1 for d in range(rank)])
    return np.broadcast_to(full, shape[:rank])


def _sum_alone(view: Array, other: Array, inner: range) -> Array:
    """Sum one operand over the reduction dimensions that the other does not have."""
    alone = tuple(d for d in inner if view.shape[d] > 1 and other.shape[d] == 1)
    return view.sum(axis=alone, keepdims=True) if alone else view


def _multiply(
    left: Array, right: Array, batch: list[int], first: list[int], second: list[int], shared: list[int]
) -> Array:
    """Products summed over `shared`, with dimensions batch, first, second; large left operands go in slices."""
    if left.size > MATRIX_ELEMENTS and first:
        d = max(first, key=lambda axis: left.shape[axis])
        if left.shape[d] > 1:
            halves = np.array_split(left, 2, axis=d)
            parts = [_multiply(h, right, batch, first, second, shared) for h in halves]
            return np.concatenate(parts, axis=len(batch) + first.index(d))
    a = _matrix(left, batch, first, shared)
    b = _matrix(right, batch, second, shared)
    product = a @ b.transpose(0, 2, 1)
    return product.reshape([left.shape[d] for d in (*batch, *first)] + [right.shape[d] for d in second])


def _matrix(view: Array, batch: list[int], rows: list[int], columns: list[int]) -> Array:
    order = [*batch, *rows, *columns]
    rest = [d for d in range(view.ndim) if d not in order]
    moved = view.transpose([*rest, *order])
    sizes = [prod(view.shape[d] for d in group) for group in (batch, rows, columns)]
    return np.ascontiguousarray(moved).reshape(sizes)
