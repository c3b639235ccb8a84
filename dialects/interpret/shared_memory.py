"""Memory that threads of a launch share: of each block, or of all of them, held to what was written and by whom."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from .kernel_functions import Array
from .kernel_program import unwritten
from .races import OPERATION_SHIFT, THREAD, Shadow
from .thread_memory import Access, Memory, chosen, shaped
from .threads import Threads

_UNWRITTEN, _READY, _IN_FLIGHT = 0, 1, 2
"""States of an element; in flight is what a copy that nobody has waited for will write."""


class Shared(Memory):
    """A buffer that threads share: of each block, or of all of them.

    Held to what was written, and to whom: a read of what nobody has written, or of what a copy will write that was not
    waited for, and two accesses that race, are errors. Two threads may write one value to one element.
    """

    def __init__(
        self, threads: Threads, label: str, array: Array, state: Array, per_block: int = 0, shows: bool = False
    ) -> None:
        super().__init__(threads, label, per_block or array.size)
        self.array, self.state = array, state
        self.shows = shows
        """True for memory of the caller, where all that is stored must be known."""
        self.what = "shared buffer" if per_block else "buffer"
        self.base = threads.of_block * per_block if per_block and threads.n_blocks > 1 else None
        bits = 0 if per_block else threads.block_bits
        self.shadow = Shadow(array.size, self.size, str(self), bits, threads.named)
        self.per_block = per_block
        self.by_threads: Array | None = np.zeros(array.size, np.bool_) if threads.watches_products else None
        """Elements that threads stored, and that no fence has shown yet to asynchronous readers."""
        self.read_by: Array | None = None
        """Of elements that products in flight read: one more than the number of the operation, else 0."""
        self.read_since = np.ones(array.size, np.bool_) if threads.share_boxes and per_block else None
        """Elements that were read since the blocks of a cluster waited for each other; all before they do."""

    def load(self, access: Access, index: Any, on: Array | None) -> Any:
        elements, threads, shape, on = self._spread(access, index, on)
        states = self.state[elements]
        if not (states == _READY).all():
            self._note_states(access, elements, threads, states, shape, on)
        else:
            self.loaded(access, None)
        self._read(access.number, elements, threads)
        return shaped(self.array[elements], shape, on)

    def _read(self, number: int, elements: Array, threads: Array) -> None:
        self.shadow.read(number, elements, threads, self.threads.tags)
        if self.read_since is not None:
            self.read_since[elements] = True

    def store(self, access: Access, index: Any, on: Array | None, value: Any) -> None:
        elements, threads, shape, on = self._spread(access, index, on)
        unknown = self.stored(access) if self.threads.unknown else None
        if unknown is not None and self.shows:
            self.threads.require_known(access.slot, self.threads.operations[access.number], "what is stored")
        self._claim(access.number, elements, threads, chosen(value, shape, on))
        self.state[elements] = _READY if unknown is None else np.where(chosen(unknown, shape, on), _UNWRITTEN, _READY)
        if self.by_threads is not None:
            self.by_threads[elements] = True

    def end_period(self, partial: bool) -> None:
        self.shadow.end_period(self.threads.tags, partial)

    def hand_over(self, owners: Array) -> None:
        """Make what blocks have written that of others: `owners` has a block for each."""
        self.shadow.hand_over(owners, self.threads.thread_bits)

    def show_to(self, clusters: Array) -> None:
        """Show what blocks have written to all of their cluster: `clusters` has its number for each block."""
        self.shadow.show_to(clusters, self.threads.thread_bits)

    def have_read(self) -> None:
        """Let other blocks of a cluster, which have waited, write what was read."""
        if self.read_since is not None:
            self.read_since[:] = False

    def _spread(
        self, access: Access, index: Any, on: Array | None
    ) -> tuple[Array, Array, tuple[int, ...], Array | None]:
        elements, threads, shape, on = self.spread(access, index, on)
        return self._of_blocks(elements, threads), threads, shape, on

    def _of_blocks(self, elements: Array, threads: Array) -> Array:
        """Elements of the buffers of threads' blocks among those of all blocks."""
        return elements if self.base is None else elements + self.base[threads]

    def _inside(self, number: int, elements: Array, threads: Array) -> Array:
        """The same of elements that may be outside, which is an error."""
        if elements.size and (elements.min() < 0 or elements.max() >= self.size):
            bad = int(np.argmax((elements < 0) | (elements >= self.size)))
            raise self.error(f"element {int(elements[bad])} is outside of {self}", number, threads[bad])
        return self._of_blocks(elements, threads)

    def _claim(self, number: int, elements: Array, threads: Array, values: Array) -> None:
        """Write values, held to what other threads write."""
        self._refuse_in_flight(number, elements, threads)
        tags = self.threads.tags[threads] | number << OPERATION_SHIFT
        met = self.shadow.met(elements, tags)
        if met is not None:
            self._require_equal(elements, tags, values, met, self.shadow.writers[elements])
        lost = self.shadow.claim(elements, tags)
        self.array[elements] = values
        if lost is not None:
            self._require_equal(elements, tags, values, lost, self.shadow.writers[elements])

    def _require_equal(self, elements: Array, tags: Array, values: Array, where: Array, others: Array) -> None:
        """Require that values are those that are there, written by others."""
        unlike = where.copy()
        unlike[where] = _bits(values[where]) != _bits(self.array[elements[where]])
        if unlike.any():
            place = int(np.argmax(unlike))
            raise self.shadow.race(int(elements[place]), int(others[place]), int(tags[place]))

    # -- asynchronous copies ------------------------------------------------------------------------------------------

    def take_off(self, access: Access, index: Any, on: Array | None) -> tuple[Array, Array, Array | None]:
        """Begin to write elements that nobody may touch before they land; returns them flat, by whom, and the mask."""
        elements, threads, _, on = self._spread(access, index, on)
        return self._take_off(access.number, elements, threads), threads, on

    def _take_off(self, number: int, elements: Array, threads: Array) -> Array:
        self._refuse_in_flight(number, elements, threads)
        tags = self.threads.tags[threads] | number << OPERATION_SHIFT
        races = self.shadow.met(elements, tags)
        others = self.shadow.writers[elements]
        if races is None:
            races = self.shadow.claim(elements, tags)
            others = self.shadow.writers[elements]
        if races is not None:
            place = int(np.argmax(races))
            raise self.shadow.race(int(elements[place]), int(others[place]), int(tags[place]))
        self.state[elements] = _IN_FLIGHT
        return elements

    def land(self, number: int, elements: Array, threads: Array, values: Array) -> None:
        """Write what was on its way: from here on it is as if the thread had written it now."""
        self.state[elements] = _READY
        self.array[elements] = values
        self.shadow.claim(elements, self.threads.tags[threads] | number << OPERATION_SHIFT)
        if self.by_threads is not None:
            self.by_threads[elements] = True

    def read_in_bulk(self, number: int, elements: Array, threads: Array) -> Array:
        """The elements that the copy engine reads for threads, which are inside."""
        if (self.state[elements] != _READY).any():
            place = int(np.argmax(self.state[elements] != _READY))
            raise self.error(f"element {int(elements[place])} of {self} was not written", number, threads[place])
        self.shadow.read(number, elements, threads, self.threads.tags)
        return self.array[elements]

    def take_off_in_bulk(self, number: int, elements: Array, by: Array) -> Array:
        """Begin to write elements `(threads, n)`, each row for a thread; returns where they are in the buffer."""
        threads = np.repeat(by, elements.shape[1])
        return self._take_off(number, self._inside(number, elements.reshape(-1), threads), threads)

    def require_unread(self, number: int, elements: Array, by: Array) -> None:
        """Refuse to write elements `(blocks, n)`, each row in a block, that it may read: it was not waited for."""
        threads = np.repeat(by, elements.shape[1])
        flat = self._inside(number, elements.reshape(-1), threads)
        if self.read_since is not None and self.read_since[flat].any():
            place = int(np.argmax(self.read_since[flat]))
            rule = (
                f"element {self._own(flat[place])} of {self} is written for a cluster that has not waited for its reads"
            )
            raise self.error(rule, number, threads[place])

    def land_in_bulk(self, elements: Array, values: Array) -> None:
        """Write what the copy engine brought: whoever waited sees it, asynchronous readers without a fence."""
        self.state[elements] = _READY
        self.array[elements] = values
        self.shadow.disown(elements)
        if self.by_threads is not None:
            self.by_threads[elements] = False

    # -- products of warp groups --------------------------------------------------------------------------------------

    def read_in_product(self, number: int, elements: Array, threads: Array) -> Array:
        """Begin to read elements `(groups, ...)` of blocks, each group by one of its threads, until `end_product`."""
        shape = elements.shape
        by = np.repeat(threads, prod(shape[1:]))
        flat = self._inside(number, elements.reshape(-1), by)
        self._require_seen(number, flat, by)
        self._read(number, flat, by)
        if self.read_by is None:
            self.read_by = np.zeros(self.array.size, np.int64)
        self.read_by[flat] = number + 1
        found: Array = self.array[flat].reshape(shape)
        return found

    def end_product(self, number: int, elements: Array, threads: Array) -> None:
        """End reading elements: only now others may write to them, behind a barrier."""
        by = np.repeat(threads, prod(elements.shape[1:]))
        flat = self._of_blocks(elements.reshape(-1), by)
        self._read(number, flat, by)
        assert self.read_by is not None
        self.read_by[flat] = np.where(self.read_by[flat] == number + 1, 0, self.read_by[flat])

    def show(self, on: Array | None) -> None:
        """Show asynchronous readers what threads have stored."""
        if self.by_threads is None or not self.by_threads.any():
            return
        stored = np.flatnonzero(self.by_threads)
        if on is not None:
            stored = stored[np.isin(self.shadow.writers[stored] & THREAD, self.threads.tags[on] & THREAD)]
        self.by_threads[stored] = False

    def _require_seen(self, number: int, flat: Array, by: Array) -> None:
        """Refuse a product of what is not there yet, or not for asynchronous readers."""
        states = self.state[flat]
        for bad, rule in (
            (states == _IN_FLIGHT, "is read before the copy to it was waited for"),
            (states == _UNWRITTEN, "is read by a product, and was not written"),
            (
                self.by_threads is not None and self.by_threads[flat],
                "was stored, and no proxy_fence shows it to a product",
            ),
        ):
            if np.any(bad):
                place = int(np.argmax(bad))
                written = "" if states[place] == _UNWRITTEN else self._writer(flat[place])
                raise self.error(f"element {self._own(flat[place])} of {self} {rule}", number, by[place], written)

    def _refuse_in_flight(self, number: int, elements: Array, threads: Array) -> None:
        if self.read_by is not None and self.read_by[elements].any():
            place = int(np.argmax(self.read_by[elements]))
            reader = self.threads.named(int(self.read_by[elements[place]]) - 1, self.threads.tag(int(threads[place])))
            rule = f"element {self._own(elements[place])} of {self} is written while a product in flight reads it"
            raise self.error(rule, number, threads[place], reader)
        flying = self.state[elements] == _IN_FLIGHT
        if flying.any():
            place = int(np.argmax(flying))
            rule = f"element {self._own(elements[place])} of {self} is written while a copy to it is in flight"
            raise self.error(rule, number, threads[place], self._writer(elements[place]))

    def _note_states(
        self,
        access: Access,
        elements: Array,
        threads: Array,
        states: Array,
        shape: tuple[int, ...],
        on: Array | None,
    ) -> None:
        """Refuse to read what is in flight; keep in mind what was not written."""
        flying = states == _IN_FLIGHT
        if flying.any():
            place = int(np.argmax(flying))
            rule = f"element {self._own(elements[place])} of {self} is read before the copy to it was waited for"
            raise self.error(rule, access.number, threads[place], self._writer(elements[place]))
        missing = states == _UNWRITTEN
        place = int(np.argmax(missing))
        self.loaded(access, shaped(missing, shape, on), self._own(elements[place]), int(threads[place]))

    def _writer(self, element: Any) -> str:
        return self.shadow.name(int(self.shadow.writers[element]))

    def _own(self, element: Any) -> int:
        """The element in its own block's buffer."""
        return int(element) % self.size


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def written_state(size: int, is_written: bool) -> Array:
    """The states of a buffer's elements, of which all or none are written."""
    return np.full(size, _READY if is_written else _UNWRITTEN, np.uint8)


def block_memory(threads: Threads, label: str, size: int, element: Attribute) -> Shared:
    """Shared memory of each of the blocks that run."""
    total = size * threads.n_blocks
    return Shared(threads, label, unwritten(total, element), written_state(total, False), size)
