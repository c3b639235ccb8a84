"""Few long rows of a chain on a GPU: reductions in parts, which the blocks of threads that read results join again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from ...dialects.multiprocessor import VECTOR
from ...dialects.target import Target
from ...passes.analysis.access import consumers
from ...passes.schedule.clone import Clone
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..structure.gpu_chains import GpuChain, chain_of_one
from ._gpu_joined_rows import FEWEST_OF_THREAD, USUAL_THREADS, JoinedRowsPlan, joining_threads, write_joined_rows

BLOCKS_PER_CORE = 4
"""Blocks of threads for each multiprocessor, about: of parts, and in the kernel that writes rows."""
BLOCKS_OF_ROW = (4, 8, 16, 32, 64, 128, 256, 512)
"""Blocks of threads that write a row."""
ELEMENTS_OF_THREAD = 2
"""Elements of a row that a thread writes without a search, at least. A choice: what is joined again for them is a load
and five shuffles of each reduction."""
LEAST_THREADS = 64
"""Threads of a block, at least: with 32 they join parts in turns. On an H200 softmax of one row of 32000 takes 6.0 us
where blocks of 256 threads write, 8.6 of 64, 12.2 of 32."""


@dataclass(frozen=True)
class Divided:
    """A reduction that was divided: `made` computes its parts, over `loops`, with so many threads a part.

    `part` is the loop over parts of the block that joins them.
    """

    made: str
    part: str
    loops: tuple[str, ...]
    threads: Hole


def write_folded_parts(draft: Draft, chain: GpuChain, divided: Callable[[str], Divided], target: Target) -> None:
    """Schedule a chain whose reductions all have named combiners, as one kernel for each of them and one for its rows.

    `divided` divides a reduction. What a kernel reads of the ones before are parts, which each of its blocks joins:
    that takes no kernels of their own, and no block waits for another one.
    """
    parts: dict[str, str] = {}
    for name in chain.reductions:
        made = divided(name)
        joined = _joined_for(draft, parts, made.made)
        one = replace(chain_of_one(draft.block(made.made)), reductions=(*joined, made.made))
        known = {made.made: [*made.loops], **joined}
        write_joined_rows(draft, JoinedRowsPlan(one, made.threads), known)
        parts[name] = made.part
    last = chain.last
    joined = _joined_for(draft, parts, last)
    if last in parts:
        joined[last] = [parts[last]]
    threads = _threads(draft, chain, target)
    within: tuple[str, ...] = ()
    vector = 1
    if chain.within:
        row = draft.fuse(last, [n for n in draft.loops(last) if n in chain.within])
        blocks = _blocks(draft, chain, target, threads)
        draft.add(blocks)
        within = tuple(draft.split(last, row, (blocks, 0))[1:])
        vector = _vector(draft, chain, threads, blocks)
    rows = replace(chain, reductions=tuple(joined), repeated=(), within=within)
    write_joined_rows(draft, JoinedRowsPlan(rows, threads, vector=vector), joined)


def _joined_for(draft: Draft, parts: dict[str, str], reader: str) -> dict[str, list[str]]:
    """The blocks that join parts for one reader, which is their only one, with the loops over parts."""
    found: dict[str, list[str]] = {}
    for name, part in parts.items():
        readers = [block.block_name for block in consumers(draft.block(name))]
        if reader not in readers:
            continue
        own = name if len(readers) == 1 else f"{name}_for_{reader}"
        if own != name:
            draft.do(Clone, block=name, reader=reader, label=own)
        found[own] = [part]
    return found


def _elements(draft: Draft, chain: GpuChain) -> tuple[int, int]:
    """Rows, and elements of each that the last block writes."""
    extents = {a.name: a.extent for a in draft.block(chain.last).axes}
    return prod(extents[n] for n in chain.rows), prod(extents[n] for n in chain.within)


def near_usual(threads: Hole) -> Hole:
    """Threads that join a part, or write one: no fewer than without a search, and at most twice as many."""
    usual = max(LEAST_THREADS, threads.default)
    choices = tuple(n for n in threads.choices if usual <= n <= 2 * usual) or threads.choices[-1:]
    return Hole.near(threads.name, choices, usual, "threads")


def _threads(draft: Draft, chain: GpuChain, target: Target) -> Hole:
    """Threads that write a part of a row, and join what they need for it."""
    _, within = _elements(draft, chain)
    usual = USUAL_THREADS * FEWEST_OF_THREAD if chain.within else USUAL_THREADS
    return near_usual(joining_threads(chain.last, target, max(USUAL_THREADS, within), usual))


def _blocks(draft: Draft, chain: GpuChain, target: Target, threads: Hole) -> Hole:
    """Blocks that write a row: as many as fill the multiprocessors, with some elements for each thread."""
    rows, within = _elements(draft, chain)
    wanted = min(BLOCKS_PER_CORE * max(1, target.cores) // rows, within // (ELEMENTS_OF_THREAD * threads.default))
    default = max([n for n in BLOCKS_OF_ROW if n <= wanted], default=BLOCKS_OF_ROW[0])
    return Hole.near(f"{chain.last}_blocks", (default,), default, "parts")


def _vector(draft: Draft, chain: GpuChain, threads: Hole, blocks: Hole) -> int:
    """Neighbours that a thread writes at once: a vector where it has several of them, which no block cuts."""
    _, within = _elements(draft, chain)
    (last,) = (a.extent for a in draft.block(chain.last).axes if a.name == chain.within[-1])
    whole = last % VECTOR == 0 and within % (VECTOR * max(blocks.choices)) == 0
    return VECTOR if whole and within // (blocks.default * threads.default) >= 2 * VECTOR else 1
