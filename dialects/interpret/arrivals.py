"""Arrivals of thread blocks at counters: who comes last, and whom it need not race with."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from .kernel_functions import Array
from .located import located
from .loop import InterpretationError
from .threads import Threads


class Counters:
    """The counters of a launch: how many blocks have come to each, and which."""

    def __init__(self, label: str, count: int) -> None:
        self.label = label
        self.arrived: list[list[int]] = [[] for _ in range(count)]

    def require_zeros(self, op: Operation) -> None:
        """Refuse a launch that ends with blocks that have come and nobody who came last."""
        for number, blocks in enumerate(self.arrived):
            if blocks:
                rule = f"{len(blocks)} blocks have come to counter {number} of '{self.label}', and none is the last"
                raise InterpretationError(f"{rule}: {located(op)}")


class Arrivals:
    """The counters of a launch by what allocates them."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self._counters: dict[Operation, Counters] = {}

    def counters(self, op: Operation, label: str, count: int) -> Counters:
        """The counters that an operation allocates, which are one for all blocks."""
        return self._counters.setdefault(op, Counters(label, count))

    def end(self, op: Operation) -> None:
        """End a launch, which leaves zeros."""
        for counters in self._counters.values():
            counters.require_zeros(op)
        self._counters.clear()

    def arrive(self, op: Operation, counters: Counters, index: Any, parts: int) -> Array:
        """Let the blocks that run come to counters, in their order; masks the threads of the last ones.

        What those who came before have written is the last one's from then on.
        """
        threads = self.threads
        threads.wait_for_each_other(op)
        come = np.arange(threads.n_blocks) if threads.on is None else np.unique(threads.of_block[threads.on])
        last = np.zeros(threads.n_blocks, np.bool_)
        owners: dict[int, int] = {}
        for block, number in zip(come, self._of_blocks(op, index, len(counters.arrived))[come], strict=True):
            here = counters.arrived[number]
            here.append(int(threads.blocks[block]))
            if len(here) == parts:
                last[block] = True
                owners |= dict.fromkeys(here, here[-1])
                here.clear()
        if owners:
            threads.hand_over(owners)
        return last[threads.of_block]

    def _of_blocks(self, op: Operation, index: Any, count: int) -> Array:
        """The counter of each block, which all of its threads name."""
        threads = self.threads
        found = np.broadcast_to(index, (threads.n,)).reshape(threads.n_blocks, threads.per_block)
        on = np.ones(threads.n, np.bool_) if threads.on is None else threads.on
        running = on.reshape(found.shape)
        if ((found != found[:, :1]) & running).any():
            raise InterpretationError(f"the threads of a block come to one counter: {located(op)}")
        own: Array = found[:, 0]
        bad = running[:, 0] & ((own < 0) | (own >= count))
        if bad.any():
            number = int(own[np.argmax(bad)])
            raise InterpretationError(f"counter {number} is outside of {count} counters: {located(op)}")
        return own
