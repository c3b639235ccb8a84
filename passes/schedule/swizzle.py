"""Change the order of chunks in the rows of a shared buffer, against bank conflicts, without padding."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp

from ...dialects.buffers import SWIZZLES
from ...dialects.loop import AllocOp, blocks_in
from ..analysis.nest import buffer_name, find_block, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._staging import output_index


@dataclass(frozen=True)
class Plan:
    """The allocation to swizzle."""

    alloc: AllocOp


@dataclass(frozen=True)
class Swizzle(Primitive[Plan]):
    """`alloc "A" : memref<64x64xf16, "shared">` -> `alloc "A" swizzle 128`: chunk c of row r lies at `c xor (r mod 8)`

    for what `block` writes, in chunks of 16 bytes. Within rows of `span` bytes, or the half or quarter of it that
    divides a row of what is kept on a GPU, eight rows then have the same chunk in different banks, and no byte is lost.
    Vectors of up to 16 bytes stay together. `buffer` may be left out where the block writes one.

    Requires: a buffer in scope shared, which storage_align does not pad; a span of 32, 64 or 128 bytes.
    """

    name = "lw-swizzle"
    block: str
    span: int = 128
    buffer: str = ""

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        buffer = block.outputs[output_index(self, block, self.buffer)]
        name, alloc = buffer_name(buffer), buffer.owner
        if not isinstance(alloc, AllocOp) or alloc.scope != "shared":
            raise self.error(f"'{name}' must be in scope shared, whose banks a swizzle is for", at=block)
        if alloc.alignment is not None:
            raise self.error(f"'{name}' is padded by storage_align; a swizzle takes the place of that", at=alloc)
        if self.span not in SWIZZLES:
            raise self.error(f"span must be 32, 64 or 128 bytes, got {self.span}", at=alloc)
        return Plan(alloc)

    def rewrite(self, plan: Plan) -> None:
        plan.alloc.swizzle = IntAttr(self.span)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        """No extent changes."""

    def describe(self) -> str:
        return f"Turn the chunks in rows of what {self.block} writes, so that threads read from different banks."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Swizzle, ...]:
        return tuple(
            cls(block.block_name, SWIZZLES[0], buffer_name(output))
            for func in functions(module_op)
            for block in blocks_in(func)
            for output in block.outputs
            if isinstance(output.owner, AllocOp) and output.owner.scope == "shared" and output.owner.align is None
        )
