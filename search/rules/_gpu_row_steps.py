"""Steps on the blocks of a reduction chain, for all ways to place its rows in thread blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...passes.analysis.access import is_argument, reads
from ...passes.analysis.nest import buffer_name, loops_reduced
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.set_scope import SetScope
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..structure.gpu_chains import GpuChain, contiguous_suffix

ReduceLoops = Mapping[str, Sequence[str]]
"""The loops of reductions that are parts of others, by block, what is contiguous as the last one."""


def repeat(draft: Draft, chain: GpuChain) -> None:
    """Compute what stands between the reductions again wherever it is read."""
    for name in chain.repeated:
        draft.do(ComputeInline, block=name)


def reducing(draft: Draft, name: str) -> set[str]:
    """The loops that a block reduces over."""
    return loops_reduced(draft.block(name))


def results(draft: Draft, chain: GpuChain) -> list[str]:
    """Return what the last block writes for others, or for callers of the function."""
    outputs = draft.block(chain.last).outputs
    return [buffer_name(output) for output in outputs if is_argument(output) or reads(output)]


def local(draft: Draft, chain: GpuChain, name: str) -> None:
    """Keep what a block writes in registers, but for the results of the chain."""
    scope(draft, name, "local", but=results(draft, chain) if name == chain.last else [])


def scope(draft: Draft, name: str, scope: str, but: Sequence[str] = ()) -> None:
    """Keep what a block writes in a memory, some of its buffers left out."""
    for output in map(buffer_name, draft.block(name).outputs):
        if output not in but:
            draft.do(SetScope, block=name, buffer=output, scope=scope)


def split_reduction(draft: Draft, name: str, lanes: Hole, known: ReduceLoops) -> tuple[str, list[str]]:
    """Divide what is contiguous among lanes, neighbours to neighbours; the loop over lanes, and the others."""
    *others, fused = known.get(name) or untouched_reduce_loops(draft, name)
    rest, lane = draft.split(name, fused, (0, lanes))
    return lane, [*others, rest]


def untouched_reduce_loops(draft: Draft, name: str) -> list[str]:
    """The loops of a reduction that nobody has touched, what is contiguous as one, the last."""
    block = draft.block(name)
    together = contiguous_suffix(block)
    others = [a.name for a in block.axes if a.reduce and a.extent > 1 and a.name not in together]
    return [*others, draft.fuse(name, together)]
