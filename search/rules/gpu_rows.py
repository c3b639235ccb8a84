"""Chains of reductions over rows on a GPU: a block of threads a row, partial results joined across the threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

import numpy as np

from ...dialects.loop import BlockOp, buffer_shape
from ...dialects.target import WARP, Target
from ...passes.analysis.access import is_argument, reads
from ...passes.analysis.nest import buffer_name
from ...passes.lower.write_kernel import SHARED_ALIGNMENT
from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.rfactor import may_trap
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole, Kind
from ..sketch.rule import SketchRule
from ..structure.anchor import epilogue_of
from ..structure.chains import along_reduce, next_chain, row_dimensions
from ..structure.strides import output_bytes

UNROLLED = (0, 16, 64)
"""Steps of a short reduction that are written out: their loads do not wait for each other."""
REGISTERS = 32
"""Elements of a row that a thread keeps in registers, at most.

Longer rows wait in shared memory; those that do not fit there are computed again by each reader.
"""


class GpuRows(SketchRule):
    """What is left of reductions: rows to blocks, elements of a row to threads."""

    order: ClassVar[int] = 500

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        while (chain := next_chain(draft)) is not None:
            _Rows(draft, target, chain).write()
        return [draft]


class _Rows:
    """One chain being scheduled; the last block of `chain` stays, the others move to it.

    Threads join results by named combiners only, and a division by what a reduction reads would fail in threads without
    an element: a chain with such a one is left to be several, each ending in one block.
    """

    def __init__(self, draft: Draft, target: Target, chain: list[str]) -> None:
        self.draft = draft
        self.target = target
        blocks = [draft.block(n) for n in chain]
        self.apart = any(block.combiner.data == "custom" or may_trap(block) for block in blocks)
        self.chain = chain[-1:] if self.apart else chain
        self.last = chain[-1]
        self.threads: Hole | None = None
        self.scope = "local"

    def write(self) -> None:
        self.draft.settled.update(self.chain)
        block = self.draft.block(self.last)
        deep = [b for n in self.chain if along_reduce(b := self.draft.block(n))]
        extent = max((a.extent for b in deep for a in b.axes if a.reduce), default=0)
        if len(self.chain) == 1 and (not deep or extent < 64 or self.apart):
            self._one_thread_a_result(block)
            return
        first = self.draft.block(self.chain[0])
        if len(self.chain) == 2 and not deep and first.is_reduction and epilogue_of(first) == self.last:
            self.draft.settled.discard(self.last)
            self._one_thread_a_result(first)
            return
        names = [e.as_axis() for e in block.write_indices[0]]
        around = [x.loop_name for x in block.enclosing_loops]
        rows = [n for n in names[: row_dimensions(block)] if n is not None and n in around]
        fits = [n for n in (32, 64, 128, 256, 512, 1024) if n <= self.target.max_threads_per_block]
        default = max(n for n in fits if n <= max(32, min(256, extent // 4)))
        choices = tuple(n for n in fits if n <= max(32, extent))
        self.threads = self.draft.hole(f"{self.last}_threads", choices, default, "threads")
        row = self.draft.fuse(self.last, rows) if rows else ""
        if row:
            self.draft.do(Bind, block=self.last, loop=row, thread="blockIdx.x")
        self.scope = "local" if row else "global"
        self._repeat_long(extent)
        moved = [self.last]
        for name in reversed(self.chain[:-1]):
            try:
                self.draft.do(ComputeAt, block=name, loop=row)
            except ScheduleError:
                self.draft.settled.discard(name)
                continue
            moved.append(name)
        for name in self.chain:
            if name in moved:
                self._stage(name, extent)

    def _repeat_long(self, extent: int) -> None:
        """Compute again where it is read what is longer, for each row, than the shared memory that is left."""
        if not self.target.max_shared_bytes or self._in_registers(extent):
            return
        assert self.threads is not None
        stages = [self.draft.block(n) for n in self.chain]
        kept = [b for b in stages if b.is_reduction]
        for block in stages[:-1]:
            if block in kept:
                continue
            name = block.block_name
            if self._shared_bytes([*kept, block], self.threads.default) <= self.target.max_shared_bytes:
                kept.append(block)
                continue
            self.chain.remove(name)
            try:
                self.draft.do(ComputeInline, block=name)
            except ScheduleError:
                self.draft.settled.discard(name)
        within = {n: self._shared_bytes(kept, n) <= self.target.max_shared_bytes for n in self.threads.choices}
        if not all(within.values()):
            hole = self.threads.name
            self.draft.limits.append(lambda c: np.isin(c[hole], [n for n, fits in within.items() if fits]))

    def _shared_bytes(self, stages: Sequence[BlockOp], threads: int) -> int:
        """Shared memory for rows, as long as a multiple of the threads, and for a value of each warp of a reduction.

        Only CUDA's threads have warps to join their values in: elsewhere it is a value of each thread.
        """
        values = -(-threads // WARP) if self.target.kind == "cuda" else threads
        rows = row_dimensions(self.draft.block(self.last))
        total = 0
        for block in stages:
            row = prod(buffer_shape(block.outputs[0])[rows:])
            size = (values if block.is_reduction else -(-row // threads) * threads) * output_bytes(block)
            total += -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
        return total

    def _in_registers(self, extent: int) -> bool:
        """True where the threads of a row keep it in registers, by default."""
        assert self.threads is not None
        return -(-extent // self.threads.default) <= REGISTERS

    def _stage(self, name: str, extent: int) -> None:
        block = self.draft.block(name)
        assert self.threads is not None
        if block.is_reduction:
            self._joined(block)
            if name != self.last and self.scope == "local":
                self.draft.do(SetScope, block=name, scope="local")
            return
        loops = [x for x in block.enclosing_loops if x.loop_kind == "serial"]
        if not loops:  # rows of one element
            if name != self.last and self.scope == "local":
                self.draft.do(SetScope, block=name, scope="local")
            return
        inner = loops[-1].loop_name
        _, thread = self.draft.split(name, inner, (0, self.threads))
        self.draft.do(Bind, block=name, loop=thread, thread="threadIdx.x")
        if name == self.last:
            return
        self.draft.do(SetScope, block=name, scope="local" if self._in_registers(extent) else "shared")

    def _joined(self, block: BlockOp) -> None:
        """Each thread adds up every so many elements, then the threads join what they have."""
        name = block.block_name
        axes = [a for a in block.axes if a.reduce and a.extent > 1]
        if not axes:
            return
        bound = dict(zip((a.name for a in block.axes), block.bindings.data, strict=True))
        loop = bound[axes[-1].name].as_axis() or axes[-1].name  # a row's loop around may have taken the axis's name
        assert self.threads is not None
        step, thread = self.draft.split(name, loop, (0, self.threads))
        partial = self.draft.partial(name, thread)
        loops = self.draft.block(partial).enclosing_loops
        outer = loops.index(next(x for x in loops if x.loop_name == step))
        around = [x.loop_name for x in loops[outer:] if x.loop_name != thread]
        self.draft.order(partial, (thread, *around))
        self.draft.do(Bind, block=partial, loop=thread, thread="threadIdx.x")
        if self.scope == "local":
            self.draft.do(SetScope, block=partial, scope="local")
        final = self.draft.block(name).enclosing_loops[-1].loop_name
        self.draft.do(Bind, block=name, loop=final, thread="threadIdx.x")

    def _one_thread_a_result(self, block: BlockOp) -> None:
        """Short or strided reductions, such as pooling: neighbouring results to neighbouring threads, a few to each."""
        do, name = self.draft.do, block.block_name
        written = {n for e in block.write_indices[0] for n in e.axes()}
        loops = [x.loop_name for x in block.enclosing_loops if x.loop_name in written]
        rest = [x.loop_name for x in block.enclosing_loops if x.loop_name not in written]
        if not loops:
            return
        sizes = {x.loop_name: x.size for x in block.enclosing_loops}
        if all(sizes[n] == 1 for n in loops):
            self._one_result(name, loops)
            return
        tiled = [n for n in loops if sizes[n] > 1][-2:]
        inner = []
        for position, axis in enumerate(tiled):
            last = position == len(tiled) - 1
            choices = tuple(n for n in (1, 2, 4) if n <= sizes[axis])
            kind: Kind = "vector" if last else "tile"
            tile = self.draft.hole(f"{name}_{kind}", choices, 1, kind)
            loops[loops.index(axis)], inside = self.draft.split(name, axis, (0, tile))
            inner.append(inside)
        order = [*loops, *rest, *inner]
        self.draft.order(name, order)
        fused = self.draft.fuse(name, loops)
        most = self.target.max_threads_per_block or 256
        threads = tuple(n for n in (32, 64, 128, 256, 512) if n <= most) or (most,)
        width = self.draft.hole(f"{name}_threads", threads, min(256, most), "threads")
        around, thread = self.draft.split(name, fused, (0, width))
        do(Bind, block=name, loop=around, thread="blockIdx.x")
        do(Bind, block=name, loop=thread, thread="threadIdx.x")
        if rest:
            limit = self.draft.hole(f"{name}_unroll", UNROLLED, UNROLLED[-1], "unroll")
            do(Pragma, block=name, loop=rest[0], auto_unroll_max_step=limit)
        self._registers(name, thread, inner)

    def _one_result(self, name: str, loops: list[str]) -> None:
        """A single result by a single thread."""
        self.draft.do(Bind, block=name, loop=self.draft.fuse(name, loops), thread="blockIdx.x")
        self._unread_in_registers(name)

    def _unread_in_registers(self, name: str) -> None:
        for output in self.draft.block(name).outputs:
            if not is_argument(output) and not reads(output):
                self.draft.do(SetScope, block=name, buffer=buffer_name(output), scope="local")

    def _moves(self, name: str, thread: str) -> bool:
        """Whether a block may follow what it reads: not before another one whose results it reads, too."""
        try:
            ReverseComputeAt(block=name, loop=thread).check(self.draft.module)
        except ScheduleError:
            return False
        return True

    def _registers(self, name: str, thread: str, inner: list[str]) -> None:
        """Results wait in registers until they are final."""
        do = self.draft.do
        self._unread_in_registers(name)
        block = self.draft.block(name)
        stages = [name]
        if len(block.outputs) == 1:
            out = epilogue_of(block)
            if out is not None and out not in self.draft.settled and self._moves(out, thread):
                do(SetScope, block=name, scope="local")
            elif is_argument(block.outputs[0]):
                out = f"{name}_result"
                do(CacheWrite, block=name, scope="local", label=out)
            else:
                out = None
            if out is not None:
                do(ReverseComputeAt, block=out, loop=thread)
                self.draft.settled.add(out)
                stages.append(out)
        for stage in stages:
            for axis in inner[:-1]:
                do(Unroll, block=stage, loop=axis)
            if inner:
                do(Vectorize, block=stage, loop=inner[-1])
