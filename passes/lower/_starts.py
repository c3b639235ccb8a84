"""The nests that reductions start with, once these are written out: what tells them, and whose they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...dialects.loop import BlockOp, ForOp, IfOp, JoinOp, VersionsOp, blocks_in
from ..analysis.nest import only_child

Nest = ForOp | BlockOp | IfOp | VersionsOp

STARTS = "starts"
"""The annotation of a block that writes what a reduction starts from, by the name of the reduction."""


def is_start(nest: Operation) -> bool:
    """True for the nest of a block that writes what a reduction starts from."""
    inner: Operation | None = nest
    while isinstance(inner, ForOp | IfOp | VersionsOp):
        inner = only_child(inner)
    return isinstance(inner, BlockOp) and STARTS in inner.notes


def starts_before(loop: ForOp) -> list[ForOp | BlockOp]:
    """The starts right before a loop, in order."""
    found: list[ForOp | BlockOp] = []
    nest = loop.prev_op
    while isinstance(nest, ForOp | BlockOp) and is_start(nest):
        found.insert(0, nest)
        nest = nest.prev_op
    return found


def nests_of_launches(func: FuncOp) -> Iterator[list[Nest | JoinOp]]:
    """The outermost nests of a function by launch: each behind what its reductions start with, joined ones behind."""
    nests: list[Nest | JoinOp] = []
    for op in func.body.block.ops:
        if isinstance(op, JoinOp):
            nests.append(op)
        elif isinstance(op, ForOp | BlockOp | IfOp | VersionsOp):
            if nests and _is_whole(nests):
                yield nests
                nests = []
            nests.append(op)
    if nests:
        yield nests


def without_joins(nests: Sequence[Nest | JoinOp]) -> list[Nest]:
    """The nests of a launch alone."""
    return [nest for nest in nests if not isinstance(nest, JoinOp)]


def _is_whole(nests: list[Nest | JoinOp]) -> bool:
    """True for what ends in a nest that is no start: the next one is of another launch."""
    return not isinstance(nests[-1], JoinOp) and not is_start(nests[-1])


def loops_started(func: FuncOp) -> Iterator[tuple[ForOp, ForOp]]:
    """Each loop around a start with the one of the reduction that it is the like of."""
    named = {block.block_name: block for block in blocks_in(func)}
    for block in named.values():
        reduction = block.notes.get(STARTS)
        if isinstance(reduction, StringAttr):
            alike = {loop.loop_name: loop for loop in named[reduction.data].enclosing_loops}
            yield from ((loop, alike[loop.loop_name]) for loop in block.enclosing_loops)
