"""Run the iterations of a loop on the threads of a CPU."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.loop import ForOp, is_thread_kind
from ..analysis.access import parallel_hazard
from ..analysis.nest import reduces_over
from ..primitive import Primitive, ScheduleError
from ._marks import KindMark, path_through, serial_loop, serial_loops
from .rfactor import Rfactor


@dataclass(frozen=True)
class Parallel(KindMark):
    """`for i in n { S }` -> `for i in n parallel { S }`

    Requires: a serial loop whose iterations share nothing: no block below reduces over it, each iteration writes
    elements of its own, and none reads what another one wrote; no parallel loop and no loop of a GPU around or
    below it.
    """

    name = "lw-parallel"
    kind = "parallel"
    block: str
    loop: str

    def check(self, module: ModuleOp) -> ForOp:
        loop = serial_loop(self, module, self.block, self.loop)
        for other in path_through(loop):
            if other.loop_kind == "parallel":
                rule = f"parallel loops must not nest, '{other.loop_name}' is one; fuse the two first"
                raise self.error(rule, at=other)
            if is_thread_kind(other.loop_kind):
                rule = f"a nest runs on the threads of a CPU or of a GPU, '{other.loop_name}' is {other.loop_kind}"
                raise self.error(rule, at=other)
        if (hazard := parallel_hazard(loop)) is not None:
            raise sharing(self, loop, hazard)
        return loop

    def describe(self) -> str:
        return f"Deal the iterations of loop {self.loop} of {self.block} to the cores."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Parallel, ...]:
        def allowed(loop: ForOp) -> bool:
            kinds = [other.loop_kind for other in path_through(loop)]
            return not any(k == "parallel" or is_thread_kind(k) for k in kinds) and parallel_hazard(loop) is None

        return tuple(cls(block, loop.loop_name) for block, loop in serial_loops(module_op) if allowed(loop))


def sharing(step: Primitive[ForOp], loop: ForOp, hazard: str) -> ScheduleError:
    """Return the refusal of a loop whose iterations must not run at once; for a reduction the fix is rfactor."""
    rule = f"iterations that run at once must share nothing, but for '{loop.loop_name}' {hazard}"
    reducing = reduces_over(loop)
    fix = Rfactor(reducing[0].block_name, loop.loop_name) if reducing else None
    return step.error(rule, fix, loop)
