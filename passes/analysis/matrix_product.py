"""Nests that are one matrix instruction: the loops of a block matched with who holds which element of an intrinsic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects.index import Div, IndexExpr, Mod, atom_axes, axis
from ...dialects.intrinsics import I_AXIS, J_AXIS, K_AXIS, Intrinsic
from ...dialects.intrinsics_cuda import MATRIX_ROWS, ROUNDINGS, ROW_BYTES, Rounding
from ...dialects.loop import BlockOp, ForOp, LoadOp, element_of_buffer, scope_of
from ...dialects.target import WARP
from .nest import buffer_name, only_child, ranges_of
from .summed_product import Multiplication, summed_product

TENSORIZE = "tensorize"
"""The annotation of the outermost loop of a nest that is one matrix instruction: the name of its intrinsic."""

LANE_AXES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
"""The axes of threads whose first 32 are a warp: one of 32, or the digits of a lane, the lower ones on the first.

Those of a warp group are 128 on the first one, or the digits of a lane in its warp on two, and warps on the third, of
all warp groups there are."""

OWN = "own_factor"
"""The annotation of a block whose first factor is read from registers at those elements that a thread itself holds."""

_COLUMN_LANES = 4
"""Lanes that hold a row of a matrix of 8 rows."""

Grid = npt.NDArray[np.int64]


class Mismatch(Exception):
    """A nest that is not the intrinsic, and why."""


@dataclass(frozen=True)
class MatrixProduct:
    """A nest matched with an intrinsic: the block, its loops, its factors, and how those lie in memory.

    `digits` are the loops inside, those of a thread's sums, then that of `k`; `lanes` are the loops of a warp's, or
    warp group's threads, the digits of a lane with the lowest one last. The first of them is of `groups` such.
    A factor is `turned` where neighbours in memory are rows of the matrix, instead of steps of `k`. `moved` tells of
    each factor, dimension by dimension, how far an element `(row, k)` is from the first; nothing of one in registers.
    """

    intrinsic: Intrinsic
    block: BlockOp
    lanes: tuple[ForOp, ...]
    groups: int
    digits: tuple[ForOp, ...]
    a: LoadOp
    b: LoadOp
    a_turned: bool
    b_turned: bool
    moved: Mapping[str, Sequence[Grid]]

    def factors(self) -> Iterator[tuple[str, LoadOp, bool]]:
        """Each factor by its name, with its load and whether it is turned."""
        yield "a", self.a, self.a_turned
        yield "b", self.b, self.b_turned


def match_product(block: BlockOp, loop: ForOp, intrinsic: Intrinsic) -> MatrixProduct:
    """Match what is in `loop` around `block` with an intrinsic of a warp; Mismatch says what is otherwise."""
    digits = digits_of(block, loop, intrinsic)
    lanes = _lanes(block, loop, intrinsic)
    factors = _factors_of(block, intrinsic)
    if block.conditions:
        raise Mismatch(
            f"'{block.block_name}' has a predicate, which would cut through an instruction: "
            "split by factors that divide the extents, or pad the operands by a stage before"
        )
    groups = prod(x.size for x in lanes) // intrinsic.threads
    grid = _Grid(intrinsic, block, lanes, groups, digits)
    a, b = grid.in_roles(*factors)
    _require_types(a, b, intrinsic)
    grid.require_sums_apart()
    moved, a_turned = dict[str, Sequence[Grid]](), False
    if scope_of(a.buffer) == "local":
        _require_own(block, a, lanes, intrinsic)
    else:
        moved["a"] = grid.moved_by_element("a", a)
        a_turned = grid.is_turned("a", a, moved["a"])
    moved["b"] = grid.moved_by_element("b", b)
    b_turned = grid.is_turned("b", b, moved["b"])
    return MatrixProduct(intrinsic, block, lanes, groups, digits, a, b, a_turned, b_turned, moved)


def digits_in_words(intrinsic: Intrinsic) -> str:
    """Say which loops the nest of an intrinsic has: `i floordiv 8 in 2, j mod 2 in 2, k in 16`."""
    held = zip(intrinsic.c.held, intrinsic.held_extents("c"), strict=True)
    return ", ".join([*(f"{digit} in {extent}" for digit, extent in held), f"k in {intrinsic.k}"])


def digits_of(block: BlockOp, loop: ForOp, intrinsic: Intrinsic) -> tuple[ForOp, ...]:
    loops, inner = [loop], only_child(loop)
    while isinstance(inner, ForOp):
        loops.append(inner)
        inner = only_child(inner)
    if inner is not block:
        raise Mismatch(f"loop '{loop.loop_name}' must hold '{block.block_name}' alone")
    wanted = (*intrinsic.held_extents("c"), intrinsic.k)
    got = [f"{x.loop_name} in {x.size}" for x in loops]
    if tuple(x.size for x in loops) != wanted:
        raise Mismatch(f"the nest must be of {digits_in_words(intrinsic)}, it is of {', '.join(got)}")
    other = next((x for x in loops if x.loop_kind != "serial"), None)
    if other is not None:
        raise Mismatch(f"loop '{other.loop_name}' is part of an instruction, so it must be serial")
    return tuple(loops)


def _lanes(block: BlockOp, loop: ForOp, intrinsic: Intrinsic) -> tuple[ForOp, ...]:
    around = block.enclosing_loops
    bound = {x.loop_kind: x for x in around[: around.index(loop)]}
    lanes: tuple[ForOp, ...] = ()
    for kind in LANE_AXES:
        if kind in bound and prod(x.size for x in lanes) < intrinsic.threads:
            lanes = (bound[kind], *lanes)
    count = prod(x.size for x in lanes)
    if count != intrinsic.threads and (len(lanes) < len(LANE_AXES) or count % intrinsic.threads):
        got = " and ".join(f"'{x.loop_name}' has {x.size}" for x in reversed(lanes)) or "there is none"
        rule = f"a loop of {intrinsic.threads} around it must be bound to {LANE_AXES[0]}, the lanes of a warp"
        raise Mismatch(f"{rule}, and {got}: warps are bound to threadIdx.y, or to threadIdx.z where lanes have both")
    return lanes


def _factors_of(block: BlockOp, intrinsic: Intrinsic) -> tuple[LoadOp, LoadOp]:
    """The two loads that a block multiplies and adds up."""
    product = product_of_types(block, intrinsic)
    if scope_of(block.outputs[0]) != "local":
        name = buffer_name(block.outputs[0])
        raise Mismatch(f"'{name}' holds the sums, so it must be in scope local: set_scope, or cache_write before")
    a, b = (load_of_factor(unrounded(value, intrinsic)) for value in product.operands)
    if a is None or b is None or a.conditions or b.conditions:
        raise Mismatch(f"'{block.block_name}' must multiply elements as they lie in shared memory: cache_read before")
    return a, b


def product_of_types(block: BlockOp, intrinsic: Intrinsic) -> Multiplication:
    """The multiplication whose results a block adds up in the type of an intrinsic's sums; Mismatch for others."""
    if (product := summed_product(block)) is None:
        raise Mismatch(f"'{block.block_name}' must be a sum of products of two loads")
    if product.result.type != intrinsic.c.type:
        rule = f"sums must be {intrinsic.c.type}, they are {product.result.type}"
        raise Mismatch(f"{rule}: widen the factors before they are multiplied (out_dtype of topi's products)")
    return product


