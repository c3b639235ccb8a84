"""Data races: which threads touched each element of a buffer since they last waited for each other.

Each access leaves a tag, a 63-bit number: the operation, the period (how many barriers the thread has passed), and
the thread. Two accesses of an element, one of them a write, race where they are by two threads of a block in one
period, or by threads of two blocks of a launch. Writes are held to earlier writes at once; reads are kept and held to
the writes of their period when it ends, which finds both a read behind a write and a write behind a read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .kernel_functions import Array
from .loop import InterpretationError

THREAD_BITS = 26
"""Of a tag: up to 64 million threads a launch."""
PERIOD_BITS = 18
"""Of a tag: up to 262,142 barriers a thread."""
NEXT_PERIOD = 1 << THREAD_BITS
THREAD = NEXT_PERIOD - 1
PERIOD = ((1 << PERIOD_BITS) - 1) << THREAD_BITS
OPERATION_SHIFT = THREAD_BITS + PERIOD_BITS
_NONE = -1
"""The tag of what nobody touched: of a period that none reaches."""
_MOST_KEPT = 1 << 20
"""Elements whose reads are kept before they are entered: 16 MB."""

Names = Callable[[int, int], str]
"""Text of an access by the numbers of its operation and its thread."""


class _Readers:
    """For each element a thread that read it, and another one, if there is."""

    def __init__(self, size: int) -> None:
        self.first = np.full(size, _NONE)
        self.second = np.full(size, _NONE)

    def enter(self, elements: Array, tags: Array, alive: int, differ: int) -> None:
        """Enter reads; what differs in the bits `alive` is forgotten, what differs in `differ` is by another one."""
        there = self.first[elements]
        stale = (there < 0) | (((there ^ tags) & alive) != 0)
        if stale.any():
            self.first[elements[stale]] = tags[stale]
            self.second[elements[stale]] = _NONE
            there = self.first[elements]
        other = ((there ^ tags) & differ) != 0
        if other.any():
            self.second[elements[other]] = tags[other]


class Shadow:
    """The accesses of a buffer of `size` elements that threads share, or of one of `own` elements of each block.

    `block_bits` are the bits of a tag by which blocks are told apart, 0 for a buffer that each block has of its own.
    """

    def __init__(self, size: int, own: int, what: str, block_bits: int, names: Names) -> None:
        self.own, self.what, self.block_bits, self.names = own, what, block_bits, names
        self.writers = np.full(size, _NONE)
        self.written: list[Array] = []
        """Elements written in this period."""
        self._size = size
        self._readers: _Readers | None = None
        self._reading_blocks: _Readers | None = None
        self._kept: list[tuple[int, Array, Array]] = []
        self._n_kept = 0
        self._shown: Array | None = None
        self._clusters: tuple[Array, int] | None = None

    def read(self, number: int, elements: Array, threads: Array, tags: Array) -> None:
        """Keep reads by operation `number`: flat elements, and by which of the threads, whose tags are `tags`."""
        self._kept.append((number, elements, threads))
        self._n_kept += len(elements)
        if self._n_kept > _MOST_KEPT:
            self._enter(tags)

    def met(self, elements: Array, tags: Array) -> Array | None:
        """Mask the writes that race with an earlier one; None where none does."""
        there = self.writers[elements]
        apart = there ^ tags
        races = ((apart & PERIOD) == 0) & ((apart & THREAD) != 0)
        if self.block_bits:
            races |= (there >= 0) & ((apart & self.block_bits) != 0)
        return races if races.any() else None

    def claim(self, elements: Array, tags: Array) -> Array | None:
        """Enter writes; masks those whose element another thread writes by the same operation, None for none."""
        self.writers[elements] = tags
        self.written.append(elements)
        if self._shown is not None:
            self._shown[elements] = False
        lost = self.writers[elements] != tags
        return lost if lost.any() else None

    def disown(self, elements: Array) -> None:
        """Forget who wrote elements: what waited for them is held to nobody."""
        self.writers[elements] = _NONE

    def end_period(self, tags: Array, partial: bool) -> None:
        """Hold reads to writes before threads go on to another period; only some of them do where `partial`."""
        if self.written or self.block_bits or partial:
            self._enter(tags)
        if self.written and self._readers is not None:
            elements = np.concatenate(self.written)
            for readers in (self._readers.first, self._readers.second):
                apart = readers[elements] ^ self.writers[elements]
                races = (readers[elements] >= 0) & ((apart & PERIOD) == 0) & ((apart & THREAD) != 0)
                self._refuse(elements, readers, races)
        if not partial:
            self.written.clear()
            self._kept.clear()
            self._n_kept = 0

    def hand_over(self, owners: Array, thread_bits: int) -> None:
        """Make what blocks have written and read that of others, who have waited for them.

        What was read is held to what was written before. `owners` has a block for each. Its threads came to a barrier
        since, so that all of it is of an earlier period to them.
        """
        self.end_launch()
        readers = self._reading_blocks
        for tags in (self.writers, *((readers.first, readers.second) if readers is not None else ())):
            elements = np.flatnonzero(tags >= 0)
            blocks = (tags[elements] & self.block_bits) >> thread_bits
            moved = owners[blocks] != blocks
            kept = tags[elements[moved]] & ~(self.block_bits | PERIOD)
            tags[elements[moved]] = kept | owners[blocks[moved]] << thread_bits

    def show_to(self, clusters: Array, thread_bits: int) -> None:
        """Show what blocks have written to all of their cluster; what was read so far is held to what was written.

        `clusters` has the number of its cluster for each block.
        """
        self.end_launch()
        self._clusters = clusters, thread_bits
        self._shown = self.writers >= 0
        self._reading_blocks = None

    def _is_shown(self, elements: Array, readers: Array) -> Array:
        """Mask the reads of what was shown to the reader's cluster."""
        if self._shown is None or self._clusters is None:
            return np.zeros(len(elements), np.bool_)
        clusters, thread_bits = self._clusters
        found = (tags[elements] for tags in (readers, self.writers))
        by, of = (np.where(tags >= 0, (tags & self.block_bits) >> thread_bits, 0) for tags in found)
        shown: Array = self._shown[elements] & (clusters[by] == clusters[of])
        return shown

    def end_launch(self) -> None:
        """Hold what some blocks read to what others wrote."""
        if self._reading_blocks is not None:
            elements = np.flatnonzero(self.writers >= 0)
            for readers in (self._reading_blocks.first, self._reading_blocks.second):
                apart = (readers[elements] ^ self.writers[elements]) & self.block_bits
                races = (readers[elements] >= 0) & (apart != 0) & ~self._is_shown(elements, readers)
                self._refuse(elements, readers, races)

    def race(self, element: int, first: int, second: int) -> InterpretationError:
        """The error of two accesses, by their tags."""
        blocks = (first ^ second) & self.block_bits
        why = "blocks of one launch do not wait for each other" if blocks else "no barrier stands in between"
        accesses = "\n".join(f"  {self.name(tag)}" for tag in (first, second))
        return InterpretationError(f"data race: element {element % self.own} of {self.what}: {why}\n{accesses}")

    def name(self, tag: int) -> str:
        """Text of an access."""
        return self.names(tag >> OPERATION_SHIFT, tag & THREAD)

    def _refuse(self, elements: Array, readers: Array, races: Array) -> None:
        if races.any():
            element = int(elements[np.argmax(races)])
            raise self.race(element, int(self.writers[element]), int(readers[element]))

    def _enter(self, tags: Array) -> None:
        if not self._kept:
            return
        elements, read = _together(self._kept, tags)
        self._kept.clear()
        self._n_kept = 0
        if self._readers is None:
            self._readers = _Readers(self._size)
        self._readers.enter(elements, read, PERIOD, THREAD)
        if self.block_bits:
            if self._reading_blocks is None:
                self._reading_blocks = _Readers(self._size)
            self._reading_blocks.enter(elements, read, 0, self.block_bits)


def _together(kept: Sequence[tuple[int, Array, Array]], tags: Array) -> tuple[Array, Array]:
    """The elements of several reads, and their tags."""
    elements = np.concatenate([elements for _, elements, _ in kept])
    return elements, np.concatenate([tags[threads] | number << OPERATION_SHIFT for number, _, threads in kept])
