"""The memory of a launch: registers of each thread, shared memory of each block, buffers of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from .. import kernel
from ..element import element_bytes
from .kernel_functions import Array
from .kernel_program import unwritten
from .loop import InterpretationError
from .races import OPERATION_SHIFT, Shadow
from .threads import Threads, Unknown

_UNWRITTEN, _READY, _IN_FLIGHT = 0, 1, 2
"""States of an element; in flight is what a copy that nobody has waited for will write."""


class Access:
    """The elements that an operation touches, from its index on, and the alignment that it says it has.

    `number` is the operation's, `slot` that of the value that is loaded or stored.
    """

    def __init__(
        self, number: int, slot: int, kind: Attribute, offset: int = 0, stride: int = 1, align_bytes: int = 0
    ) -> None:
        self.number, self.slot = number, slot
        self.lanes = kernel.lanes_of(kind)
        self.is_vector = isinstance(kind, VectorType)
        self.offset, self.stride = offset, stride
        self.ahead: Any = (np.arange(self.lanes) * stride + offset)[:, None] if self.is_vector else offset
        self.align = max(1, align_bytes // element_bytes(kernel.element_of(kind)))

    def rows(self, first: int) -> slice | int | Array:
        """The elements from `first` on, for an index that all threads have in common."""
        if not self.is_vector:
            return first
        if self.stride == 1:
            return slice(first, first + self.lanes)
        return first + np.arange(self.lanes) * self.stride


class Memory(ABC):
    """A buffer as the threads see it. `on` are lanes that are on, `(threads,)` or `(lanes, threads)`; None for all."""

    def __init__(self, threads: Threads, label: str, size: int) -> None:
        self.threads, self.label, self.size = threads, label, size
        self.read_first: Callable[[], str] | None = None
        """Text of the read that something stored here comes from, which was of memory that nobody had written."""

    what = "buffer"

    def __str__(self) -> str:
        return f"{self.what} '{self.label}' of {self.size} elements"

    @abstractmethod
    def load(self, access: Access, index: Any, on: Array | None) -> Any:
        """The elements that each thread reads, 0 where lanes are off."""

    @abstractmethod
    def store(self, access: Access, index: Any, on: Array | None, value: Any) -> None:
        """Write the elements of each thread."""

    def spread(
        self, access: Access, index: Any, on: Array | None
    ) -> tuple[Array, Array, tuple[int, ...], Array | None]:
        """The elements, flat, the threads that touch them, the shape of the value, and which of it is touched.

        InterpretationError for an element outside of the buffer, or an address that is not aligned as it is said to be.
        """
        n = self.threads.n
        shape = (access.lanes, n) if access.is_vector else (n,)
        places = np.broadcast_to(index + access.ahead, shape)
        if on is None:
            elements, threads = places.reshape(-1), self.threads.tiled(access.lanes)
        else:
            on = np.broadcast_to(on, shape)
            elements, threads = places[on], np.broadcast_to(self.threads.numbers, shape)[on]
        if elements.size and (elements.min() < 0 or elements.max() >= self.size):
            bad = np.argmax((elements < 0) | (elements >= self.size))
            raise self.error(f"element {int(elements[bad])} is outside of {self}", access.number, threads[bad])
        if access.align > 1:
            self._require_aligned(access, np.broadcast_to(index + access.offset, (n,)), threads)
        return elements, threads, shape, on

    def _require_aligned(self, access: Access, first: Array, threads: Array) -> None:
        bad = first[threads] % access.align != 0
        if bad.any():
            thread = threads[np.argmax(bad)]
            rule = f"element {int(first[thread])} of {self} is where {access.align} elements are said to be aligned"
            raise self.error(f"misaligned access: {rule}", access.number, thread)

    def error(self, rule: str, number: int, thread: Any, other: str = "") -> InterpretationError:
        """The error of an access, and of what it meets."""
        accesses = "".join(
            f"\n  {text}" for text in (self.threads.named(number, self.threads.tag(int(thread))), other) if text
        )
        return InterpretationError(f"{rule}{accesses}")

    def loaded(self, access: Access, missing: Array | None, element: int = 0, thread: int = 0) -> None:
        """Keep in mind which lanes of what was loaded nobody has written; the first one's element and thread."""
        unknown = self.threads.unknown
        if missing is not None:
            read = self.read_first or partial(self._unwritten, access.number, self.threads.tag(thread), element)
            unknown[access.slot] = Unknown(missing, read)
        elif unknown:
            unknown.pop(access.slot, None)

    def _unwritten(self, number: int, tag: int, element: int) -> str:
        return f"{self.threads.named(number, tag)}: element {element} of {self} was not written"

    def stored(self, access: Access) -> Any:
        """The lanes of what is stored that nobody has written; None where there are none."""
        found = self.threads.unknown.get(access.slot)
        if found is None:
            return None
        self.read_first = found.read
        return found.lanes


