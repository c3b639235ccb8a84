"""Chains of stages that each read a neighbourhood of the one before, such as filters of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...dialects.loop import BlockOp, LoadOp
from ...passes.analysis.access import consumers
from ..sketch.draft import Draft
from .chains import chain_to, unscheduled

MOST_WINDOW = 128
"""Terms of a reduction that is cheap enough to be repeated at the edges of tiles. A choice: filters of 11 x 11, and no
reduction over channels."""
FARTHEST_STEP = 2
"""Elements that a stage moves in the one before for one of its own, at most: a filter that halves an image. A choice:
with more, neighbouring tiles share little."""


@dataclass(frozen=True)
class StencilChain:
    """Blocks that read one another, the first one last; all of them are computed for each tile of `final`."""

    members: tuple[str, ...]
    final: str


def neighbours_read(reader: BlockOp, block: BlockOp) -> int:
    """At how many positions a block reads what another one writes."""
    return len({load.indices.data for load in reader.loads if load.buffer in block.outputs})


def stencil_chains(draft: Draft) -> list[StencilChain]:
    """The chains of blocks that nobody has scheduled, as long as they get, each block in one at most."""
    waiting = unscheduled(draft)
    taken: set[BlockOp] = set()
    chains = []
    for final in reversed(waiting):
        if final in taken or final.is_reduction or not _plain(final):
            continue
        members = _behind(final, [b for b in waiting if b not in taken])
        if any(neighbours_read(r, b) > 1 or r.is_reduction for b in members for r in consumers(b)):
            taken |= {final, *members}
            chains.append(StencilChain(tuple(b.block_name for b in members), final.block_name))
    return chains


def _behind(final: BlockOp, waiting: list[BlockOp]) -> list[BlockOp]:
    """Return the blocks that only `final` and those found read, nearby, in the order in which to move them."""

    def admits(block: BlockOp, readers: Sequence[BlockOp]) -> bool:
        near = (_near(load, r) for r in readers for load in _reads(r, block))
        return _plain(block) and _small(block) and all(near)

    return chain_to(final, waiting[: waiting.index(final)], admits)[1:]


def _plain(block: BlockOp) -> bool:
    return len(block.outputs) == 1 and all(e.as_axis() is not None for e in block.write_indices[0])


def _small(block: BlockOp) -> bool:
    """True where computing an element again costs little: at most a small window of what surrounds it is reduced."""
    window = {a.name: a.extent for a in block.axes if a.reduce and a.extent > 1}
    if block.combiner.data == "custom" or prod(window.values()) > MOST_WINDOW:
        return False
    return not any(_contracts(load, set(window)) for load in block.loads)


def _contracts(load: LoadOp, reduced: set[str]) -> bool:
    """True where the block reduces over a whole dimension of what it reads, not over a window along its own axes."""
    alone = any(e.axes() and e.axes() <= reduced for e in load.indices.data)
    return alone and any(e.axes() - reduced for e in load.indices.data)


def _reads(reader: BlockOp, block: BlockOp) -> list[LoadOp]:
    return [load for load in reader.loads if load.buffer in block.outputs]


def _near(load: LoadOp, reader: BlockOp) -> bool:
    """True where a tile of the reader reads a tile about as large: each index moves with one of its own axes."""
    written = {e.as_axis() for e in reader.write_indices[0]}
    extents = {a.name: a.extent for a in reader.axes}
    for expr in load.indices.data:
        moving = [n for n in expr.axes() if n in written]
        if len(moving) > 1 or any(not expr.is_linear_in(n) or abs(expr.coefficient(n)) > FARTHEST_STEP for n in moving):
            return False
        if not moving and prod(extents[n] for n in expr.axes()) > MOST_WINDOW:
            return False
    used = [n for expr in load.indices.data for n in expr.axes() if n in written]
    return len(used) == len(set(used)) and bool(used)
