"""Matrix instructions of warps on what threads hold: registers `(n, threads)` of 32 bits, and the elements in them."""

from __future__ import annotations

import numpy as np

from ..buffers import CHUNK_BYTES
from ..element import dtype_name
from ..intrinsics import Intrinsic
from ..intrinsics_cuda import MATRIX_ROWS, REGISTER_BYTES, ROUNDINGS
from ..target import WARP
from .kernel_functions import Array
from .tiles import element_places

_COLUMNS = 4
"""Lanes that hold a row of a matrix of 8 rows."""


def registers(rows: Array, matrices: int, turned: bool) -> Array:
    """Load matrices: of the rows `(elements of 16 bytes, threads)` that lanes name, the registers that lanes get."""
    per, threads = rows.shape[0] // _COLUMNS, rows.shape[1]
    lane, first = np.arange(threads) % WARP, np.arange(threads) // WARP * WARP
    found = np.empty((threads, matrices, per), rows.dtype)
    for matrix in range(matrices):
        for part in range(per):
            row, column = lane // _COLUMNS, lane % _COLUMNS * per + part
            source, element = (column, row) if turned else (row, column)
            found[:, matrix, part] = rows[element, first + MATRIX_ROWS * matrix + source]
    return np.ascontiguousarray(found.reshape(threads, -1).view(np.int32).T)


def packed(elements: Array) -> Array:
    """The registers that elements `(n, threads)` fill, the first one of a register in its low bits."""
    return np.ascontiguousarray(np.ascontiguousarray(elements.T).view(np.int32).T)


def product(intrinsic: Intrinsic, a: Array, b: Array, sums: Array) -> Array:
    """Add the product of what warps hold in registers to sums `(elements, threads)`, which are returned."""
    whole = {"a": _elements(intrinsic, "a", a), "b": _elements(intrinsic, "b", b), "c": sums.T}
    exact = np.int64 if sums.dtype.kind == "i" else np.float64
    matrix = {operand: _gathered(intrinsic, operand, held).astype(exact) for operand, held in whole.items()}
    added = matrix["c"] + matrix["a"] @ matrix["b"].swapaxes(1, 2)
    found = np.empty_like(sums)
    lanes, places, rows, columns = element_places(intrinsic, "c")
    for warp, values in enumerate(added):
        found[places, warp * WARP + lanes] = values[rows, columns].astype(sums.dtype)
    return found


def _elements(intrinsic: Intrinsic, operand: str, held: Array) -> Array:
    """The elements `(threads, n)` in registers of 32 bits."""
    dtype = np.dtype(dtype_name(intrinsic.fragment(operand).type))
    assert held.dtype.itemsize == REGISTER_BYTES
    found: Array = np.ascontiguousarray(held.T).view(dtype)
    return rounded(found, intrinsic.rounds) if intrinsic.rounds else found


def rounded(values: Array, kind: str = "tf32") -> Array:
    """Values to the nearest that are kept, ties to even."""
    rounding, bits = ROUNDINGS[kind], np.ascontiguousarray(values).view(np.int32)
    with np.errstate(over="ignore"):
        near = bits + (bits >> rounding.bits & 1) + np.int32(rounding.below_half) & np.int32(rounding.mask)
    return np.where(np.isnan(values), values, near.view(np.float32))


def _cut_off(values: Array) -> Array:
    """Values without the bits that TF32 does not keep."""
    return (np.ascontiguousarray(values).view(np.int32) & np.int32(ROUNDINGS["tf32"].mask)).view(np.float32)


def _gathered(intrinsic: Intrinsic, operand: str, held: Array) -> Array:
    """The matrix of each warp, or warp group, `(warps, rows, columns)`."""
    lanes, places, rows, columns = element_places(intrinsic, operand)
    row_axis, column_axis = intrinsic.axes(operand)
    warps = len(held) // intrinsic.threads
    found = np.empty((warps, intrinsic.extents[row_axis], intrinsic.extents[column_axis]), held.dtype)
    for warp in range(warps):
        found[warp, rows, columns] = held[warp * intrinsic.threads + lanes, places]
    return found


def of_group(intrinsic: Intrinsic, registers: Array) -> Array:
    """The first factors `(groups, rows, k)` that warp groups hold in registers."""
    return _gathered(intrinsic, "a", _elements(intrinsic, "a", registers))


def swizzled(elements: Array, span: int, size: int) -> Array:
    """The places of elements of `size` bytes whose chunks of 16 change places in rows of `span` bytes; 0 for none.

    The bits of an address that tell chunks of a row apart are turned by those that tell 128 bytes apart.
    """
    if not span:
        return elements
    at = elements * size
    found: Array = (at ^ ((at >> 7 & span // CHUNK_BYTES - 1) * CHUNK_BYTES)) // size
    return found


def group_product(intrinsic: Intrinsic, a: Array, b: Array, sums: Array) -> Array:
    """Add products of matrices `(groups, rows, k)`, both row by row, to sums `(elements, threads)`: the new ones."""
    exact = np.int64 if sums.dtype.kind == "i" else np.float64
    if intrinsic.rounds:
        a, b = _cut_off(a), _cut_off(b)
    added = a.astype(exact) @ b.astype(exact).swapaxes(1, 2)
    lanes, places, rows, columns = element_places(intrinsic, "c")
    found = np.array(sums)
    for group, values in enumerate(added):
        threads = group * intrinsic.threads + lanes
        found[places, threads] = (sums[places, threads].astype(exact) + values[rows, columns]).astype(sums.dtype)
    return found