def unrounded(value: SSAValue, intrinsic: Intrinsic) -> SSAValue:
    """The value that a factor is rounded of; itself for intrinsics that do not round."""
    if not intrinsic.rounds:
        return value
    plain = before_rounding(value, intrinsic.rounds)
    if plain is not value:
        return plain
    rule = f"'{intrinsic.name}' rounds its factors to {intrinsic.rounds}, which changes what is computed"
    raise Mismatch(f"{rule}: say so by te.round_to of both of them")


def before_rounding(value: SSAValue, kind: str = "") -> SSAValue:
    """The value that is rounded, in some way or as `kind` says; itself where it is not."""
    chosen = value.owner
    if not isinstance(chosen, arith.SelectOp):
        return value
    ways = [ROUNDINGS[kind]] if kind else ROUNDINGS.values()
    return chosen.rhs if any(_is_rounded(chosen.lhs, chosen.rhs, way) for way in ways) else value


def _is_rounded(value: SSAValue, of: SSAValue, way: Rounding) -> bool:
    """True for the bits of `of` with those cut off that are not kept, once ties to even are added."""
    cast = value.owner
    if not isinstance(cast, arith.BitcastOp) or not isinstance(cast.input.owner, arith.AndIOp):
        return False
    added = cast.input.owner.lhs.owner
    if const_evaluate_operand(cast.input.owner.rhs) != way.mask or not isinstance(added, arith.AddiOp):
        return False
    bits, half = added.lhs.owner, added.rhs.owner
    if not isinstance(bits, arith.BitcastOp) or bits.input is not of or not isinstance(half, arith.AddiOp):
        return False
    return const_evaluate_operand(half.rhs) == way.below_half and _is_last_bit(half.lhs, added.lhs, way)


