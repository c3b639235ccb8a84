"""Blocks that pick their arithmetic by position, as the transforms of Winograd's convolution do, and chains of them.

Such a block writes out the product with a small constant matrix, a selection on an iterator choosing the row. Where the
loop over that iterator is unrolled, the selections and all products with zero are gone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ...dialects.index import IndexExpr, Mod, axis
from ...dialects.loop import BlockOp, LoadOp
from ...dialects.te import PredicateOp
from ...passes.analysis.access import consumers, is_argument, writers
from ..sketch.draft import Draft
from .chains import unscheduled

MOST_POSITIONS = 8
"""Iterators of larger extent are not unrolled: Winograd's tiles have up to 8 positions along an axis. With 4 and 16
none of 58 default schedules changes (Zen 3)."""
FEWEST_READS = 3
"""Elements of one buffer that a block must read to count: with fewer there is little to save. With 2 and 6 none of 58
default schedules changes (Zen 3)."""


def picked_axes(block: BlockOp) -> set[str]:
    """The small iterators whose value decides what a block computes; empty where it is no such block."""
    if block.is_reduction or len(block.outputs) != 1:
        return set()
    if max(Counter(load.buffer for load in block.loads).values(), default=0) < FEWEST_READS:
        return set()
    if sum(op.name in ("arith.addf", "arith.subf", "arith.addi", "arith.subi") for op in block.body.block.ops) < 2:
        return set()
    extents = {a.name: a.extent for a in block.axes}
    found: set[str] = set()
    for op in block.body.block.ops:
        if isinstance(op, PredicateOp):
            found |= {n for e in op.where.data for n in e.axes()}
    written = {e.as_axis() for e in block.write_indices[0]}
    return {n for n in found if 1 < extents[n] <= MOST_POSITIONS and n in written}


@dataclass(frozen=True)
class PickChain:
    """Blocks that read one another, the first one last, all to be computed for some iterators of `final` at once.

    `tiles` are those iterators with the part of them that is inside: all of it, or 1 in so many.
    """

    members: tuple[str, ...]
    final: str
    tiles: tuple[tuple[str, int], ...]


def pick_chains(draft: Draft) -> list[PickChain]:
    """Return the chains of blocks that nobody has scheduled, in program order."""
    waiting = unscheduled(draft)
    picking = [b for b in waiting if picked_axes(b)]
    chains = []
    for last in picking:
        readers = consumers(last)
        if len(readers) == 1 and readers[0] in picking:
            continue
        members = _chain_to(last, picking)
        carried = _carried(members)
        gather = (
            readers[0] if len(readers) == 1 and readers[0] in waiting and not is_argument(last.outputs[0]) else None
        )
        tiles = _gathered(last, carried, gather) if gather is not None else None
        names = tuple(b.block_name for b in members)
        if gather is not None and tiles is not None:
            chains.append(PickChain(names, gather.block_name, tiles))
        else:
            extents = {a.name: a.extent for a in last.axes}
            inside = tuple((n, extents[n]) for n in _in_order(last, carried))
            chains.append(PickChain(names[1:], names[0], inside))
    return chains


def _chain_to(last: BlockOp, picking: list[BlockOp]) -> list[BlockOp]:
    """The blocks from `last` back to the first that only this chain reads."""
    members = [last]
    while True:
        found = {w: None for load in members[-1].loads for w in writers(load.buffer) if w in picking}
        before = [w for w in found if consumers(w) == [members[-1]]]
        if len(before) != 1:
            return members
        members.append(before[0])


def _carried(members: list[BlockOp]) -> set[str]:
    """The iterators of the last block that it picks by, or that an earlier one picked by."""
    inside: set[str] = set()
    for block in reversed(members):
        inside = {n for n in inside if n in {a.name for a in block.axes}} | picked_axes(block)
        position = members.index(block)
        if position:
            inside = _seen_by(members[position - 1], block, inside)
    return inside


def _seen_by(reader: BlockOp, block: BlockOp, inside: set[str]) -> set[str]:
    """The iterators of `reader` that run over dimensions that `block` writes at iterators of `inside`."""
    dims = [d for d, e in enumerate(block.write_indices[0]) if e.as_axis() in inside]
    loads = [load for load in reader.loads if load.buffer is block.outputs[0]]
    return {n for load in loads for d in dims if (n := load.indices.data[d].as_axis()) is not None}


def _gathered(last: BlockOp, inside: set[str], reader: BlockOp) -> tuple[tuple[str, int], ...] | None:
    """The iterators of a reader that takes tiles apart, `t[y mod 4, x mod 4, ...]`, with the tiles' sizes."""
    if reader.is_reduction or len(reader.outputs) != 1 or any(e.as_axis() is None for e in reader.write_indices[0]):
        return None
    loads = [load for load in reader.loads if load.buffer is last.outputs[0]]
    dims = [d for d, e in enumerate(last.write_indices[0]) if e.as_axis() in inside]
    extents = {a.name: a.extent for a in last.axes}
    sizes = [extents[str(last.write_indices[0][d].as_axis())] for d in dims]
    if len(loads) != 1 or loads[0].conditions or not dims:
        return None
    tiles = [_remainder(loads[0], d, size) for d, size in zip(dims, sizes, strict=True)]
    if any(n is None for n in tiles):
        return None
    return tuple((n, size) for n, size in zip(tiles, sizes, strict=True) if n is not None)


def _remainder(load: LoadOp, dimension: int, size: int) -> str | None:
    """The iterator `x` of an index `x mod size`."""
    index = load.indices.data[dimension]
    for name in index.axes():
        if index == IndexExpr(((Mod(axis(name), size), 1),), 0):
            return name
    return None


def _in_order(block: BlockOp, names: set[str]) -> list[str]:
    return [a.name for a in block.axes if a.name in names]
