"""Products with small constant matrices, such as Winograd's transforms: positions unrolled, chains tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from ...dialects.buffers import buffer_shape, element_of_buffer
from ...dialects.element import element_bytes
from ...dialects.target import Target
from ...passes.analysis.access import is_argument, shared_loops
from ...passes.analysis.nest import buffer_name
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..sketch.rule import SketchRule
from ..structure.strides import lanes_of_block
from ..structure.transform_chains import MOST_POSITIONS, PickChain, pick_chains
from ._gpu_copies import bring
from ._gpu_factors import block_threads
from ._lanes import deal, parallel_elements

THREADS = (32, 64, 128, 256)
"""Threads of a block, a tile each: few, as each holds all elements of its tile in registers."""
USUAL_THREADS = 128
"""Threads of a block without a search. A choice: a tile of Winograd's F(4, 3) is 36 registers."""
STAGED_BYTES = 48 << 10
"""Shared memory that a block may have on any GPU of NVIDIA's (CUDA C++ programming guide): rows that threads of a block
begin and end in the middle of are there as a whole."""


class Transforms(SketchRule):
    """Each chain of transforms in one nest, a tile at a time; neighbouring tiles to lanes or threads."""

    order: ClassVar[int] = 150

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for chain in pick_chains(draft):
            _write(draft, _plan(draft, chain, target), target)
        return [draft]


@dataclass(frozen=True)
class TransformPlan:
    """A chain of transforms, tile by tile: loops over tiles, `outer`, and those `inside` of one.

    `split` are the iterators that run over tiles and inside of them, with the tiles' extents. On a GPU a tile has a
    thread, of so many `threads` of a block; on a CPU a lane, of vectors of so many, None where tiles are too few.
    """

    chain: PickChain
    split: tuple[tuple[str, int], ...]
    outer: tuple[str, ...]
    inside: tuple[str, ...]
    threads: Hole | None = None
    lanes: Hole | None = None
    is_parallel: bool = False

    @property
    def final(self) -> str:
        return self.chain.final


