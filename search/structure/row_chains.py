"""Chains of reductions on a CPU: blocks that are computed together for some axes of the last one, its rows.

Rows need not be the leading axes: the mean of an image in NCHW goes over the trailing two, softmax over channels keeps
the axes around them. Where what stays is contiguous, strips of it are rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ..sketch.draft import Draft
from .chains import chain_to, unscheduled
from .strides import lanes_of_block, nearly_in_rows

TASKS_A_CORE = 4
"""Rows, or strips, that each core should get at least where it is not only the last axis that is reduced over. A
choice: the last rows to end keep no core waiting for more than a quarter of the time."""
NARROWEST = 4
"""Vectors side by side in a strip for which its columns are still read in stretches of some length. With 2 and 8 none
of 58 default schedules changes (Zen 3)."""


@dataclass(frozen=True)
class RowChain:
    """Blocks in program order, of which the last one stays and the others move to it.

    `rows` are axes of the last block that all of them share; `column` is a further one, of which a strip is taken at a
    time; empty where there is none. `points` is how many elements a row holds for each column, at most: 1 where all
    that is as long as the row is reduced at once.
    """

    names: tuple[str, ...]
    rows: tuple[str, ...]
    column: str = ""
    points: int = 1


@dataclass
class _Growing:
    """A chain on its way: for each block, which of its axes are which axes of the last one, and those all share."""

    last: BlockOp
    target: Target
    axes: dict[str, dict[str, str]]
    shared: set[str]

    def admits(self, block: BlockOp, readers: Sequence[BlockOp]) -> bool:
        """Take a block if enough rows are left."""
        if len(block.outputs) != 1 or not _plain_axes(block):
            return False
        known = _known_axes(self, block, readers)
        shared = self.shared & set(known.values())
        if not shared or not _enough(self.last, shared, self.target):
            return False
        self.axes[block.block_name] = {own: n for own, n in known.items() if n in shared}
        self.shared = shared
        return True


def next_row_chain(draft: Draft, target: Target) -> RowChain | None:
    """The last group of blocks that nobody has scheduled, ends in one block and holds a reduction."""
    waiting = unscheduled(draft)
    for last in reversed(waiting):
        found = _chain_to(last, waiting[: waiting.index(last)], target)
        if found is not None:
            return found
    return None


def _chain_to(last: BlockOp, before: Sequence[BlockOp], target: Target) -> RowChain | None:
    plain = _plain_axes(last)
    growing = _Growing(last, target, {last.block_name: {n: n for n in plain}}, set(plain))
    blocks = chain_to(last, before, growing.admits)
    if len(blocks) > 1 and any(b.is_reduction for b in blocks):
        chain = _with_rows(blocks, growing, target)
        if chain is not None:
            return chain
    return RowChain((last.block_name,), tuple(plain)) if last.is_reduction else None


def _plain_axes(block: BlockOp) -> list[str]:
    """The axes of the results, in order; none where an index is not just an axis."""
    names = [e.as_axis() for e in block.write_indices[0]]
    return [] if None in names else [n for n in names if n is not None]


def _known_axes(growing: _Growing, block: BlockOp, readers: Sequence[BlockOp]) -> dict[str, str]:
    """Return the axes of a block that are read at one axis of the last block only."""
    found: dict[str, set[str | None]] = {own: set() for own in _plain_axes(block)}
    for reader in readers:
        axes = growing.axes[reader.block_name]
        for load in reader.loads:
            if load.buffer is block.outputs[0]:
                for own, expr in zip(_plain_axes(block), load.indices.data, strict=True):
                    name = expr.as_axis()
                    found[own].add(axes.get(name) if name is not None else None)
    known = {own: next(iter(names)) for own, names in found.items() if len(names) == 1}
    return {own: n for own, n in known.items() if n is not None and list(known.values()).count(n) == 1}


def _enough(last: BlockOp, shared: set[str], target: Target) -> bool:
    """True where the shared axes are all but the last, or have points for every core."""
    extents = {a.name: a.extent for a in last.axes}
    leading = [n for n in _plain_axes(last)[:-1] if extents[n] > 1]
    return set(leading) <= shared or prod(extents[n] for n in shared) >= TASKS_A_CORE * target.cores


def _with_rows(blocks: Sequence[BlockOp], growing: _Growing, target: Target) -> RowChain | None:
    """The chain with its rows chosen; None where fewer blocks at a time are better."""
    last = growing.last
    names = tuple(b.block_name for b in reversed(blocks))
    extents = {a.name: a.extent for a in last.axes}
    rows = [n for n in _plain_axes(last) if n in growing.shared]
    points = max((_points(b, growing) for b in blocks if not b.is_reduction), default=1)
    column = next((n for n in reversed(_plain_axes(last)) if extents[n] > 1), "")
    if column not in rows or not _in_columns(blocks, growing, column):
        return RowChain(names, tuple(rows), "", points)
    rows.remove(column)
    lanes, count = lanes_of_block(last, target), prod(extents[n] for n in rows)
    strips = -(-extents[column] // (NARROWEST * lanes))
    strip_bytes = 4 * points * min(extents[column], NARROWEST * lanes)
    if extents[column] >= lanes // 2 and count * strips >= target.cores and strip_bytes <= 2 * target.l2_bytes:
        return RowChain(names, tuple(rows), column, points)
    if count >= TASKS_A_CORE * target.cores:
        return RowChain(names, tuple(rows), "", points * extents[column])
    return None


def _points(block: BlockOp, growing: _Growing) -> int:
    """Points of a block for each of the rows, one column of a strip."""
    shared = growing.axes[block.block_name]
    return prod(a.extent for a in block.axes if shared.get(a.name) not in growing.shared)


def _in_columns(blocks: Sequence[BlockOp], growing: _Growing, column: str) -> bool:
    """True where all blocks move along a column axis by an element, or a few."""
    for block in blocks:
        own = next((own for own, n in growing.axes[block.block_name].items() if n == column), None)
        if own is None or not nearly_in_rows(block, own):
            return False
    return True
