"""The program of a launch: its steps, its threads, and what it takes over from the function around it."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Block, Operation, SSAValue

from .. import kernel
from .arrivals import Arrivals
from .async_copies import AsyncCopies
from .bulk_copies import BulkCopies
from .group_products import GroupProducts
from .kernel_program import Handler, Program, Step
from .threads import Threads


class ThreadProgram(Program):
    """The steps of a launch, on the values of the function around it."""

    def __init__(
        self, around: Program, op: kernel.LaunchOp, handlers: Mapping[type[Operation], Handler], others: Handler
    ) -> None:
        super().__init__(handlers, others)
        self.values = around.values
        self.around = around
        self.threads = Threads(op, op.grid_size, op.block_size, op.cluster_size)
        self.arrivals = Arrivals(self.threads)
        self.copies = AsyncCopies(self.threads)
        self.group_products = GroupProducts(self.threads)
        self.bulk_copies = BulkCopies(self.threads)
        self.vectors: list[tuple[int, int]] = []
        """Slots of vectors from around the launch, there and here."""
        self.buffers: list[tuple[SSAValue, int, int]] = []
        """Buffers from around the launch, with their slots there and here."""
        self.op = op
        self.held_bytes = 1
        """Registers and shared memory of a block of threads."""
        self._blocks: set[Block] = set()

    def block(self, block: Block) -> list[Step]:
        self._blocks.add(block)
        return super().block(block)

    def slot(self, value: SSAValue) -> int:
        found = self._slots.get(value)
        if found is None:
            found = self._slots[value] = self.new_slot() if self._is_inside(value) else self._slot_around(value)
        return found

    def _slot_around(self, value: SSAValue) -> int:
        """The place of a value from around the launch; vectors and buffers look otherwise here than there."""
        outside = self.around.slot(value)
        if isinstance(value.type, MemRefType):
            self.buffers.append((value, outside, self.new_slot()))
            return self.buffers[-1][2]
        if isinstance(value.type, VectorType):
            self.vectors.append((outside, self.new_slot()))
            return self.vectors[-1][1]
        return outside

    def _is_inside(self, value: SSAValue) -> bool:
        """True for what an operation of the launch defines, all of which come before those that use it."""
        owner = value.owner
        return (owner if isinstance(owner, Block) else owner.parent) in self._blocks
