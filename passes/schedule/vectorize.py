"""Run the iterations of an innermost loop in the lanes of vector registers."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.combiner import NAMED
from ...dialects.loop import BlockOp, ForOp
from ..analysis.access import parallel_hazard
from ..analysis.nest import reduces_over
from ._marks import KindMark, serial_loop, serial_loops
from .parallel import sharing
from .rfactor import Rfactor


@dataclass(frozen=True)
class Vectorize(KindMark):
    """`for i in n { S }` -> `for i in n vectorized { S }`

    Over a reduce iterator the lanes keep partial results, which are joined at the end in any order.

    Requires: a serial loop that holds blocks only, whose iterations share nothing but reductions by add, mul, max or
    min.
    """

    name = "lw-vectorize"
    kind = "vectorized"
    block: str
    loop: str

    def check(self, module: ModuleOp) -> ForOp:
        loop = serial_loop(self, module, self.block, self.loop)
        inner = _inner_loop(loop)
        if inner is not None:
            rule = f"a vectorized loop must be innermost, '{loop.loop_name}' holds loop '{inner.loop_name}'"
            raise self.error(f"{rule}; reorder first", at=inner)
        custom = _custom_reduction(loop)
        if custom is not None:
            rule = f"lanes join by add, mul, max or min only, block '{custom.block_name}' reduces over"
            rule = f"{rule} '{loop.loop_name}' by a combiner of its own; rfactor first"
            raise self.error(rule, Rfactor(custom.block_name, loop.loop_name), loop)
        if (hazard := parallel_hazard(loop, joined=True)) is not None:
            raise sharing(self, loop, hazard)
        return loop

    def describe(self) -> str:
        return f"Run all iterations of loop {self.loop} of {self.block} at once, in the lanes of vectors."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Vectorize, ...]:
        return tuple(cls(block, loop.loop_name) for block, loop in serial_loops(module_op) if _allowed(loop))


def _allowed(loop: ForOp) -> bool:
    return _inner_loop(loop) is None and _custom_reduction(loop) is None and parallel_hazard(loop, joined=True) is None


def _inner_loop(loop: ForOp) -> ForOp | None:
    return next((op for op in loop.body.block.ops if isinstance(op, ForOp)), None)


def _custom_reduction(loop: ForOp) -> BlockOp | None:
    return next((b for b in reduces_over(loop) if b.combiner.data not in NAMED), None)
