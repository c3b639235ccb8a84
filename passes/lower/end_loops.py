"""End loops: where what a loop adds up is known to get nothing more, it ends before its extent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ...dialects.attributes import IndicesAttr
from ...dialects.index import IndexExpr
from ...dialects.loop import SERIAL, BlockOp, ForOp, blocks_in, loops_in
from ...dialects.loop_steps import names_around
from ..analysis.access import is_argument, is_under, loops_around, shares_a_block
from ..analysis.masked import KEPT
from ..analysis.nest import functions_on_loops, widest_ranges
from ..analysis.regions import interval_of
from ._steps import note_step, require_after
from .start_reductions import StartReductions


@dataclass(frozen=True)
class EndLoops(ModulePass):
    """`for k in 8 { for i in 4 { block r (i = g * 4 + i, reduce k) annotated {kept = (i - k * 4 >= 0)} } }` ->
    `for k in 8 while (g * 4 - k * 4 + 3 >= 0) { ... }`

    A serial loop ends where the reductions that are all that is read of it add nothing from there on: where a condition
    of theirs fails for all of the loops in it. For causal attention that is behind the last block of keys that a tile
    of queries has any of. The end is the same for all threads of a block.

    Requires: the starts of reductions written out (`lw-start-reductions`), which are then before the loop.
    """

    name = "lw-end-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_after(func, self.name, StartReductions.name)
            end_loops(func)


def end_loops(func: FuncOp) -> None:
    """Let the loops of a function end where nothing is added any more, in place."""
    around = {loop: None for block in blocks_in(func) if KEPT in block.notes for loop in loops_around(block)}
    for loop in around:
        if loop.loop_kind == SERIAL and loop.size > 1 and (ends := _ends(loop)):
            loop.ends = IndicesAttr(tuple(ends))
    note_step(func, EndLoops.name)


def _ends(loop: ForOp) -> Sequence[IndexExpr]:
    """The conditions that hold in the first iterations of a loop, and without which one adds nothing."""
    found: list[IndexExpr] | None = None
    for block in blocks_in(loop):
        if _is_read_outside(block, loop):
            here = list(_conditions(block, loop))
            found = here if found is None else [c for c in found if c in here]
    return found or ()


def _is_read_outside(block: BlockOp, loop: ForOp) -> bool:
    """True where others than those in a loop use what a block in it writes."""
    return any(
        is_argument(buffer) or not all(is_under(use.operation, loop) for use in buffer.uses) for buffer in block.outputs
    )


def _conditions(block: BlockOp, loop: ForOp) -> Iterable[IndexExpr]:
    """The conditions on a loop, and on those around it, without which a block adds nothing in an iteration of it."""
    kept = block.notes.get(KEPT)
    if not isinstance(kept, IndicesAttr) or block.has_init or not block.is_reduction:
        return
    name, inside = loop.loop_name, widest_ranges(loops_in(loop))
    around = names_around(loop) - {x.loop_name for x in loops_around(loop) if shares_a_block(x)}
    for condition in kept.data:
        part = interval_of(condition.substitute(block.bound), inside)
        most = part.low + (part.extent - 1)
        if most.is_linear_in(name) and most.coefficient(name) < 0 and most.axes() <= {name, *around}:
            yield most
