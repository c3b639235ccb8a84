"""Let a copy fill one half of its buffer while the other half is used."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.loop import blocks_in
from ...dialects.loop_notes import PIPELINE_STAGES
from ..analysis.nest import find_block, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..parametric.stages import add_places
from ..primitive import Primitive
from ._stages import StagesPlan, add_stages, owner_of, require_copy_ahead, require_pipelinable
from ._staging import legal_steps


@dataclass(frozen=True)
class DoubleBuffer(Primitive[StagesPlan]):
    """`for k in n { block a_shared { a_shared[x] = a[k, x] } block c { a_shared[x] } }` ->

    `for k in n annotated {pipeline_stages = 2} { block a_shared { a_shared[k mod 2, x] = a[k, x] } block c { ... } }`

    The loop is the innermost one around all that uses the buffer. As `pipeline` with two stages, for one copy.

    Requires: a copy, which alone fills its buffer, from one that nothing in the loop writes; the loop serial, of two or
    more iterations, and not pipelined with another number of stages.
    """

    name = "lw-double-buffer"
    block: str

    def check(self, module: ModuleOp) -> StagesPlan:
        block = find_block(self, module, self.block)
        if PIPELINE_STAGES in block.notes:
            raise self.error(f"block '{self.block}' has its stages already", at=block)
        loop = owner_of(block)
        if loop is None:
            rule = f"all uses of the buffer that '{self.block}' writes must be in one loop"
            raise self.error(f"{rule}; compute_at puts it there", at=block)
        require_copy_ahead(self, block, loop)
        require_pipelinable(self, loop, 2, other=2)
        return StagesPlan(loop, (block,), 2)

    def rewrite(self, plan: StagesPlan) -> None:
        add_stages(plan)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        loop = nest.owner_of(stage.writes[0].buffer)
        assert loop is not None
        add_places(nest, loop, [stage], 2)

    def describe(self) -> str:
        return f"Fill one half of the buffer of {self.block} while the other is in use."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[DoubleBuffer, ...]:
        steps = (cls(block.block_name) for func in functions(module_op) for block in blocks_in(func))
        return legal_steps(steps, module_op)