def _plan(draft: Draft, chain: PickChain, target: Target) -> TransformPlan:
    """Tiles to threads, or to lanes and threads."""
    block, sizes = draft.block(chain.final), draft.sizes(chain.final)
    work = prod(sizes.values())
    extents = {a.name: a.extent for a in block.axes}
    split = {name: size for name, size in chain.tiles if size != extents[name]}
    inside = tuple(f"{name}1" if name in split else name for name, _ in chain.tiles)
    tiles = {f"{n}0" if n in split else n: -(-size // split.get(n, 1)) for n, size in sizes.items() if n not in inside}
    plan = TransformPlan(chain, tuple(split.items()), tuple(tiles), inside)
    if not tiles:
        return plan
    if target.is_gpu:
        choices = block_threads(target, THREADS)
        return replace(plan, threads=Hole.near(f"{chain.final}_threads", choices, USUAL_THREADS, "threads"))
    full, extent = lanes_of_block(block, target), list(tiles.values())[-1]
    lanes = None
    if extent >= max(2, full // 2):
        widths = tuple(n for n in (full // 2, full, 2 * full) if 1 < n < 2 * extent) or (full,)
        lanes = Hole.near(f"{chain.final}_width", widths, full, "vector")
    is_parallel = target.cores > 1 and work >= parallel_elements(target) and len(tiles) > 1
    return replace(plan, lanes=lanes, is_parallel=is_parallel)


def _write(draft: Draft, plan: TransformPlan, target: Target) -> None:
    """The last stage tile by tile, and what each tile needs of the earlier ones."""
    final = plan.final
    draft.settled |= {final, *plan.chain.members}
    for name, size in plan.split:
        draft.do(Split, block=final, loop=name, factors=(0, size))
    if not plan.outer:
        return
    staged = _strided_arguments(draft, plan, target) if plan.threads is not None else []
    around = _threads(draft, plan, plan.threads) if plan.threads is not None else _lanes(draft, plan)
    for one in plan.inside:
        draft.do(Unroll, block=final, loop=one)
    for member in plan.chain.members:
        _member(draft, plan, member, around)
    for member, buffer in staged:
        _stage(draft, plan, member, buffer)


def _threads(draft: Draft, plan: TransformPlan, threads: Hole) -> str:
    """A thread for each tile; the loop over threads."""
    final = plan.final
    draft.order(final, [*plan.outer, *plan.inside])
    draft.add(threads)
    block, thread = draft.split(final, draft.fuse(final, plan.outer), (0, threads))
    draft.do(Bind, block=final, loop=block, thread="blockIdx.x")
    draft.do(Bind, block=final, loop=thread, thread="threadIdx.x")
    return thread


def _strided_arguments(draft: Draft, plan: TransformPlan, target: Target) -> list[tuple[str, str]]:
    """The blocks and the arguments they read of which neighbouring threads have elements that are not neighbours.

    Such are filters whose channels are behind them, read by a thread for each filter: 512 of 512 channels take 12 us so
    on an H200, where warps ask for 32 lines at a time.
    """
    found, last, sizes = dict[tuple[str, str], None](), plan.outer[-1], draft.sizes(plan.final)
    extents = [sizes[name] for name in plan.outer]
    for name in plan.chain.members:
        block = draft.block(name)
        for load in block.loads:
            axes = [e.substitute(block.bound).axes() for e in load.indices.data]
            shape = buffer_shape(load.buffer)
            tiles = [prod(sizes[name] for name in inside & set(plan.outer)) for inside in axes]
            each = prod(-(-n // count) for n, count in zip(shape, tiles, strict=True))
            size = each * element_bytes(element_of_buffer(load.buffer))
            fits = _spanned(extents) * size <= min(STAGED_BYTES, target.max_shared_bytes)
            apart = last not in axes[-1] and any(last in inside for inside in axes)
            if apart and fits and is_argument(load.buffer) and not load.conditions:
                found[name, buffer_name(load.buffer)] = None
    return list(found)


def _spanned(extents: Sequence[int]) -> int:
    """Tiles of the smallest box, along loops of these extents, that is known to hold those of any block of `THREADS`.

    A block that goes on behind the end of one loop spans all of that loop, unless whole blocks make up the loop. Of a
    loop between others that is known only where blocks begin with the loops inside of it, too.
    """
    box, threads = 1, max(THREADS)
    for place, extent in [*enumerate(extents)][::-1]:
        is_outermost = prod(extents[:place]) == 1
        if box * extent % threads == 0 and (is_outermost or threads % box == 0):
            return box * min(extent, -(-(threads - 1) // box) + 1)
        box *= extent
    return box


def _stage(draft: Draft, plan: TransformPlan, member: str, buffer: str) -> None:
    """Bring what the threads of a block need of an argument to shared memory, neighbours by neighbours."""
    assert plan.threads is not None
    copy, block_loop = f"{buffer}_shared", draft.loops(plan.final)[0]
    draft.do(CacheRead, block=member, buffer=buffer, scope="shared", label=copy)
    bring(draft, copy, block_loop, {"threadIdx.x": plan.threads})


def _lanes(draft: Draft, plan: TransformPlan) -> str:
    """A lane for each tile, neighbours side by side; the loop around the lanes of one vector."""
    final, outer = plan.final, [*plan.outer]
    lane = []
    if plan.lanes is not None:
        draft.add(plan.lanes)
        outer[-1], vector = draft.split(final, outer[-1], (0, plan.lanes))
        lane = [vector]
    draft.order(final, [*outer, *plan.inside, *lane])
    for vector in lane:
        draft.do(Vectorize, block=final, loop=vector)
    if plan.is_parallel:
        deal(draft, final, outer[:-1])
    return outer[-1]


def _member(draft: Draft, plan: TransformPlan, name: str, around: str) -> None:
    """Compute what one tile, or those of one vector, need of an earlier stage."""
    if not draft.tried(ComputeAt, name, loop=around):
        return
    draft.do(SetScope, block=name, scope="local")
    block = draft.block(name)
    own = block.enclosing_loops[len(shared_loops(block, draft.block(plan.final))) :]
    lane = own[-1].loop_name if plan.lanes is not None and own and own[-1].size == plan.lanes.default else ""
    if lane:
        draft.do(Vectorize, block=name, loop=lane)
    for loop in own:
        if loop.loop_name != lane and 1 < loop.size <= MOST_POSITIONS:
            draft.do(Unroll, block=name, loop=loop.loop_name)
