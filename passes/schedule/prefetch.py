"""Ask for what a later iteration reads while this one computes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, i64

from ...dialects.loop import BlockOp, ForOp
from ...dialects.loop_notes import PREFETCH
from ..analysis.nest import buffer_name, find_block, find_loop
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._marks import serial_loops
from ._staging import legal_steps

DISTANCES = (1, 4)
"""Choices that schedules are explored with."""


@dataclass(frozen=True)
class Prefetch(Primitive[ForOp]):
    """`for k in n { block c { b[k, j] } }` -> `for k in n annotated {prefetch = {b = 4 : i64}} { ... }`

    On a CPU, each load of `buffer` in the loop also asks for the cache line that is read `distance` iterations later;
    past the last iteration that is a hint to nowhere, and does nothing. On a GPU other threads hide the latency, and
    nothing is asked for. A later step for the same buffer replaces the distance.

    Requires: `block` reads `buffer` at a place that moves with `loop`, if that has several iterations; a distance of at
    least 1.
    """

    name = "lw-prefetch"
    block: str
    buffer: str
    loop: str
    distance: int = 1

    def check(self, module: ModuleOp) -> ForOp:
        block = find_block(self, module, self.block)
        loop = find_loop(self, block, self.loop)
        if self.distance < 1:
            raise self.error(f"distance must be at least 1, got {self.distance}", at=loop)
        read = list(dict.fromkeys(buffer_name(load.buffer) for load in block.loads))
        if self.buffer not in read:
            rule = f"'{self.block}' must read '{self.buffer}', it reads {', '.join(read) or 'nothing'}"
            raise self.error(rule, at=block)
        if loop.size > 1 and not _moves(block, self.buffer, self.loop):
            raise self.error(f"what '{self.block}' reads of '{self.buffer}' must move with '{self.loop}'", at=block)
        return loop

    def rewrite(self, plan: ForOp) -> None:
        before = plan.notes.get(PREFETCH)
        known = dict(before.data) if isinstance(before, DictionaryAttr) else {}
        plan.annotate(PREFETCH, DictionaryAttr({**known, self.buffer: IntegerAttr(self.distance, i64)}))

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        """A hint changes no extent."""

    def describe(self) -> str:
        return f"Ask for what {self.block} reads of {self.buffer} some iterations of loop {self.loop} ahead."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Prefetch, ...]:
        steps: list[Prefetch] = []
        for block_name, loop in serial_loops(module_op):
            block = next(op for op in loop.walk() if isinstance(op, BlockOp))
            for buffer in dict.fromkeys(buffer_name(load.buffer) for load in block.loads):
                steps += [cls(block_name, buffer, loop.loop_name, distance) for distance in DISTANCES]
        return legal_steps(steps, module_op)


def _moves(block: BlockOp, buffer: str, loop: str) -> bool:
    """True where a load of the buffer moves along the loop."""
    loads = [load for load in block.loads if buffer_name(load.buffer) == buffer]
    return any(loop in e.substitute(block.bound).axes() for load in loads for e in load.indices.data)
