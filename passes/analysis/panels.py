"""Panels of an operand: the run of elements that several iterations of a loop read before they go on to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from ...dialects.buffers import buffer_shape
from ...dialects.index import Div, IndexExpr, Lookup, axis, constant, flatten
from ...dialects.lookups import lookups_in
from ...dialects.loop import SERIAL, BlockOp, ForOp, LoadOp
from ...dialects.strides import row_major
from .nest import ranges_of


@dataclass(frozen=True)
class Panel:
    """A run of `elements`: that after the one in use begins at `start`, and of it the share from `place` on is due.

    Both are over loops. Shares are of `share` elements at most, one for each iteration of the loops in `place`.
    """

    start: IndexExpr
    place: IndexExpr
    elements: int
    share: int


def panel_of(block: BlockOp, load: LoadOp, loop: ForOp, offset: IndexExpr | None = None) -> Panel | None:
    """The panel that a load reads in an iteration of a loop around its block; None where it is no run of elements.

    None also where the loop does not move it, where the program reads where it begins, and where lanes of a vector are
    in different panels. `offset` is the flat position of the load over the loops, where it is known.
    """
    offset = _offset_of(block, load) if offset is None else offset.simplify(ranges_of(block.enclosing_loops))
    if lookups_in(offset):
        return None
    inside = _inside(block, loop)
    if any(x.loop_kind == "vectorized" for x in block.enclosing_loops if x not in inside):
        return None
    elements, again = _run(offset, inside), _iterations_a_panel(offset, loop.loop_name)
    if elements is None or again is None:
        return None
    first = offset.substitute({x.loop_name: constant(0) for x in inside})
    following = first.substitute({loop.loop_name: axis(loop.loop_name) + again})
    ranges = ranges_of(block.enclosing_loops)
    count, turn = _in_turn([x for x in inside if x.loop_kind == SERIAL], again)
    place = axis(loop.loop_name) % again * (count // again) + turn
    shared = gcd(elements, count)
    place = (place * (elements // shared) // (count // shared)).simplify(ranges)
    return Panel(
        following.simplify(ranges | {loop.loop_name: (0, loop.size + again)}), place, elements, -(-elements // count)
    )


def reads_runs(block: BlockOp, load: LoadOp, loop: ForOp) -> bool:
    """True where what a load reads in an iteration of a loop is a run of elements, whether the loop moves it or not."""
    return _run(_offset_of(block, load), _inside(block, loop)) is not None


def _offset_of(block: BlockOp, load: LoadOp) -> IndexExpr:
    """The flat position of a load over the loops."""
    indices = [e.substitute(block.bound) for e in load.indices.data]
    offset = flatten(indices, row_major(buffer_shape(load.buffer)))
    return offset.simplify(ranges_of(block.enclosing_loops))


def _inside(block: BlockOp, loop: ForOp) -> list[ForOp]:
    """The loops around a block that are in a loop."""
    loops = block.enclosing_loops
    return loops[loops.index(loop) + 1 :]


def _run(offset: IndexExpr, inside: Sequence[ForOp]) -> int | None:
    """The elements that loops move a position over, where these are next to each other; else None."""
    moving = [(loop.size, offset.coefficient(loop.loop_name)) for loop in inside]
    if not all(offset.is_linear_in(loop.loop_name) for loop in inside) or any(step < 0 for _, step in moving):
        return None
    elements = 1 + sum(step * (size - 1) for size, step in moving)
    return elements if elements == prod(size for size, step in moving if step) else None


def _in_turn(loops: Sequence[ForOp], times: int) -> tuple[int, IndexExpr]:
    """Return the iterations of loops, so many times, and the number of one among those of a time."""
    number = constant(0)
    for loop in loops:
        number = number * loop.size + axis(loop.loop_name)
    return times * prod(loop.size for loop in loops), number


def _iterations_a_panel(offset: IndexExpr, loop: str) -> int | None:
    """The iterations of a loop that read from the same place; None where it moves nothing, or by what is looked up."""
    found = 0
    for atom, _ in offset.terms:
        if atom == loop:
            return 1
        if isinstance(atom, str) or loop not in (IndexExpr(((atom, 1),), 0)).axes():
            continue
        inner = None if isinstance(atom, Lookup) else _iterations_a_panel(atom.expr, loop)
        if inner is None:
            return None
        found = gcd(found, inner * (atom.divisor if isinstance(atom, Div) else 1))
    return found or None
