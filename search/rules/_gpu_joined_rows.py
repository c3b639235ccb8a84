"""Rows of reductions in a block of threads each, which pass on what they have: by shuffles where there are any."""

from __future__ import annotations

from ...passes.schedule.bind import Bind
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.split import Split
from ._gpu_row_steps import Steps

THREADS = (32, 64, 128, 256, 512, 1024)
"""Threads that join a row: whole warps, and powers of two."""


class JoinedRows(Steps):
    """Blocks of threads for rows: all threads of one go along it, and join what each has by passing values on.

    Needs a named combiner, and an axis in `rows` or in `within`.
    """

    def write(self, longest: int, terms: int, most: int = 256) -> None:
        """Apply all steps; `longest` of the `terms` are contiguous, at most `most` threads take them by default."""
        chain, do = self.chain, self.draft.do
        self.repeat()
        fits = [n for n in THREADS if n <= self.most_threads]
        default = max(n for n in fits if n <= max(32, min(most, longest, terms // 4)))
        self.threads = self.draft.hole(
            f"{chain.last}_threads", tuple(n for n in fits if n <= max(32, longest)), default, "threads"
        )
        factored = {chain.last: self._factored(chain.last)} if chain.last in chain.reductions else {}
        self.row = self._rows()
        do(Bind, block=chain.last, loop=self.row, thread="blockIdx.x")
        for name in reversed(chain.reductions):
            if name != chain.last:
                do(ComputeAt, block=name, loop=self.row)
        for name in chain.reductions:
            self._join(name, *(factored.get(name) or self._factored(name)))
        if chain.within:
            inner = self.draft.fuse(chain.last, self.draft.loops(chain.last, self.row))
            do(Split, block=chain.last, loop=inner, factors=(0, self.threads))
            do(Bind, block=chain.last, loop=f"{inner}1", thread="threadIdx.x")
        self.draft.settled |= {chain.last, *chain.reductions}

    def _rows(self) -> str:
        """The loop over all rows of the last block."""
        last = self.chain.last
        inside = [n for n in self.draft.loops(last) if n in self.reducing(last) or n in self.chain.within]
        outside = [n for n in self.draft.loops(last) if n not in inside]
        if not outside:  # a single row: a loop of one iteration around it
            self.draft.do(Split, block=last, loop=inside[0], factors=(1, 0))
            return f"{inside[0]}0"
        self.draft.order(last, (*outside, *inside))
        return self.draft.fuse(last, outside)

    def _factored(self, name: str) -> tuple[str, str]:
        """Partial results of threads: the loop over threads, and the block that computes them."""
        lane, others = self.split_reduction(name, self.threads)
        self.draft.order(name, (lane, *others))
        return lane, self.draft.partial(name, lane, 0)

    def _join(self, name: str, lane: str, partial: str) -> None:
        self.draft.do(Bind, block=partial, loop=lane, thread="threadIdx.x")
        self.local(partial)
        self.draft.do(Bind, block=name, loop=self.draft.loops(name)[-1], thread="threadIdx.x")
        self.local(name)


class JoinedParts(Steps):
    """Blocks of threads for results, each thread with one of the parts of it: the end of a split reduction.

    Needs a named combiner, and as many parts as a block may have threads, a power of two from 32 on.
    """

    def write(self) -> None:
        """Apply all steps; the chain's one reduction adds up the parts."""
        (name,), last = self.chain.reductions, self.chain.last
        do = self.draft.do
        rows = [n for n in self.draft.loops(last) if n not in self.reducing(last)]
        row = self.draft.fuse(last, rows)
        if rows:
            do(Bind, block=last, loop=row, thread="blockIdx.x")
        if name != last:
            do(ComputeAt, block=name, loop=row)
        do(Bind, block=name, loop=self.draft.loops(name)[-1], thread="threadIdx.x")
        self.local(name)
        self.draft.settled |= {name, last}
