"""Plans of blocks: addresses and conditions as expressions over the loops, read once for all instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.attributes import IndicesAttr
from ...dialects.cached_property import cached_property
from ...dialects.index import Atom, Div, IndexExpr, Mod, Ranges, axis, constant
from ...dialects.lookups import looked_up
from ...dialects.loop import BlockOp, ForOp, LoadOp, is_bound
from ...dialects.loop_lanes import Lanes, LanesAttr
from ...dialects.loop_notes import PREFETCH, PREFETCH_PANEL
from ...dialects.te import IndexOp, PredicateOp
from ..analysis.nest import buffer_name, loops_reduced, ranges_of
from ..analysis.panels import Panel, panel_of
from ..analysis.placement import Placement, in_bounds
from ..analysis.vanishing import added_where
from ._chosen_values import questions_of
from ._run_ahead import BEYOND, BULK


@dataclass(frozen=True)
class Access:
    """A load or store of a block, over the loops: the element's indices, its flat position, and when it is read.

    `lanes` are the elements that the lanes of a loop touch, where it is in one and that is decided.
    """

    place: Placement
    buffer: SSAValue
    indices: tuple[IndexExpr, ...]
    offset: IndexExpr
    where: tuple[IndexExpr, ...]
    lanes: Lanes | None
    positions: tuple[SSAValue, ...] = ()
    """The values of the body that are positions in the buffer, which the indices leave open."""

    def placed(self, positions: Mapping[int, IndexExpr]) -> Access:
        """The same where the positions are known."""
        indices = tuple(looked_up(e, positions) for e in self.indices)
        return replace(self, indices=indices, offset=looked_up(self.offset, positions), positions=())


class BlockPlan:
    """The addresses and conditions of a block as expressions over the loops, which all of its instances share."""

    def __init__(self, block: BlockOp, placements: Mapping[SSAValue, Placement]) -> None:
        bound = block.bound
        self.block = block
        self.name = block.block_name
        self.ops = list(block.body.block.ops)
        self.conditions = block.conditions
        self.loads: dict[Operation, Access] = {}
        self.indices: dict[Operation, tuple[IndexExpr, ...]] = {}
        for op in self.ops:
            if isinstance(op, LoadOp):
                place = placements[op.buffer]
                at = tuple(_where_run(block, e.substitute(bound)) for e in op.indices.data)
                where = tuple(e.substitute(bound) for e in op.conditions)
                positions = tuple(op.positions)
                self.loads[op] = Access(place, op.buffer, at, place.offset(at), where, _lanes(op.lanes), positions)
            elif isinstance(op, IndexOp):
                self.indices[op] = (op.value.substitute(bound),)
            elif isinstance(op, PredicateOp):
                self.indices[op] = tuple(e.substitute(bound) for e in op.where.data)
        self.writes: list[Access] = []
        self.edges: set[IndexExpr] = set()
        self._known_edges: dict[IndexExpr, bool] = {}
        for output, write, lanes in zip(block.outputs, block.write_indices, block.write_lanes, strict=True):
            place = placements[output]
            at = tuple(e.substitute(bound) for e in write)
            self.writes.append(Access(place, output, at, place.offset(at), (), _lanes(lanes)))
            if not place.is_argument:
                for e, n in zip(at, place.shape, strict=True):
                    self.edges |= {e, n - 1 - e, *_edges_of_quotient(e, n)}
        beyond = block.notes.get(BEYOND)
        if isinstance(beyond, IndicesAttr):
            self.edges |= set(beyond.data)
        self.reduce_loops = reduce_loops(block)
        self.fused = _fused_products(block)
        self.questions = questions_of(self.ops)
        self.tests = tuple(dict.fromkeys(c for load in self.loads.values() for c in load.where))
        asking = [x for x in block.enclosing_loops if x.annotations is not None and PREFETCH in x.annotations.data]
        loads = self.loads.items() if asking else ()
        self.ahead = {op: found for op, load in loads if (found := _ahead(asking, op, load)) is not None}
        self.panels = self._panels()

    @cached_property
    def added(self) -> tuple[IndexExpr, ...]:
        """The conditions without which an instance adds nothing."""
        return added_where(self.block)

    def _panels(self) -> dict[Operation, Panel]:
        """The panels that are asked for ahead, by the load that reads them."""
        found: dict[Operation, Panel] = {}
        for loop in self.block.enclosing_loops:
            wanted = loop.notes.get(PREFETCH_PANEL)
            names = {name.data for name in wanted} if isinstance(wanted, ArrayAttr) else ()
            for op, load in self.loads.items():
                if isinstance(op, LoadOp) and buffer_name(op.buffer) in names:
                    panel = panel_of(self.block, op, loop, load.offset)
                    if panel is not None:
                        found[op] = panel
        return found

    def is_edge(self, condition: IndexExpr) -> bool:
        """True for a condition that only keeps what is written inside of a buffer."""
        found = self._known_edges.get(condition)
        if found is None:
            found = condition in self.edges or _lowest_terms(condition) in self.edges or self._ends_quotient(condition)
            self._known_edges[condition] = found
        return found

    def _ends_quotient(self, condition: IndexExpr) -> bool:
        """True for a condition that keeps a quotient, an index in simpler terms, below its end.

        `195 - i * 7 - j >= 0` keeps `i floordiv 2`, one of 14, there: it is `(i * 7 + j) floordiv 14` for j below 7.
        """
        ranges = ranges_of(self.block.enclosing_loops)
        place = constant(condition.const) - condition
        for write in self.writes:
            for index, extent in zip(write.indices, write.place.shape, strict=True):
                divisor, rest = divmod(condition.const + 1, extent)
                if rest or divisor < 2 or write.place.is_argument:
                    continue
                if (place // divisor).simplify(ranges) == index.simplify(ranges):
                    return True
        return False

    def may_overshoot(
        self, conditions: Iterable[IndexExpr], ranges: Ranges, settled: Callable[[IndexExpr], IndexExpr]
    ) -> bool:
        """True where running beyond edges fills registers that nobody reads, from memory that is there.

        Loops have values in `ranges`; `settled` simplifies positions by what else is known of them.
        """
        if any(w.place.scope != "local" for w in self.writes) or not all(map(self.is_edge, conditions)):
            return False
        accesses = (*self.loads.values(), *self.writes)
        return all(in_bounds(settled(a.offset), (), a.place, ranges, frozenset()) for a in accesses)


def _where_run(block: BlockOp, index: IndexExpr) -> IndexExpr:
    """An index without remainders that a block's conditions make needless.

    `(i * 16 + j) mod 131` of loops of 9 and 16 is `i * 16 + j` where `130 - i * 16 - j >= 0`, as in a row's tail. Lanes
    are then in rows; threads of a GPU are left their remainders.
    """
    if not block.conditions or not any(isinstance(atom, Mod) for atom, _ in index.terms):
        return index
    ranges = ranges_of(block.enclosing_loops)
    if any(map(is_bound, block.enclosing_loops)) or not index.axes() <= ranges.keys():
        return index

    def most(expr: IndexExpr) -> int | None:
        """The largest value that conditions leave, of a place or its quotient; None where they say nothing of it."""
        limits = []
        for condition in block.conditions:
            place = constant(condition.const) - condition
            for divisor in (1, *(atom.divisor for atom, _ in expr.terms if isinstance(atom, Div))):
                rest = (expr - place // divisor).simplify(ranges)
                if rest.is_constant:
                    limits.append(condition.const // divisor + rest.const)
        return min(limits, default=None)

    def settled(atom: Atom) -> IndexExpr | Atom:
        if not isinstance(atom, Mod) or atom.expr.bounds(ranges)[0] < 0:
            return atom
        limit = most(atom.expr)
        return atom if limit is None or limit >= atom.divisor else atom.expr

    found = constant(index.const)
    for atom, factor in index.terms:
        value = settled(atom)
        found += (value if isinstance(value, IndexExpr) else IndexExpr(((value, 1),), 0)) * factor
    return found


def _edges_of_quotient(index: IndexExpr, extent: int) -> list[IndexExpr]:
    """The condition that keeps a quotient, an index of so many, below its end: `x <= n * d - 1` for `x floordiv d`.

    It is the tail of what was fused before it was split.
    """
    if len(index.terms) != 1:
        return []
    ((quotient, factor),) = index.terms
    if not isinstance(quotient, Div) or factor != 1:
        return []
    return [_lowest_terms((extent - index.const) * quotient.divisor - 1 - quotient.expr)]


def _lowest_terms(condition: IndexExpr) -> IndexExpr:
    """The same condition `>= 0` with factors that have no common divisor."""
    shared = gcd(*(c for _, c in condition.terms))
    if shared <= 1:
        return condition
    return IndexExpr(tuple((atom, c // shared) for atom, c in condition.terms), condition.const // shared)


def _lanes(lanes: LanesAttr | None) -> Lanes | None:
    return lanes.data if lanes is not None else None


def load_conditions(block: BlockOp) -> tuple[IndexExpr, ...]:
    """The conditions under which loads of a block read, over the loops around it, where threads test them."""
    padded = [op for op in block.loads if op.conditions and BULK not in block.notes]
    bound = block.bound if padded else {}
    return tuple(dict.fromkeys(c.substitute(bound) for op in padded for c in op.conditions))


def reduce_loops(block: BlockOp) -> set[str]:
    """The loops of more than one iteration that a block reduces over."""
    once = {loop.loop_name for loop in block.enclosing_loops if loop.size == 1}
    return loops_reduced(block) - once


def _ahead(loops: Sequence[ForOp], op: Operation, access: Access) -> IndexExpr | None:
    """Return the position of the line that the loops around ask for beside a load; None where none does."""
    assert isinstance(op, LoadOp)
    for loop in loops:
        wanted, name = loop.notes.get(PREFETCH), loop.loop_name
        distance = wanted.data.get(buffer_name(op.buffer)) if isinstance(wanted, DictionaryAttr) else None
        if isinstance(distance, IntegerAttr) and name in access.offset.axes() and not access.positions:
            return access.offset.substitute({name: axis(name) + distance.value.data})
    return None


def _fused_products(block: BlockOp) -> dict[SSAValue, tuple[SSAValue, SSAValue]]:
    """Yielded products of floats that a sum can take as a fused multiply-add: value -> its factors."""
    if block.combiner.data != "add":
        return {}
    found = {}
    for value in block.yielded:
        op = value.owner
        if isinstance(op, arith.MulfOp) and len(list(value.uses)) == 1:
            found[value] = (op.lhs, op.rhs)
    return found
