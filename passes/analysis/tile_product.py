"""Nests that are one matrix instruction of a CPU's thread: the loops of a block matched with what registers hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.index import IndexExpr, atom_axes, flatten
from ...dialects.intrinsics import I_AXIS, J_AXIS, Intrinsic
from ...dialects.loop import BlockOp, ForOp, LoadOp, buffer_shape, element_of_buffer
from .matrix_product import Grid, Mismatch, digits_of, evaluated, load_of_factor, product_of_types
from .nest import buffer_name, ranges_of

MOST_ROWS = 2
"""Stretches that a vector is joined of, at most: two halves are one instruction more."""


@dataclass(frozen=True)
class Tile:
    """A matrix in memory as registers hold it: `rows` of neighbours, whose starts are `step` elements apart."""

    rows: int
    step: int


@dataclass(frozen=True)
class TileProduct:
    """A nest matched with an intrinsic of a CPU: the block, its loops, and the loads of its factors."""

    intrinsic: Intrinsic
    block: BlockOp
    digits: tuple[ForOp, ...]
    a: LoadOp
    b: LoadOp

    def factors(self) -> Iterator[tuple[str, LoadOp]]:
        """Each factor by its name, with its load."""
        yield "a", self.a
        yield "b", self.b

    def tile(self, operand: str, buffer: SSAValue, offset: IndexExpr) -> Tile:
        """The tile of `a`, `b` or `c` by the flat position of an element over the loops; Mismatch where it is none."""
        ranges = ranges_of(self.block.enclosing_loops)
        return _tile(self.intrinsic, self.digits, operand, buffer_name(buffer), offset.simplify(ranges))


def match_tiles(block: BlockOp, loop: ForOp, intrinsic: Intrinsic) -> TileProduct:
    """Match what is in `loop` around `block` with an intrinsic of a CPU; Mismatch says what is otherwise."""
    digits = digits_of(block, loop, intrinsic)
    lanes = next((x for x in block.enclosing_loops if x.loop_kind == "vectorized" and x.size > 1), None)
    if lanes is not None:
        raise Mismatch(f"loop '{lanes.loop_name}' is vectorized, and an instruction is none of its lanes")
    if block.conditions:
        raise Mismatch(
            f"'{block.block_name}' has a predicate, which would cut through an instruction: "
            "split by factors that divide the extents, or pad the operands by a stage before"
        )
    x, y = _factors_of(block, intrinsic)
    swapped = _moves(block, digits, intrinsic, x, J_AXIS) and not _moves(block, digits, intrinsic, x, I_AXIS)
    a, b = (y, x) if swapped else (x, y)
    types = [element_of_buffer(load.buffer) for load in (a, b)]
    if types != [intrinsic.a.type, intrinsic.b.type]:
        got = " and ".join(map(str, types))
        raise Mismatch(f"factors must be {intrinsic.a.type} and {intrinsic.b.type}, they are {got}")
    found = TileProduct(intrinsic, block, digits, a, b)
    for operand, load in found.factors():
        found.tile(operand, load.buffer, _flat(block, load.buffer, load.indices.data))
    found.tile("c", block.outputs[0], _flat(block, block.outputs[0], block.write_indices[0]))
    return found


def _factors_of(block: BlockOp, intrinsic: Intrinsic) -> tuple[LoadOp, LoadOp]:
    """The two loads that a block multiplies and adds up."""
    a, b = (load_of_factor(value) for value in product_of_types(block, intrinsic).operands)
    if a is None or b is None or a.conditions or b.conditions:
        raise Mismatch(f"'{block.block_name}' must multiply elements as they lie in memory: a stage before may do more")
    return a, b


def _flat(block: BlockOp, buffer: SSAValue, indices: Sequence[IndexExpr]) -> IndexExpr:
    """The flat position of an element over the loops, in a buffer that lies in memory as it is declared."""
    shape = buffer_shape(buffer)
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    return flatten([e.substitute(block.bound) for e in indices], strides)


def _moves(block: BlockOp, digits: Sequence[ForOp], intrinsic: Intrinsic, load: LoadOp, axis_name: str) -> bool:
    """True where a digit of an axis moves what is loaded."""
    used = _flat(block, load.buffer, load.indices.data).axes()
    held = zip(intrinsic.c.held, digits, strict=False)
    return any(digit.axes() == {axis_name} and loop.loop_name in used for digit, loop in held)


def _tile(intrinsic: Intrinsic, digits: Sequence[ForOp], operand: str, name: str, offset: IndexExpr) -> Tile:
    inside = {x.loop_name for x in digits}
    terms = [t for t in offset.terms if not atom_axes(t[0]).isdisjoint(inside)]
    mixed = next((t[0] for t in terms if not atom_axes(t[0]) <= inside), None)
    if mixed is not None:
        rule = f"'{name}' is touched at {mixed}, which joins loops of an instruction with others"
        raise Mismatch(f"{rule}: split by factors that divide the extents")
    sizes = [x.size for x in digits]
    values = dict(zip((x.loop_name for x in digits), np.indices(sizes), strict=True))
    moved = np.broadcast_to(evaluated(IndexExpr(tuple(terms), 0), values), sizes)
    held = _held(intrinsic, operand, moved, name)
    return _rows(intrinsic, operand, held - held[0], name)


def _held(intrinsic: Intrinsic, operand: str, moved: Grid, name: str) -> Grid:
    """Places of a matrix's elements in the order they are held in; Mismatch where they move with a third axis."""
    by_axis = _axes_of(intrinsic, moved.shape)
    row, column = (by_axis[x] for x in intrinsic.axes(operand))
    table = np.zeros([intrinsic.extents[x] for x in intrinsic.axes(operand)], np.int64)
    table[row, column] = moved
    if (table[row, column] != moved).any():
        (other,) = set("ijk") - set(intrinsic.axes(operand))
        raise Mismatch(f"'{name}' is {operand} of the instruction, so it must not move with its {other}")
    places = intrinsic.places(operand)
    return np.array([table[places[0, n]] for n in range(len(places))])


def _axes_of(intrinsic: Intrinsic, sizes: Sequence[int]) -> Mapping[str, Grid]:
    """The i, j and k of each instance of a block, by its place in the loops."""
    *held, k = sizes
    sums = intrinsic.places("c")
    rows, columns = np.array([sums[0, n] for n in range(len(sums))]).T.reshape(2, *held, 1)
    whole = tuple(sizes)
    steps = np.broadcast_to(np.arange(k), whole)
    return {I_AXIS: np.broadcast_to(rows, whole), J_AXIS: np.broadcast_to(columns, whole), "k": steps}


def _rows(intrinsic: Intrinsic, operand: str, held: Grid, name: str) -> Tile:
    """The rows of neighbours that elements lie in."""
    whole = intrinsic.rows(operand)
    for rows in (whole,) if intrinsic.tiles else range(1, MOST_ROWS + 1):
        if len(held) % rows:
            continue
        table = held.reshape(rows, -1)
        starts = np.diff(table[:, 0])
        if (np.diff(table, axis=1) == 1).all() and len(set(starts)) <= 1:
            return Tile(rows, int(starts[0]) if rows > 1 else 0)
    order = " then ".join(str(digit) for digit in intrinsic.fragment(operand).held)
    if intrinsic.tiles:
        wanted = f"{whole} rows, evenly apart, of {len(held) // whole} neighbours"
    else:
        wanted = f"{len(held)} neighbours"
    rule = f"'{name}' must hold {operand} of the instruction in the order of {order}, as {wanted}"
    raise Mismatch(f"{rule}: give it such a layout (cache_read with a layout, or transform_layout)")