class Registers(Memory):
    """A buffer of scope local: each thread has its own; a row for each element, with a column for each thread."""

    what = "local buffer"

    def __init__(self, threads: Threads, label: str, size: int, element: Attribute) -> None:
        super().__init__(threads, label, size)
        self.array = unwritten((size, threads.n), element)
        self.ready = [False] * size
        """The elements that all threads have written."""
        self.written: Array | None = None
        """The elements that some have written."""

    def load(self, access: Access, index: Any, on: Array | None) -> Any:
        if np.ndim(index) or on is not self.threads.on:
            return self._load_apart(access, index, on)
        rows = self._rows(access, int(index))
        found = self.array[rows]
        self._note_missing(access, rows)
        return found.copy() if isinstance(rows, int | slice) else found

    def store(self, access: Access, index: Any, on: Array | None, value: Any) -> None:
        unknown = self.stored(access) if self.threads.unknown else None
        if np.ndim(index) or on is not self.threads.on:
            self._store_apart(access, index, on, value, unknown)
            return
        rows = self._rows(access, int(index))
        self.array[rows] = value if on is None else np.where(on, value, self.array[rows])
        if unknown is None and on is None:
            for row in _listed(rows):
                self.ready[row] = True
            return
        known = np.broadcast_to(True if unknown is None else ~unknown, (access.lanes, self.threads.n))
        for row, good in zip(_listed(rows), known, strict=True):
            if not (self.ready[row] and unknown is None):
                written = self._written()[row]
                written[...] = good if on is None else np.where(on, good, written | self.ready[row])
                self.ready[row] = bool(np.all(written))

    def _rows(self, access: Access, index: int) -> int | slice | Array:
        first = index + access.offset
        last = first + (access.lanes - 1) * access.stride
        if not (0 <= first < self.size and 0 <= last < self.size) or (access.align > 1 and first % access.align):
            self.spread(access, index, self.threads.on)
        return access.rows(first)

    def _written(self) -> Array:
        """The elements that each thread has written; those in `ready` may be missing."""
        if self.written is None:
            self.written = np.zeros(self.array.shape, np.bool_)
        return self.written

    def _note_missing(self, access: Access, rows: int | slice | Array) -> None:
        """Keep in mind what is loaded of rows and was not written."""
        missing = None
        if not all(self.ready[row] for row in _listed(rows)):
            ready = np.array([self.ready[row] for row in _listed(rows)])
            missing = ~self._written()[rows] & ~(ready[:, None] if access.is_vector else ready[0])
            if self.threads.on is not None:
                missing &= self.threads.on
        if missing is None or not missing.any():
            self.loaded(access, None)
            return
        row, thread = divmod(int(np.argmax(missing)), self.threads.n)
        self.loaded(access, missing, _listed(rows)[row], thread)

    def _cells(self, access: Access, index: Any, on: Array | None) -> tuple[Array, tuple[int, ...], Array | None]:
        """Places among the elements of all threads."""
        elements, threads, shape, on = self.spread(access, index, on)
        return elements * self.threads.n + threads, shape, on

    def _load_apart(self, access: Access, index: Any, on: Array | None) -> Any:
        cells, shape, on = self._cells(access, index, on)
        missing = ~self._all_written().reshape(-1)[cells]
        if missing.any():
            element, thread = divmod(int(cells[np.argmax(missing)]), self.threads.n)
            self.loaded(access, _shaped(missing, shape, on), element, thread)
        else:
            self.loaded(access, None)
        return _shaped(self.array.reshape(-1)[cells], shape, on)

    def _store_apart(self, access: Access, index: Any, on: Array | None, value: Any, unknown: Any) -> None:
        cells, shape, on = self._cells(access, index, on)
        self.array.reshape(-1)[cells] = _chosen(value, shape, on)
        self._all_written().reshape(-1)[cells] = True if unknown is None else ~_chosen(unknown, shape, on)
        if unknown is not None:
            self.ready = [bool(row.all()) for row in self._written()]

    def _all_written(self) -> Array:
        written = self._written()
        for row, is_ready in enumerate(self.ready):
            if is_ready:
                written[row] = True
        return written


class Argument(Memory):
    """A buffer in global memory that a launch only reads, and that is written."""

    what = "buffer"

    def __init__(self, threads: Threads, label: str, array: Array) -> None:
        super().__init__(threads, label, array.size)
        self.array = array

    def load(self, access: Access, index: Any, on: Array | None) -> Any:
        elements, _, shape, on = self.spread(access, index, on)
        self.loaded(access, None)
        return _shaped(self.array[elements], shape, on)

    def store(self, access: Access, index: Any, on: Array | None, value: Any) -> None:
        raise AssertionError("a buffer that is written to is shared")


