"""The base of primitives that mark a loop: the mark, finding a serial loop, the loops that may still be marked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr

from ...dialects.loop import SERIAL, ForOp, blocks_in, loops_in
from ...dialects.loop_notes import PIPELINE_STAGES
from ..analysis.access import loops_around
from ..analysis.nest import find_block, find_loop, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive, ScheduleError


class KindMark(Primitive[ForOp]):
    """A primitive that makes a serial loop one of another kind and changes nothing else."""

    makes_loops = False

    block: str
    loop: str

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind that the loop is given."""

    def rewrite(self, plan: ForOp) -> None:
        plan.kind = StringAttr(self.kind)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        nest.loop(self.block, self.loop).kind = self.kind


def serial_loop(step: Primitive[ForOp], module: ModuleOp, block: str, loop: str) -> ForOp:
    """Return the loop called `loop` around `block`; ScheduleError unless it is serial and not pipelined."""
    found = find_loop(step, find_block(step, module, block), loop)
    if found.loop_kind != SERIAL:
        rule = f"loop '{loop}' must be serial to be marked, it is {found.loop_kind}"
        raise ScheduleError(step, rule, at=found)
    if PIPELINE_STAGES in found.notes:
        raise ScheduleError(step, f"loop '{loop}' is pipelined, so its iterations keep their order", at=found)
    return found


def path_through(loop: ForOp) -> Iterator[ForOp]:
    """Return the loops around and below `loop`."""
    yield from loops_around(loop)
    yield from loops_in(loop)


def serial_loops(module: ModuleOp) -> Iterator[tuple[str, ForOp]]:
    """Each loop that can be marked, with the name of the first block below it."""
    for func in functions(module):
        for loop in loops_in(func):
            marked = loop.loop_kind != SERIAL or PIPELINE_STAGES in loop.notes
            if not marked and (block := next(blocks_in(loop), None)) is not None:
                yield block.block_name, loop
