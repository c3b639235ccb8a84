"""What all ways to place rows of reductions in blocks of threads share: steps on the blocks of a chain."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.target import Target
from ...passes.analysis.access import is_argument, reads
from ...passes.analysis.nest import buffer_name, loops_reduced
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..structure.gpu_chains import GpuChain, contiguous_suffix


class Steps:
    """A chain of a draft, being scheduled."""

    def __init__(self, draft: Draft, chain: GpuChain, target: Target) -> None:
        self.draft = draft
        self.chain = chain
        self.target = target
        self.most_threads = target.max_threads_per_block or 256
        self.reduce_loops: dict[str, list[str]] = {}
        """The loops of reductions that are parts of others, what is contiguous as the last one."""

    def local(self, name: str) -> None:
        """What a block writes into registers, but for what the chain is there for."""
        results = self.results() if name == self.chain.last else []
        self.scope(name, "local", but=results)

    def scope(self, name: str, scope: str, but: Sequence[str] = ()) -> None:
        """What a block writes into a memory, some of its buffers left out."""
        for output in map(buffer_name, self.draft.block(name).outputs):
            if output not in but:
                self.draft.do(SetScope, block=name, buffer=output, scope=scope)

    def results(self) -> list[str]:
        """What the last block writes for others, or for those who call the function."""
        return [
            buffer_name(output)
            for output in self.draft.block(self.chain.last).outputs
            if is_argument(output) or reads(output)
        ]

    def reducing(self, name: str) -> set[str]:
        """The loops that a block reduces over."""
        return loops_reduced(self.draft.block(name))

    def repeat(self) -> None:
        """Compute what stands between the reductions again wherever it is read."""
        for name in self.chain.repeated:
            self.draft.do(ComputeInline, block=name)

    def split_reduction(self, name: str, lanes: Hole) -> tuple[str, list[str]]:
        """Divide what is contiguous among lanes, neighbours to neighbours; the loop over lanes, and the others."""
        *others, fused = self.reduce_loops.get(name) or self.untouched_reduce_loops(name)
        self.draft.do(Split, block=name, loop=fused, factors=(0, lanes))
        return f"{fused}1", [*others, f"{fused}0"]

    def untouched_reduce_loops(self, name: str) -> list[str]:
        """The loops of a reduction that nobody has touched, what is contiguous as the last one."""
        block = self.draft.block(name)
        together = contiguous_suffix(block)
        others = [a.name for a in block.axes if a.reduce and a.extent > 1 and a.name not in together]
        return [*others, self.draft.fuse(name, together)]
