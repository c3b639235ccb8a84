"""Pad the rows of a buffer, against bank conflicts and cache aliasing."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntAttr, ModuleOp

from ...dialects.loop import AllocOp, blocks_in, buffer_shape
from ..analysis.nest import buffer_name, find_block, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._staging import output_index


@dataclass(frozen=True)
class Plan:
    """The allocation to pad."""

    alloc: AllocOp


@dataclass(frozen=True)
class StorageAlign(Primitive[Plan]):
    """`alloc "A" : memref<64x32xf32>` -> `alloc "A" align [0, 32, 1]`: the stride of axis 0 becomes 33

    for what `block` writes, with `axis=0 factor=32 offset=1`: the stride of `axis`, in elements, becomes the next
    number that is `offset` modulo `factor`. `buffer` may be left out where the block writes one.

    Requires: a buffer that is no argument of the function and not swizzled; an axis of it that is not its last, whose
    stride is 1; `0 <= offset < factor`.
    """

    name = "lw-storage-align"
    block: str
    axis: int
    factor: int
    offset: int
    buffer: str = ""

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        buffer = block.outputs[output_index(self, block, self.buffer)]
        name = buffer_name(buffer)
        alloc = buffer.owner
        if not isinstance(alloc, AllocOp):
            rule = f"'{name}' is an argument of the function, whose rows are as the caller has them"
            raise self.error(rule, at=block)
        if alloc.swizzle is not None:
            raise self.error(f"'{name}' is swizzled, which padding would take the place of", at=alloc)
        rank = len(buffer_shape(buffer))
        if not 0 <= self.axis < rank - 1:
            rule = f"axis must be one of '{name}' (rank {rank}) and not its last, got {self.axis}"
            raise self.error(rule, at=alloc)
        if self.factor < 1 or not 0 <= self.offset < self.factor:
            rule = f"factor must be positive and offset in [0, factor), got factor {self.factor}, offset {self.offset}"
            raise self.error(rule, at=alloc)
        return Plan(alloc)

    def rewrite(self, plan: Plan) -> None:
        plan.alloc.align = ArrayAttr([IntAttr(self.axis), IntAttr(self.factor), IntAttr(self.offset)])

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        buffer = nest.stage(self.block).output(self.buffer).buffer
        buffer.align = (self.axis, sizes.of(self.factor), sizes.of(self.offset))

    def describe(self) -> str:
        return f"Pad rows of what {self.block} writes, so that threads read from different banks."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[StorageAlign, ...]:
        return tuple(
            cls(block.block_name, len(buffer_shape(output)) - 2, 32, 1, buffer_name(output))
            for func in functions(module_op)
            for block in blocks_in(func)
            for output in block.outputs
            if isinstance(output.owner, AllocOp) and len(buffer_shape(output)) > 1 and output.owner.swizzle is None
        )
