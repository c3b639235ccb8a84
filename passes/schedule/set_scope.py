"""Say in which memory the buffer that a block writes lives."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.loop import SCOPES, AllocOp, blocks_in, buffer_shape, buffer_type
from ..analysis.access import filled_with_all_threads, is_argument
from ..analysis.nest import buffer_name, find_block, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._staging import check_scope, output_index, scope_in_words
from .cache_write import CacheWrite


@dataclass(frozen=True)
class Plan:
    """The buffer to move."""

    buffer: SSAValue


@dataclass(frozen=True)
class SetScope(Primitive[Plan]):
    """`alloc "C" : memref<8x8xf32>` -> `alloc "C" : memref<8x8xf32, "local">` for what `block` writes

    `buffer` may be left out where the block writes one.

    Requires: a scope (global, shared, local); a buffer that is no argument of the function; shared stays shared where
    a loop that fills the buffer is on an axis of threads that a loop around it is on too.
    """

    name = "lw-set-scope"
    block: str
    scope: str
    buffer: str = ""

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        check_scope(self, self.scope, block)
        buffer = block.outputs[output_index(self, block, self.buffer)]
        if is_argument(buffer):
            rule = f"'{buffer_name(buffer)}' is an argument of the function, which is global"
            raise self.error(rule, CacheWrite(self.block, self.buffer, self.scope), block)
        if self.scope != "shared" and (loop := filled_with_all_threads(buffer)) is not None:
            names = f"all threads fill '{buffer_name(buffer)}', loop '{loop.loop_name}'"
            rule = f"{names} is {loop.loop_kind} inside of another that is"
            raise self.error(f"{rule}, which only shared buffers may be; set the scope before lw-bind", at=loop)
        return Plan(buffer)

    def rewrite(self, plan: Plan) -> None:
        assert isinstance(plan.buffer.type, MemRefType)
        moved = buffer_type(plan.buffer.type.element_type, buffer_shape(plan.buffer), self.scope)
        Rewriter.replace_value_with_new_type(plan.buffer, moved)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        nest.stage(self.block).output(self.buffer).buffer.scope = self.scope

    def describe(self) -> str:
        return f"Keep what {self.block} writes in {scope_in_words(self.scope)}."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[SetScope, ...]:
        return tuple(
            cls(block.block_name, scope, buffer_name(output))
            for func in functions(module_op)
            for block in blocks_in(func)
            for output in block.outputs
            if isinstance(output.owner, AllocOp) and filled_with_all_threads(output) is None
            for scope in SCOPES
            if scope != output.owner.scope
        )
