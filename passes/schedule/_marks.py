"""The base of primitives that mark a loop: the mark, finding a serial loop, the loops that may still be marked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr

from ...dialects.loop import SERIAL, ForOp, blocks_in, loops_in
from ..analysis.access import loops_around
from ..analysis.nest import find_block, find_loop, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive, ScheduleError

PIPELINE_STAGES = "pipeline_stages"
"""The annotation of a pipelined loop and of the copies that run ahead in it: in how many iterations a buffer lives."""

PIPELINE_REGISTERS = "pipeline_registers"
"""The annotation of copies that run ahead through registers, though the device may copy by itself."""

PIPELINE_BULK = "pipeline_bulk"
"""The annotation of copies that run ahead as boxes, which the copy engine of a device copies where it has one."""

PIPELINE_CLUSTER = "pipeline_cluster"
"""The annotation of a pipelined loop by the axes of blocks that are a cluster, which share the boxes that they want."""

BLOCKS_PER_SM = "blocks_per_sm"
"""The annotation of a loop of thread blocks by how many are to fit a multiprocessor at once."""

JOIN = "join"
"""The annotation of a nest that is part of the launch before, for the blocks of threads that are last to write."""

CLUSTER = "cluster"
"""The annotation of such a nest whose blocks are all those before: the axis along which they wait for each other."""

PREFETCH = "prefetch"
"""The annotation of a loop by how many iterations ahead the lines of which buffers are asked for."""

PREFETCH_PANEL = "prefetch_panel"
"""The annotation of a loop by the buffers of which the panel of its next iterations is asked for while one is used."""


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


def is_thread_kind(kind: str) -> bool:
    """True for the loop kinds of a GPU."""
    return "Idx" in kind or kind == "vthread"


def serial_loops(module: ModuleOp) -> Iterator[tuple[str, ForOp]]:
    """Each loop that can be marked, with the name of the first block below it."""
    for func in functions(module):
        for loop in loops_in(func):
            marked = loop.loop_kind != SERIAL or PIPELINE_STAGES in loop.notes
            if not marked and (block := next(blocks_in(loop), None)) is not None:
                yield block.block_name, loop
