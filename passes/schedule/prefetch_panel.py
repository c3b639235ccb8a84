"""Ask for the next panel of an operand while this one is used again and again."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from ...dialects.loop import BlockOp, ForOp
from ...dialects.loop_notes import PREFETCH_PANEL
from ..analysis.nest import buffer_name, find_block, find_loop
from ..analysis.panels import reads_runs
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._marks import serial_loops
from ._staging import legal_steps


@dataclass(frozen=True)
class PrefetchPanel(Primitive[ForOp]):
    """`for t in n { for k in m { block c { b[t floordiv 4, k] } } }` -> the same, t annotated {prefetch_panel = ["b"]}

    The panel is what iterations of the loop read of `buffer`: here the row of four of them. On a CPU, each iteration of
    the loops inside asks for its share of the lines of the next panel, to bring them into the second-level cache, so
    that they come evenly while this one is in use, and not all at once when they are wanted. On a GPU other threads
    hide the latency, and nothing is asked for, nor is it where the loop moves on to no other panel, where lanes of
    a vector are in different ones, or where the program reads itself which one it takes.

    Requires: `block` reads `buffer`, and what it reads in an iteration of `loop` is one run of elements, next to each
    other in memory.
    """

    name = "lw-prefetch-panel"
    block: str
    buffer: str
    loop: str

    def check(self, module: ModuleOp) -> ForOp:
        block = find_block(self, module, self.block)
        loop = find_loop(self, block, self.loop)
        loads = [load for load in block.loads if buffer_name(load.buffer) == self.buffer]
        if not loads:
            read = list(dict.fromkeys(buffer_name(load.buffer) for load in block.loads))
            raise self.error(
                f"'{self.block}' must read '{self.buffer}', it reads {', '.join(read) or 'nothing'}", at=block
            )
        if not any(reads_runs(block, load, loop) for load in loads):
            rule = f"what '{self.block}' reads of '{self.buffer}' in an iteration of '{self.loop}' must be one run"
            raise self.error(f"{rule} of elements", at=block)
        return loop

    def rewrite(self, plan: ForOp) -> None:
        before = plan.notes.get(PREFETCH_PANEL)
        known = [*before.data] if isinstance(before, ArrayAttr) else []
        names = dict.fromkeys([*known, StringAttr(self.buffer)])
        plan.annotate(PREFETCH_PANEL, ArrayAttr([*names]))

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        """A hint changes no extent."""

    def describe(self) -> str:
        return (
            f"Ask for what the next iterations of loop {self.loop} read of {self.buffer} while {self.block} computes."
        )

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[PrefetchPanel, ...]:
        steps: list[PrefetchPanel] = []
        for block_name, loop in serial_loops(module_op):
            block = next(op for op in loop.walk() if isinstance(op, BlockOp))
            for buffer in dict.fromkeys(buffer_name(load.buffer) for load in block.loads):
                steps.append(cls(block_name, buffer, loop.loop_name))
        return legal_steps(steps, module_op)
