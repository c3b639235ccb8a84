"""Elements that pass from one thread to another: registers must not hold them, barriers must stand in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.index import IndexExpr, atom_axes, axis
from ...dialects.loop import BlockOp, ForOp
from ..analysis.disjoint import determines
from ..analysis.nest import made_up, ranges_of
from ..analysis.regions import interval_of, union
from ._block_plan import Access, BlockPlan


@dataclass(frozen=True)
class _Use:
    """An element that a block touches, over the loops around the block."""

    plan: BlockPlan
    access: Access
    writes: bool


def passed_on(
    plans: Sequence[BlockPlan],
    sizes: Mapping[str, int],
    joining: Set[BlockPlan] = frozenset(),
    arriving: Sequence[str] = (),
    together: bool = False,
) -> set[tuple[SSAValue, BlockOp, BlockOp]]:
    """The buffers in global memory that two blocks of one launch touch from different threads of a block, with both.

    PassFailedException where the threads are of different blocks, which do not wait for each other, or where what one
    thread writes to a buffer in scope local, its own, is read by another one. `sizes` are those of the launch. Plans
    that are `joining` are run by the last of the blocks along the axes that are `arriving`, or `together` by all.
    """
    found: set[tuple[SSAValue, BlockOp, BlockOp]] = set()
    for a, b in _pairs(plans):
        scope = a.access.place.scope
        ways = [k for k, size in sizes.items() if size > 1 and not (scope == "shared" and k.startswith("threadIdx"))]
        joined = [use.plan in joining for use in (a, b)]
        if any(joined) and not (together and all(joined)):
            ways = [kind for kind in ways if kind not in arriving]
        kinds = sorted(kind for kind in ways if _crosses(kind, a, b, sizes))
        if not kinds:
            continue
        name = a.access.place.name
        what = f"'{name}' is written by block '{a.plan.name}' and used by block '{b.plan.name}' at another {kinds[0]}"
        if kinds[0].startswith("blockIdx"):
            raise _refusal(f"{what}, and blocks do not wait for each other: keep the two in nests apart, scope global")
        if scope == "local":
            raise _refusal(f"{what}, which has one of its own: give it scope shared (lw-set-scope)")
        found |= {(a.access.buffer, a.plan.block, b.plan.block), (a.access.buffer, b.plan.block, a.plan.block)}
    return found


def _refusal(rule: str) -> PassFailedException:
    return PassFailedException(f"lw-lower-loop-to-kernel: {rule}")


def _pairs(plans: Sequence[BlockPlan]) -> Iterator[tuple[_Use, _Use]]:
    """Each write with what other blocks do to the same buffer; in registers only reads matter."""
    uses: dict[SSAValue, list[_Use]] = {}
    for plan in plans:
        for access, writes in (*((w, True) for w in plan.writes), *((r, False) for r in plan.loads.values())):
            uses.setdefault(access.buffer, []).append(_Use(plan, access, writes))
    for same in uses.values():
        for a in same:
            for b in same:
                if a.writes and a.plan is not b.plan and not (b.writes and a.access.place.scope == "local"):
                    yield a, b


def _crosses(kind: str, a: _Use, b: _Use, sizes: Mapping[str, int]) -> bool:
    """True unless it is shown that threads at one place on axis `kind` only touch what they have both touched."""
    place = a.access.place
    inside, other = _loop_of(kind, a.plan, place.owner), _loop_of(kind, b.plan, place.owner)
    if inside is None and other is None:
        # Each thread fills registers of its own; memory is written by the first one, and read by all that fill theirs.
        above = place.owner is not None and kind in [x.loop_kind for x in _with_around(place.owner)]
        return place.scope == "global" and not above and not b.writes and _fills_registers(b.plan)
    if inside is other:
        return False
    exprs = a.access.indices
    if place.scope != "global":
        mentions = any(kind in e.axes() for e in (*exprs, *a.plan.conditions))
        if inside is None or (not mentions and inside.size == sizes[kind]):
            return False
    if inside is None or other is None:
        return True
    return not _same_place(kind, a, b)


def _fills_registers(plan: BlockPlan) -> bool:
    return all(w.place.scope == "local" for w in plan.writes)


def _loop_of(kind: str, plan: BlockPlan, owner: ForOp | None) -> ForOp | None:
    """The loop on the axis around a block, within the loop that each iteration of which has the buffer."""
    loops = plan.block.enclosing_loops
    inner = loops[loops.index(owner) + 1 :] if owner is not None else loops
    return next((x for x in inner if x.loop_kind == kind), None)


def _with_around(loop: ForOp) -> list[ForOp]:
    found: list[ForOp] = []
    parent: object = loop
    while isinstance(parent, ForOp):
        found.append(parent)
        parent = parent.parent_op()
    return found


def _same_place(kind: str, a: _Use, b: _Use) -> bool:
    """True where one element, touched by `a` and by `b`, is so by threads at one place on the axis."""
    owner = a.access.place.owner
    around = {x.loop_name for x in _with_around(owner)} if owner is not None else set()
    ranges: dict[str, tuple[int, int]] = {}
    for loop in (*a.plan.block.enclosing_loops, *b.plan.block.enclosing_loops):
        if loop.loop_name in around or loop.loop_name == kind:
            low, high = ranges.get(loop.loop_name, (0, 0))
            ranges[loop.loop_name] = (low, max(high, loop.size - 1))
    first, second = (_renamed(use, ranges) for use in (a, b))
    if _alike(kind, first, second, ranges) or _alike(kind, _in_digits(*first), _in_digits(*second), ranges):
        return True
    box: list[IndexExpr] = []
    everywhere = dict(ranges)
    for d, (x, y) in enumerate(zip(first[0], second[0], strict=True)):
        both = union(interval_of(x, first[1]), interval_of(y, second[1]), ranges)
        if both is None:
            return False
        name = made_up("box", d)
        everywhere[name] = (0, both.extent - 1)
        box.append(both.low + axis(name))
    return determines(kind, box, everywhere.keys() - ranges.keys(), everywhere)


Ranged = tuple[list[IndexExpr], dict[str, tuple[int, int]]]
"""Indices, and the ranges of what varies in them."""


def _alike(kind: str, first: Ranged, second: Ranged, ranges: Mapping[str, tuple[int, int]]) -> bool:
    """True where both indices are the same ones, which tell the places on the axis apart."""
    if first[0] != second[0]:
        return False
    everywhere = {**ranges, **first[1], **{n: max(r, first[1].get(n, r)) for n, r in second[1].items()}}
    return determines(kind, first[0], set(everywhere) - set(ranges), everywhere)


def _in_digits(exprs: Sequence[IndexExpr], inner: Mapping[str, tuple[int, int]]) -> Ranged:
    """The indices with neighbouring digits of inner loops as one each: `i * 16 + j floordiv 8 * 8` as `ij * 8`."""
    found: list[IndexExpr] = []
    ranges: dict[str, tuple[int, int]] = {}
    for e in exprs:
        digits = sorted(((c, atom) for atom, c in e.terms if atom_axes(atom) <= inner.keys()), key=lambda d: -d[0])
        joined: list[tuple[int, int]] = []
        for step, atom in digits:
            low, high = IndexExpr(((atom, 1),), 0).bounds(inner)
            if step < 0 or low:
                return list(exprs), dict(inner)
            before = joined.pop() if joined and joined[-1][0] == step * (high + 1) else (step, 1)
            joined.append((step, before[1] * (high + 1)))
        rest = IndexExpr(tuple(t for t in e.terms if not atom_axes(t[0]) <= inner.keys()), e.const)
        ranges |= {name: inner[name] for name in rest.axes() & inner.keys()}
        for step, extent in joined:
            name = made_up("digit", len(ranges))
            ranges[name] = (0, extent - 1)
            rest = rest + axis(name) * step
        found.append(rest)
    return found, ranges


def _renamed(use: _Use, fixed: Mapping[str, object]) -> Ranged:
    """The indices with the loops that are not `fixed` called by the order in which they come, and their ranges."""
    own = ranges_of(use.plan.block.enclosing_loops)
    exprs = [e.simplify(own) for e in use.access.indices]
    names = {n: made_up("inner", k) for k, n in enumerate(_in_order(exprs, own.keys() - fixed.keys()))}
    values = {n: axis(new) for n, new in names.items()}
    return [e.substitute(values) for e in exprs], {new: own[n] for n, new in names.items()}


def _in_order(exprs: Iterable[IndexExpr], names: Iterable[str]) -> list[str]:
    """Names by dimension and stride: what two blocks call by different names comes in the same order."""
    wanted = set(names)
    found: dict[str, None] = {}
    for e in exprs:
        for atom, _ in sorted(e.terms, key=lambda term: -abs(term[1])):
            found |= dict.fromkeys(sorted(atom_axes(atom) & wanted))
    return list(found)