def _is_last_bit(value: SSAValue, bits: SSAValue, way: Rounding) -> bool:
    """True for the last of the bits that are kept."""
    last = value.owner
    if not isinstance(last, arith.AndIOp) or const_evaluate_operand(last.rhs) != 1:
        return False
    shifted = last.lhs.owner
    return (
        isinstance(shifted, arith.ShRSIOp) and shifted.lhs is bits and const_evaluate_operand(shifted.rhs) == way.bits
    )


def load_of_factor(value: SSAValue) -> LoadOp | None:
    """The load that a factor is, widened or not; None where it is none."""
    owner = value.owner
    while isinstance(owner, arith.ExtFOp | arith.ExtSIOp | arith.ExtUIOp):
        owner = owner.operands[0].owner
    return owner if isinstance(owner, LoadOp) else None


def _require_types(a: LoadOp, b: LoadOp, intrinsic: Intrinsic) -> None:
    types = [element_of_buffer(load.buffer) for load in (a, b)]
    if types != [intrinsic.a.type, intrinsic.b.type]:
        got = " and ".join(map(str, types))
        raise Mismatch(f"factors must be {intrinsic.a.type} and {intrinsic.b.type}, they are {got}")
    for load in (a, b):
        if scope_of(load.buffer) != "shared" and not (load is a and scope_of(load.buffer) == "local"):
            name = buffer_name(load.buffer)
            raise Mismatch(f"'{name}' is loaded by warps, so it must be in scope shared: cache_read before")


