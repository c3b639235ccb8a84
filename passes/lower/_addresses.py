"""Index expressions as values: each part computed once, in the outermost loop where it is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import Any

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr, VectorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.index import Atom, Div, IndexExpr, Lookup, Mod, Term, atom_axes, axis, constant
from ...dialects.kernel import INTEGER_PREDICATES, CompareOp, LanesOp, MaskOp, mask_type, vector_of
from ...dialects.layout import Swizzle
from ..analysis.lane_distances import lane_distances
from ._cut_tiles import Cut
from ._lanes import lane_step, same_for_lanes
from ._loop_values import Known, LoopValues

INDEX = IndexType()
SIGNED_AT_LEAST = IntegerAttr(INTEGER_PREDICATES.index("sge"), i64)


@dataclass
class Scope:
    """A region being written: what is computed there once, and which loads still hold."""

    block: Block
    values: dict[object, SSAValue] = field(default_factory=dict)
    sums: dict[tuple[tuple[Term, ...], int], tuple[SSAValue, int]] = field(default_factory=dict)
    places: dict[object, tuple[SSAValue, int, int]] = field(default_factory=dict)
    """By the terms of a position: the value of its base, what to add to its constant, and what the base is a multiple
    of."""
    loads: dict[object, Any] = field(default_factory=dict)
    """Values that were loaded, and of buffers what they hold (`Held`); a key that begins with a buffer ends with it."""
    asked: set[tuple[SSAValue, object]] = field(default_factory=set)

    def add(self, op: Operation) -> SSAValue:
        """Append an operation, give its result."""
        self.block.add_op(op)
        return op.results[0]


@dataclass(frozen=True)
class Address:
    """`base + offset + lane * stride`, or where the lanes do not step evenly `gather`, a vector of positions.

    `near` are how far these are from lane 0, where that is always the same. `multiple` is what the position of lane 0
    is known to be a multiple of; 0 where it is always 0.
    """

    base: SSAValue
    offset: int
    stride: int
    gather: SSAValue | None = None
    multiple: int = 1
    near: tuple[int, ...] | None = None


class Addresses(LoopValues):
    """The scopes that are open, the value of every loop around, and index arithmetic in them.

    A loop has a constant value, a `Known` value, or is the one whose iterations are lanes. `known` are the conditions
    that hold in what is being written.
    """

    def __init__(self, entry: Block) -> None:
        super().__init__()
        self.scopes = [Scope(entry)]
        self.lane: str | None = None
        self.lanes = 1
        self.known: frozenset[IndexExpr] = frozenset()
        self.cuts: tuple[Cut, ...] = ()
        """Those that the tile has which is being written."""
        self._positions: dict[SSAValue, IndexExpr] = {}
        self._wide: set[str] = set()
        """Positions that were read, of which each lane has its own."""

    @property
    def here(self) -> Scope:
        return self.scopes[-1]

    def constant(self, value: int) -> SSAValue:
        """An index constant, at the entry."""
        return self._once(0, ("constant", value), lambda: _index_constant(value))

    def _once(self, depth: int, key: object, make: object) -> SSAValue:
        scope = self.scopes[depth]
        known = scope.values.get(key)
        if known is None:
            known = scope.values[key] = scope.add(make())  # type: ignore[operator]
        return known

    # -- addresses ----------------------------------------------------------------------------------------------------

    def address(self, expr: IndexExpr, step: int | None = 0, swizzle: Swizzle | None = None) -> Address:
        """The address of a flat position that grows by `step` from lane to lane; None where each has its own.

        In a buffer with a swizzle a vector lies in one chunk. PassFailedException where the position grows otherwise.
        """
        expr = self.fixed(expr)
        if step is None:
            assert swizzle is None, "lanes that are scattered over chunks are copies"
            return Address(self.constant(0), 0, 0, self.vector(expr), near=self._near(expr))
        if swizzle is not None:
            expr = self._first_lane(expr, step)
            multiple = gcd(expr.const, *(c for _, c in expr.terms))
            rest, value = self._swizzled(expr, swizzle)
            return Address(value, rest.const, step, None, gcd(multiple, swizzle.chunk))
        key = (expr.terms, self.lane, step)
        place = self.here.places.get(key)
        if place is None:
            first = self._first_lane(expr, step)
            base = self.scalar(IndexExpr(first.terms, 0))
            place = base, first.const - expr.const, gcd(*(c for _, c in first.terms))
            if len(first.terms) > 1:  # as `_sum` keeps it
                self.here.places[key] = place
        base, more, multiple = place
        return Address(base, expr.const + more, step, None, gcd(expr.const + more, multiple))

    def _near(self, expr: IndexExpr) -> tuple[int, ...] | None:
        """Distances of lanes from the first one; None where they depend on loops."""
        assert self.lane is not None
        if any(not self._wide.isdisjoint(atom_axes(atom)) for atom, _ in expr.terms):
            return None
        return lane_distances(expr, self.lane, constant(0), self.lanes)

    def _first_lane(self, expr: IndexExpr, step: int) -> IndexExpr:
        """The position of lane 0."""
        if self.lane is None:
            return expr
        if lane_step(expr, self.lane) != step:
            rule = f"lanes of loop '{self.lane}' are at {expr}, which is not {step} apart from lane to lane"
            raise PassFailedException(f"lw-write-kernel: {rule}")
        return expr - IndexExpr(((self.lane, step),), 0) if step else expr

    def position(self, value: SSAValue, extent: int) -> IndexExpr:
        """A name for an index in `[0, extent)` that was computed here, one in each lane or one for all."""
        found = self._positions.get(value)
        if found is None:
            name = f"?{len(self._positions)}"
            self.env[name] = Known(value, len(self.scopes) - 1)
            self.ranges[name] = (0, extent - 1)
            if isinstance(value.type, VectorType):
                self._wide.add(name)
            found = self._positions[value] = axis(name)
        return found

    def _swizzled(self, expr: IndexExpr, swizzle: Swizzle) -> tuple[IndexExpr, SSAValue]:
        """A position without its chunk, and the value of where it lies, but for the constant part of the former."""
        chunk = self.fixed(expr // swizzle.chunk % swizzle.chunks)
        row = self.fixed(expr // swizzle.row % swizzle.chunks)
        rest = self.fixed(expr - chunk * swizzle.chunk)
        start, depth = self._sum(IndexExpr(rest.terms, 0))
        (first, at), (second, below) = self._sum(chunk), self._sum(row)
        depth, within = max(depth, at, below), max(at, below)
        turned = self._once(within, ("xor", chunk, row), lambda: _index_op(arith.XOrIOp, first, second))
        by = self.constant(swizzle.chunk)
        moved = self._once(within, ("xor", chunk, row, swizzle.chunk), lambda: _index_op(arith.MuliOp, turned, by))
        key = ("swizzled", IndexExpr(rest.terms, 0), chunk, row)
        return rest, self._once(depth, key, lambda: _index_op(arith.AddiOp, start, moved))

    def scalar(self, expr: IndexExpr) -> SSAValue:
        """The value of an expression in which no lane occurs."""
        return self._sum(expr)[0]

    def depth_of(self, atom: Atom) -> int:
        """The depth of the scope where an atom is known."""
        if isinstance(atom, str):
            value = self.env.get(atom)
            return value.depth if isinstance(value, Known) else 0
        return max((self.depth_of(name) for name in atom_axes(atom)), default=0)

    def _sum(self, expr: IndexExpr) -> tuple[SSAValue, int]:
        """The value of an expression, and the depth of the scope where it is known.

        A sum of several terms has a value for its scope, as `_added_up` keeps it by its terms. One of a single term may
        be a loop that has another constant in each copy.
        """
        if not expr.terms:
            return self.constant(expr.const), 0
        if len(expr.terms) == 1:
            return self._added_up(expr)
        sums, key = self.here.sums, (expr.terms, expr.const)
        found = sums.get(key)
        if found is None:
            found = sums[key] = self._added_up(expr)
        return found

    def _added_up(self, expr: IndexExpr) -> tuple[SSAValue, int]:
        terms = expr.terms
        if len(terms) > 1:
            terms = tuple(sorted(terms, key=lambda t: self.depth_of(t[0])))
        total: SSAValue | None = None
        depth = 0
        done: tuple[object, ...] = ()
        if expr.const:
            total, done = self.constant(expr.const), (expr.const,)
        for atom, c in terms:
            value, at = self._scaled(atom, c)
            depth = max(depth, at)
            done = (*done, (atom, c))
            if total is None:
                total = value
                continue
            before = total
            total = self._once(depth, done, lambda a=before, b=value: _index_op(arith.AddiOp, a, b))
        assert total is not None
        return total, depth

    def _scaled(self, atom: Atom, factor: int) -> tuple[SSAValue, int]:
        value, depth = self._atom(atom)
        if factor == 1:
            return value, depth
        by = self.constant(factor)
        return self._once(depth, ("scaled", atom, factor), lambda: _index_op(arith.MuliOp, value, by)), depth

    def _atom(self, atom: Atom) -> tuple[SSAValue, int]:
        if isinstance(atom, str):
            known = self.env[atom]
            if isinstance(known, int):
                return self.constant(known), 0
            return known.value, known.depth
        assert not isinstance(atom, Lookup), "a position gets a name when it is read"
        inner, depth = self._sum(atom.expr)
        lowest, _ = atom.expr.bounds(self.ranges)
        return self._quotient(atom, inner, depth, lowest, self.constant), depth

    def _quotient(
        self, atom: Div | Mod, inner: SSAValue, depth: int, lowest: int, constant: Callable[[int], SSAValue]
    ) -> SSAValue:
        """Divide, as unsigned numbers: a multiple of the divisor is added where the expression may be negative."""
        by = constant(atom.divisor)
        whole = max(0, -(lowest // atom.divisor))
        value = inner
        if whole:
            raised = ("raised", atom.expr, whole * atom.divisor, inner.type)
            more = constant(whole * atom.divisor)
            value = self._once(depth, raised, lambda: _index_op(arith.AddiOp, inner, more))
        if isinstance(atom, Mod):
            return self._once(depth, ("atom", atom, inner.type), lambda: _index_op(arith.RemUIOp, value, by))
        key = ("atom", atom, whole, inner.type)
        quotient = self._once(depth, key, lambda: _index_op(arith.DivUIOp, value, by))
        if not whole:
            return quotient
        less = constant(whole)
        return self._once(depth, ("atom", atom, inner.type), lambda: _index_op(arith.SubiOp, quotient, less))

    # -- lanes --------------------------------------------------------------------------------------------------------

    def splat(self, value: SSAValue, depth: int | None = None) -> SSAValue:
        """A scalar in every lane."""
        wide = vector_of(value.type, self.lanes)
        at = len(self.scopes) - 1 if depth is None else depth
        return self._once(at, ("splat", value, self.lanes), lambda: broadcast(value, wide))

    def vector(self, expr: IndexExpr) -> SSAValue:
        """The values of an expression in all lanes, as a vector of index."""
        return self._vector_sum(expr)[0]

    def _vector_sum(self, expr: IndexExpr) -> tuple[SSAValue, int]:
        assert self.lane is not None
        own = self._wide | {self.lane}
        plain = IndexExpr(tuple(t for t in expr.terms if own.isdisjoint(atom_axes(t[0]))), expr.const)
        varying = [t for t in expr.terms if not own.isdisjoint(atom_axes(t[0]))]
        start, depth = self._sum(plain)
        total = self.splat(start, depth)
        done: tuple[object, ...] = ("vector", plain)
        for atom, c in varying:
            value, at = self._vector_atom(atom)
            depth = max(depth, at)
            if c != 1:
                by = self.splat(self.constant(c), 0)
                value = self._once(
                    depth, ("scaled", atom, c, self.lanes), lambda v=value, b=by: _index_op(arith.MuliOp, v, b)
                )
            done = (*done, (atom, c))
            before = total
            total = self._once(depth, (done, self.lanes), lambda a=before, b=value: _index_op(arith.AddiOp, a, b))
        return total, depth

    def _vector_atom(self, atom: Atom) -> tuple[SSAValue, int]:
        if isinstance(atom, str):
            if atom in self._wide:
                return self._atom(atom)
            wide = vector_of(INDEX, self.lanes)
            return self._once(0, ("lanes", self.lanes), lambda: LanesOp(wide)), 0
        assert not isinstance(atom, Lookup), "a position gets a name when it is read"
        inner, depth = self._vector_sum(atom.expr)
        lowest, _ = atom.expr.bounds(self.ranges)
        return self._quotient(atom, inner, depth, lowest, lambda n: self.splat(self.constant(n), 0)), depth

    # -- conditions ---------------------------------------------------------------------------------------------------

    def test(self, expr: IndexExpr) -> IndexExpr:
        """An expression that is not negative just where `expr` is not: without the lane, where lanes agree."""
        expr = self.fixed(expr)
        for cut in self.cuts:
            expr = cut.told(expr)
        return expr if self.lane is None else same_for_lanes(expr, self.lane, self.lanes)

    def holds(self, expr: IndexExpr) -> bool | None:
        """The truth of `expr >= 0`; None where it is not known now."""
        return self._known_truth(expr)[0]

    def _known_truth(self, expr: IndexExpr) -> tuple[bool | None, IndexExpr]:
        """The truth of `expr >= 0` where it is known, and what is tested for it."""
        expr = self.test(expr)
        lowest, highest = expr.bounds(self.ranges)
        return (lowest >= 0 if lowest >= 0 or highest < 0 else None), expr

    def condition(self, expr: IndexExpr) -> SSAValue | bool:
        """The truth of `expr >= 0`: known now, one value for all lanes, or a mask."""
        known, expr = self._known_truth(expr)
        if known is not None:
            return known
        if self.lane is None or self.lane not in expr.axes():
            value, depth = self._sum(expr)
            zero = self.constant(0)
            return self._once(depth, ("holds", value), lambda: _at_least(value, zero))
        if expr.is_linear_in(self.lane):
            step = expr.coefficient(self.lane)
            start, depth = self._sum(expr - IndexExpr(((self.lane, step),), 0))
            return self._once(depth, ("mask", start, step, self.lanes), lambda: MaskOp(start, step, self.lanes))
        wide, depth = self._vector_sum(expr)
        zeros = self.splat(self.constant(0), 0)
        return self._once(depth, ("mask", wide), lambda: CompareOp("sge", wide, zeros))

    def conjunction(self, parts: list[SSAValue], wide: bool) -> SSAValue | None:
        """Conjunction of the conditions, as a mask where `wide`; None where there are none.

        What is the same for all lanes is joined first, so that a mask of such alone is one value in every lane.
        """
        same = self._all_of([p for p in parts if not isinstance(p.type, VectorType)], 1)
        if not wide:
            return same
        apart: list[SSAValue] = [p for p in parts if isinstance(p.type, VectorType)]
        return self._all_of(apart if same is None else [self.splat(same), *apart], self.lanes)

    def _all_of(self, parts: list[SSAValue], lanes: int) -> SSAValue | None:
        total: SSAValue | None = None
        for part in parts:
            if total is None:
                total = part
                continue
            op = arith.AndIOp.create(operands=[total, part], result_types=[mask_type(lanes)])
            key = ("and", total, part)
            total = self._once(len(self.scopes) - 1, key, lambda o=op: o)
        return total


def broadcast(value: SSAValue, wide: Attribute) -> Operation:
    """A scalar in every lane of the vector type."""
    return vector.BroadcastOp.create(operands=[value], result_types=[wide])


def _index_constant(value: int) -> Operation:
    return arith.ConstantOp.create(result_types=[INDEX], properties={"value": _index_attr(value)})


@lru_cache(maxsize=4096)
def _index_attr(value: int) -> IntegerAttr[IndexType]:
    """An index as an attribute, which takes longer to make than an operation."""
    return IntegerAttr(value, INDEX)


def _at_least(a: SSAValue, b: SSAValue) -> Operation:
    return arith.CmpiOp.create(operands=[a, b], result_types=[i1], properties={"predicate": SIGNED_AT_LEAST})


def _index_op(kind: type[Operation], a: SSAValue, b: SSAValue) -> Operation:
    return kind.create(operands=[a, b], result_types=[a.type])