class Shared(Memory):
    """A buffer that threads share: of each block, or of all of them.

    Held to what was written, and to whom: a read of what nobody has written, or of what a copy will write that was not
    waited for, and two accesses that race, are errors. Two threads may write one value to one element.
    """

    def __init__(self, threads: Threads, label: str, array: Array, state: Array, per_block: int = 0) -> None:
        super().__init__(threads, label, per_block or array.size)
        self.array, self.state = array, state
        self.what = "shared buffer" if per_block else "buffer"
        self.base = threads.of_block * per_block if per_block and threads.n_blocks > 1 else None
        bits = 0 if per_block else threads.block_bits
        self.shadow = Shadow(array.size, self.size, str(self), bits, threads.named)
        self.per_block = per_block

    def load(self, access: Access, index: Any, on: Array | None) -> Any:
        elements, threads, shape, on = self._spread(access, index, on)
        states = self.state[elements]
        if not (states == _READY).all():
            self._note_states(access, elements, threads, states, shape, on)
        else:
            self.loaded(access, None)
        self.shadow.read(access.number, elements, threads, self.threads.tags)
        return _shaped(self.array[elements], shape, on)

    def store(self, access: Access, index: Any, on: Array | None, value: Any) -> None:
        elements, threads, shape, on = self._spread(access, index, on)
        unknown = self.stored(access) if self.threads.unknown else None
        if unknown is not None and not self.per_block:
            self.threads.require_known(access.slot, self.threads.operations[access.number], "what is stored")
        self._claim(access.number, elements, threads, _chosen(value, shape, on))
        self.state[elements] = _READY if unknown is None else np.where(_chosen(unknown, shape, on), _UNWRITTEN, _READY)

    def end_period(self, partial: bool) -> None:
        self.shadow.end_period(self.threads.tags, partial)

    def _spread(
        self, access: Access, index: Any, on: Array | None
    ) -> tuple[Array, Array, tuple[int, ...], Array | None]:
        elements, threads, shape, on = self.spread(access, index, on)
        return elements if self.base is None else elements + self.base[threads], threads, shape, on

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
        self._refuse_in_flight(access.number, elements, threads)
        tags = self.threads.tags[threads] | access.number << OPERATION_SHIFT
        races = self.shadow.met(elements, tags)
        others = self.shadow.writers[elements]
        if races is None:
            races = self.shadow.claim(elements, tags)
            others = self.shadow.writers[elements]
        if races is not None:
            place = int(np.argmax(races))
            raise self.shadow.race(int(elements[place]), int(others[place]), int(tags[place]))
        self.state[elements] = _IN_FLIGHT
        return elements, threads, on

    def land(self, number: int, elements: Array, threads: Array, values: Array) -> None:
        """Write what was on its way: from here on it is as if the thread had written it now."""
        self.state[elements] = _READY
        self.array[elements] = values
        self.shadow.claim(elements, self.threads.tags[threads] | number << OPERATION_SHIFT)

    def _refuse_in_flight(self, number: int, elements: Array, threads: Array) -> None:
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
        self.loaded(access, _shaped(missing, shape, on), self._own(elements[place]), int(threads[place]))

    def _writer(self, element: Any) -> str:
        return self.shadow.name(int(self.shadow.writers[element]))

    def _own(self, element: Any) -> int:
        """The element in its own block's buffer."""
        return int(element) % self.size


def _listed(rows: int | slice | Array) -> Sequence[int]:
    if isinstance(rows, int):
        return (rows,)
    return range(rows.start, rows.stop) if isinstance(rows, slice) else [int(row) for row in rows]


def _shaped(found: Array, shape: tuple[int, ...], on: Array | None) -> Array:
    """Values in the shape of the threads, 0 where lanes are off."""
    if on is None:
        return found.reshape(shape)
    values = np.zeros(shape, found.dtype)
    values[on] = found
    return values


def _chosen(value: Any, shape: tuple[int, ...], on: Array | None) -> Array:
    """The values of the lanes that are on, flat."""
    spread = np.broadcast_to(value, shape)
    return spread.reshape(-1) if on is None else spread[on]


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def written_state(size: int, is_written: bool) -> Array:
    """The states of a buffer's elements, of which all or none are written."""
    return np.full(size, _READY if is_written else _UNWRITTEN, np.uint8)


def block_memory(threads: Threads, label: str, size: int, element: Attribute) -> Shared:
    """Shared memory of each of the blocks that run."""
    total = size * threads.n_blocks
    return Shared(threads, label, unwritten(total, element), written_state(total, False), size)