def _require_own(block: BlockOp, a: LoadOp, lanes: Sequence[ForOp], intrinsic: Intrinsic) -> None:
    """Mismatch unless what threads hold of a product's result may be what they hold of the first factor of another."""
    name = buffer_name(a.buffer)
    if not holds_as_sums(intrinsic):
        raise Mismatch(f"'{name}' must be in scope shared: '{intrinsic.name}' wants it held otherwise than sums are")
    if [x.size for x in lanes][-2:] != [WARP // _COLUMN_LANES, _COLUMN_LANES]:
        rule = f"threads hold '{name}', so lanes must be two loops, of {WARP // _COLUMN_LANES} on threadIdx.y"
        raise Mismatch(f"{rule} and of {_COLUMN_LANES} on threadIdx.x")
    if OWN not in block.notes and k_of_factor(block, a) is None:
        raise Mismatch(f"'{name}' must be read at the step of k in one dimension, and nowhere else at it")


def holds_as_sums(intrinsic: Intrinsic) -> bool:
    """True where a lane holds those steps of k of the first factor that it holds columns of the result of."""
    as_columns = intrinsic.a.lane.substitute({K_AXIS: axis(J_AXIS)})
    return intrinsic.threads % WARP == 0 and "a" in intrinsic.held_operands and as_columns == intrinsic.c.lane


def k_of_factor(block: BlockOp, load: LoadOp) -> str | None:
    """The one reduce iterator that a load is at, in one dimension by itself; None where it is otherwise."""
    names = [a.name for a in block.axes if a.reduce]
    at = [e.as_axis() for e in load.indices.data if not e.axes().isdisjoint(names)]
    return at[0] if len(at) == 1 else None


class _Grid:
    """All instances of a block in one instruction: lanes and digits, and the element of each matrix that is theirs.

    Where the first lanes are those of several `groups`, all of them must move alike: the grid is that of the first.
    Arrays have a dimension for each loop, of length 1 where the loop does not move what they hold.
    """

    def __init__(
        self, intrinsic: Intrinsic, block: BlockOp, lanes: Sequence[ForOp], groups: int, digits: Sequence[ForOp]
    ) -> None:
        self.intrinsic, self.block, self.groups = intrinsic, block, groups
        self.lanes = len(lanes)
        self.loops = (*lanes, *digits)
        self.ranges = ranges_of(block.enclosing_loops)
        grids = np.indices([x.size for x in self.loops], sparse=True)
        self.values = dict(zip([x.loop_name for x in self.loops], grids, strict=True))
        self.first_lanes = lanes[0].size // groups
        shape = (self.first_lanes, *(x.size for x in self.loops[1:-1]), 1)
        sums = _elements_of_sums(intrinsic)
        self.axes = {
            I_AXIS: _thin(sums[..., 0].reshape(shape)),
            J_AXIS: _thin(sums[..., 1].reshape(shape)),
            K_AXIS: grids[-1],
        }
        self._known: dict[tuple[str, tuple[IndexExpr, ...]], list[Grid]] = {}

    def _moved(self, name: str, indices: tuple[IndexExpr, ...]) -> list[Grid]:
        """For each dimension how far an element is from that of the first lane and the first digits."""
        if (name, indices) not in self._known:
            self._known[name, indices] = self._measured(name, indices)
        return self._known[name, indices]

    def _measured(self, name: str, indices: Sequence[IndexExpr]) -> list[Grid]:
        bound, inside = self.block.bound, set(self.values)
        found = []
        for index in indices:
            expr = index.substitute(bound).simplify(self.ranges)
            terms = [t for t in expr.terms if not atom_axes(t[0]).isdisjoint(inside)]
            mixed = next((t[0] for t in terms if not atom_axes(t[0]) <= inside), None)
            if mixed is not None:
                rule = f"'{name}' is touched at {mixed}, which joins loops of an instruction with others"
                raise Mismatch(f"{rule}: split by factors that divide the extents")
            found.append(self._in_group(name, evaluated(IndexExpr(tuple(terms), 0), self.values)))
        return found

    def _in_group(self, name: str, place: Grid) -> Grid:
        """Distances of places from the first one of their group; Mismatch unless they are the same in all groups."""
        count = self.groups if len(place) > 1 else 1
        groups = place.reshape(count, len(place) // count, *place.shape[1:])
        moved = groups - groups.reshape(count, -1)[:, 0].reshape(-1, *(1 for _ in place.shape))
        if (moved != moved[:1]).any():
            rule = f"must move '{name}' in each group of {self.first_lanes} of its iterations as in the first"
            raise Mismatch(f"loop '{self.loops[0].loop_name}' {rule}")
        found: Grid = moved[0]
        return found

    def in_roles(self, x: LoadOp, y: LoadOp) -> tuple[LoadOp, LoadOp]:
        """The two factors as `a`, which moves with rows of the result, and `b`."""
        return (y, x) if self._moves(x, J_AXIS) and not self._moves(x, I_AXIS) else (x, y)

    def _moves(self, load: LoadOp, axis_name: str) -> bool:
        """True where a digit of an axis moves what is loaded."""
        for number, digit in enumerate(self.intrinsic.c.held, self.lanes):
            if digit.axes() == {axis_name}:
                moved = self._moved(buffer_name(load.buffer), load.indices.data)
                if any((np.diff(part, axis=number) != 0).any() for part in moved):
                    return True
        return False

    def require_sums_apart(self) -> None:
        """Mismatch unless each of a thread's sums has a place of its own, whatever the step of `k`."""
        name = buffer_name(self.block.outputs[0])
        moved = self._moved(name, self.block.write_indices[0])
        *held, k = self.loops[self.lanes :]
        if any((np.diff(part, axis=-1) != 0).any() for part in moved):
            raise Mismatch(f"loop '{k.loop_name}' must be of the reduction, it moves '{name}'")
        sizes = [x.size for x in held]
        of_one = np.stack([np.broadcast_to(part[(0,) * self.lanes][..., 0], sizes).ravel() for part in moved])
        if len(np.unique(of_one, axis=1).T) != of_one.shape[1]:
            names = " and ".join(f"'{x.loop_name}'" for x in held)
            raise Mismatch(f"loops {names} must each move the sums in '{name}'")

    def moved_by_element(self, operand: str, load: LoadOp) -> list[Grid]:
        """For each dimension how far an element of a factor, by row and step of `k`, is from its first one."""
        name = buffer_name(load.buffer)
        row_name, k_name = self.intrinsic.axes(operand)
        rows, steps = self.axes[row_name], self.axes[k_name]
        return [self._by_element(name, part, rows, steps) for part in self._moved(name, load.indices.data)]

    def is_turned(self, operand: str, load: LoadOp, table: Sequence[Grid]) -> bool:
        """True for a factor whose neighbours in memory are rows; Mismatch unless it lies as matrices are loaded."""
        name, fragment = buffer_name(load.buffer), self.intrinsic.fragment(operand)
        in_row = ROW_BYTES // fragment.bytes
        if _lies_along(table, 1, in_row):
            return False
        if fragment.bytes == TURNED_BYTES and _lies_along(table, 0, MATRIX_ROWS):
            return True
        along = f"{in_row} steps of k" + (" or 8 rows" if fragment.bytes == TURNED_BYTES else "")
        raise Mismatch(f"{along} must be neighbours in '{name}': give its cache_read a layout that ends with them")

    def _by_element(self, name: str, moved: Grid, rows: Grid, steps: Grid) -> Grid:
        """Distance of an element of a factor from its first one, by row and by step of `k`."""
        moved, rows, steps = np.broadcast_arrays(moved, rows, steps)
        by_step, at = moved.reshape(-1, moved.shape[-1]), rows[..., 0].ravel()
        table = np.zeros((at.max() + 1, len(by_step.T)), np.int64)
        table[at] = by_step
        if (table[at] == by_step).all():
            return table
        for number, loop in enumerate(self.loops):
            along = np.diff(moved, axis=number) != 0
            same = (np.diff(rows, axis=number) == 0) & (np.diff(steps, axis=number) == 0)
            if (along & same).any():
                rule = self._rule_of(number)
                raise Mismatch(f"loop '{loop.loop_name}' must be {rule}, so that it leaves '{name}' where it is")
        raise Mismatch(f"loop '{self.loops[0].loop_name}' must be {self._rule_of(0)}: split, reorder and fuse it so")

    def _rule_of(self, number: int) -> str:
        """Say which digit of the intrinsic a loop must be."""
        if number < self.lanes:
            return f"the lanes {self.intrinsic.c.lane}"
        return str([*self.intrinsic.c.held, K_AXIS][number - self.lanes])


@cache
def _elements_of_sums(intrinsic: Intrinsic) -> Grid:
    """The (row, column) of each sum, by the thread and the position that hold it."""
    found = np.zeros((intrinsic.threads, prod(intrinsic.held_extents("c")), 2), np.int64)
    for place, element in intrinsic.places("c").items():
        found[place] = element
    return found


def _thin(grid: Grid) -> Grid:
    """A grid with length 1 in each dimension along which it stays the same."""
    for number in range(grid.ndim):
        first = grid.take([0], axis=number)
        if (grid == first).all():
            grid = first
    return grid


TURNED_BYTES = 2
"""Bytes of the elements that matrices can be turned of while they are loaded (PTX ISA, ldmatrix .trans)."""


def _lies_along(table: Sequence[Grid], direction: int, together: int) -> bool:
    """True where the last index grows by one in a direction, and the others stay, in each group of so many."""
    *others, last = (np.moveaxis(part, direction, -1) for part in table)
    shape = (last.shape[0], last.shape[1] // together, together)
    steps = np.diff(last.reshape(shape), axis=-1)
    still = all((np.diff(part.reshape(shape), axis=-1) == 0).all() for part in others)
    return bool((steps == 1).all()) and still


def evaluated(expr: IndexExpr, values: Mapping[str, Grid]) -> Grid:
    """The values of an expression at points of a grid, as an array that has a dimension for each of the axes."""
    total: Grid = np.full((1,) * len(values), expr.const, np.int64)
    for atom, c in expr.terms:
        if isinstance(atom, str):
            part = values[atom]
        elif isinstance(atom, Div):
            part = evaluated(atom.expr, values) // atom.divisor
        elif isinstance(atom, Mod):
            part = evaluated(atom.expr, values) % atom.divisor
        else:
            raise Mismatch("an index is read from data, and a matrix instruction reads at places that are known")
        total = total + c * part
    return total
