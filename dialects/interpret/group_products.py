"""Products of warp groups in flight: the groups in which they were committed, and what they read and add to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Operation

from ..intrinsics_cuda import WARP_GROUP
from .kernel_functions import Array
from .located import located
from .loop import InterpretationError
from .shared_memory import Shared
from .thread_memory import Registers
from .threads import Threads

Read = tuple[Shared, int, Array, Array]
"""Shared memory, the number of the operation that reads it, the elements, and the threads that read for groups."""


@dataclass
class _Group:
    """A group of products: the elements that they read, and the registers that they add to."""

    reads: list[Read] = field(default_factory=list)
    sums: list[tuple[Registers, Sequence[int]]] = field(default_factory=list)


class GroupProducts:
    """The products of all warp groups that are under way, which all come to the same operations."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self.start()

    def start(self) -> None:
        """Begin with none."""
        self._open = _Group()
        self._committed: list[_Group] = []
        self._unfenced: set[int] = set()
        """Slots of fragments that were packed since the last fence."""

    def leaders(self, op: Operation) -> Array:
        """The first thread of each warp group; InterpretationError unless all threads, in whole groups, come to it."""
        threads = self.threads
        if threads.per_block % WARP_GROUP:
            rule = f"a block of {threads.per_block} threads is not made of whole warp groups"
            raise InterpretationError(f"{rule}\n  {located(op)}")
        if threads.on is not None and not threads.on.all():
            threads.require_together(op, threads.numbers // WARP_GROUP, threads.n // WARP_GROUP, "a warp group")
            raise InterpretationError(f"products of some of the warp groups alone are not interpreted\n  {located(op)}")
        return np.arange(0, threads.n, WARP_GROUP)

    def packed(self, slot: int) -> None:
        """Note that threads have written a fragment to registers."""
        self._unfenced.add(slot)

    def fence(self) -> None:
        """Show products the registers that threads have written."""
        self._unfenced.clear()

    def require_fenced(self, op: Operation, slot: int) -> None:
        """Refuse a fragment that no fence has shown to products."""
        if slot in self._unfenced:
            rule = "a fragment was packed since the last wgmma_fence, and a product reads it"
            raise InterpretationError(f"{rule}\n  {located(op)}")

    def begin(self, reads: Sequence[Read], sums: Registers, rows: Sequence[int]) -> None:
        """Let products go on."""
        self._open.reads += reads
        self._open.sums.append((sums, rows))

    def commit(self) -> None:
        """Close a group."""
        self._committed.append(self._open)
        self._open = _Group()

    def wait(self, pending: int) -> None:
        """End all groups but the last `pending`."""
        ended = self._committed[: max(0, len(self._committed) - pending)]
        self._committed = self._committed[len(ended) :]
        for group in ended:
            for memory, number, elements, threads in group.reads:
                memory.end_product(number, elements, threads)
        left = {
            (id(sums), row) for group in (*self._committed, self._open) for sums, rows in group.sums for row in rows
        }
        for group in ended:
            for sums, rows in group.sums:
                for row in rows:
                    if (id(sums), row) not in left:
                        sums.in_products.pop(row, None)

    def require_waited_for(self, op: Operation) -> None:
        """Refuse a launch that ends with products in flight."""
        if self._committed or self._open.sums:
            raise InterpretationError(f"a product of a warp group was not waited for\n  {located(op)}")
