"""Replicate the body of a loop, once for each iteration."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.loop import ForOp
from ._marks import KindMark, serial_loop, serial_loops

_OFFERED_EXTENT = 64
"""Iterations that `schedule_space` still offers: beyond, code outgrows instruction caches before it gets faster."""


@dataclass(frozen=True)
class Unroll(KindMark):
    """`for i in n { S }` -> `for i in n unrolled { S }`

    Requires: a serial loop.
    """

    name = "lw-unroll"
    kind = "unrolled"
    block: str
    loop: str

    def check(self, module: ModuleOp) -> ForOp:
        return serial_loop(self, module, self.block, self.loop)

    def describe(self) -> str:
        return f"Write out every iteration of loop {self.loop} of {self.block}."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Unroll, ...]:
        small = ((b, loop) for b, loop in serial_loops(module_op) if loop.size <= _OFFERED_EXTENT)
        return tuple(cls(block, loop.loop_name) for block, loop in small)
