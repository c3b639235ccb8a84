"""Bulk copies in flight, and the phases of the barriers that count their bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Operation

from .kernel_functions import Array
from .located import located
from .loop import InterpretationError
from .shared_memory import Shared
from .threads import Threads


@dataclass
class _Barrier:
    """A barrier of a block: arrivals that end a phase, those still to come, bytes expected, phases that have ended."""

    arrivals: int
    left: int
    expected: int = 0
    phases: int = 0
    copies: list[tuple[Shared, Array, Array, int]] = field(default_factory=list)


class BulkCopies:
    """The bulk copies of all blocks that are under way."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self.start()

    def start(self) -> None:
        """Begin with no barriers."""
        self._barriers: dict[tuple[int, int, int], _Barrier] = {}

    def start_barriers(self, memory: Shared, index: Array, by: Array, arrivals: int) -> None:
        """Make the barrier that each of the threads names, for its block."""
        for which, thread in zip(index, by, strict=True):
            key = (id(memory), int(self.threads.of_block[thread]), int(which))
            self._barriers[key] = _Barrier(arrivals, arrivals)

    def expect(self, op: Operation, memory: Shared, index: Array, by: Array, nbytes: int) -> None:
        """Arrive once at each, and expect bytes."""
        for which, thread in zip(index, by, strict=True):
            barrier = self._at(op, memory, int(self.threads.of_block[thread]), int(which))
            if barrier.left == 0:
                raise InterpretationError(f"more arrivals than a phase of a barrier has\n  {located(op)}")
            barrier.left -= 1
            barrier.expected += nbytes

    def begin(
        self, memory: Shared, index: Array, by: Array, target: Shared, elements: Array, copied: Array, nbytes: int
    ) -> None:
        """Let rows `(threads, n)` of values be copied to elements, each counted by a barrier."""
        rows = elements.reshape(copied.shape)
        for which, thread, row, values in zip(index, by, rows, copied, strict=True):
            key = (id(memory), int(self.threads.of_block[thread]), int(which))
            if key in self._barriers:
                self._barriers[key].copies.append((target, row, values, nbytes))

    def await_phase(self, op: Operation, memory: Shared, which: Any, parity: Any) -> None:
        """Wait for the phase of a parity in all blocks; InterpretationError where it does not end."""
        first = np.arange(0, self.threads.n, self.threads.per_block)
        index, wanted = (np.broadcast_to(each, self.threads.n)[first] for each in (which, parity))
        for block, (one, odd) in enumerate(zip(index, wanted, strict=True)):
            if self.threads.on is None or self.threads.on[first[block]]:
                self._await(op, self._at(op, memory, block, int(one)), int(odd))

    def _await(self, op: Operation, barrier: _Barrier, parity: int) -> None:
        if barrier.phases % 2 != parity:
            return
        brought = sum(nbytes for *_, nbytes in barrier.copies)
        if barrier.left or barrier.expected != brought:
            rule = f"a phase of a barrier never ends: {barrier.left} arrivals are left, {brought} bytes come"
            raise InterpretationError(f"{rule}, {barrier.expected} are expected\n  {located(op)}")
        for target, elements, values, _ in barrier.copies:
            target.land_in_bulk(elements, values)
        barrier.copies.clear()
        barrier.left, barrier.expected = barrier.arrivals, 0
        barrier.phases += 1

    def _at(self, op: Operation, memory: Shared, block: int, which: int) -> _Barrier:
        found = self._barriers.get((id(memory), block, which))
        if found is None:
            raise InterpretationError(f"barrier {which} of {memory} was not started\n  {located(op)}")
        return found
