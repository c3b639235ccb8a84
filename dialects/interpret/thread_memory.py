"""The memory of a launch as its threads see it: registers of each of them, buffers that all of them only read."""

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
from .threads import Threads, Unknown


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
        places = spread_over(index + access.ahead, shape)
        if on is None:
            elements, threads = places.reshape(-1), self.threads.tiled(access.lanes)
        else:
            on = spread_over(on, shape)
            elements, threads = places[on], self.threads.tiled(access.lanes).reshape(shape)[on]
        if elements.size and elements.view(np.uint64).max() >= self.size:  # negative ones are large
            bad = np.argmax((elements < 0) | (elements >= self.size))
            raise self.error(f"element {int(elements[bad])} is outside of {self}", access.number, threads[bad])
        if access.align > 1:
            self._require_aligned(access, index + access.offset, threads)
        return elements, threads, shape, on

    def _require_aligned(self, access: Access, first: Any, threads: Array) -> None:
        """Hold the first element of each thread that runs to the alignment."""
        if not np.any(first % access.align):
            return
        own = np.broadcast_to(first, (self.threads.n,))
        bad = own[threads] % access.align != 0
        if bad.any():
            thread = threads[np.argmax(bad)]
            rule = f"element {int(own[thread])} of {self} is where {access.align} elements are said to be aligned"
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
        self.in_products: dict[int, int] = {}
        """Elements that products in flight add to, with the number of the operation."""
        self.unfenced: set[int] = set()
        """Elements stored since the last fence of products."""
        self.written: Array | None = None
        """The elements that some have written."""

    def load(self, access: Access, index: Any, on: Array | None) -> Any:
        if self.in_products:
            self._refuse_in_product(access, index)
        if np.ndim(index) or on is not self.threads.on:
            return self._load_apart(access, index, on)
        rows = self._rows(access, int(index))
        found = self.array[rows]
        if self._are_ready(rows):
            self.loaded(access, None)
        else:
            self._note_missing(access, rows)
        return found.copy() if isinstance(rows, int | slice) else found

    def store(self, access: Access, index: Any, on: Array | None, value: Any) -> None:
        if self.threads.watches_products:
            self._refuse_in_product(access, index)
            self.unfenced.update(self._touched(access, index))
        unknown = self.stored(access) if self.threads.unknown else None
        if np.ndim(index) or on is not self.threads.on:
            self._store_apart(access, index, on, value, unknown)
            return
        rows = self._rows(access, int(index))
        self.array[rows] = value if on is None else np.where(on, value, self.array[rows])
        if unknown is None and (on is None or self._are_ready(rows)):
            for row in _listed(rows):
                self.ready[row] = True
            return
        known = np.broadcast_to(True if unknown is None else ~unknown, (access.lanes, self.threads.n))
        for row, good in zip(_listed(rows), known, strict=True):
            written = self._written()[row]
            written[...] = good if on is None else np.where(on, good, written | self.ready[row])
            self.ready[row] = bool(np.all(written))

    def _touched(self, access: Access, index: Any) -> set[int]:
        """The elements that an access touches in any of the threads."""
        return {int(n) for n in np.unique(np.asarray(index + access.ahead))}

    def _refuse_in_product(self, access: Access, index: Any) -> None:
        """Refuse to touch sums of products that nobody has waited for."""
        for row in sorted(self._touched(access, index) & self.in_products.keys()):
            rule = f"element {row} of {self} is touched before the product that adds to it was waited for"
            raise self.error(rule, access.number, 0, self.threads.named(self.in_products[row], self.threads.tag(0)))

    def add_product(
        self, number: int, rows: Sequence[int], product: Callable[[Array], Array], start: bool = False
    ) -> None:
        """Begin to write to elements `(sums, threads)` what `product` makes of them, or of zeros at a `start`."""
        for row in rows:
            if not 0 <= row < self.size or not (start or self.ready[row] or row in self.in_products):
                rule = f"element {row} of {self} is added to by a product, and was not written"
                raise self.error(rule, number, 0)
            if row in self.unfenced:
                rule = f"element {row} of {self} was stored since the last wgmma_fence, and a product adds to it"
                raise self.error(rule, number, 0)
        before = self.array[list(rows)]
        self.array[list(rows)] = product(np.zeros_like(before) if start else before)
        for row in rows:
            self.ready[row] = True
        self.in_products.update(dict.fromkeys(rows, number))

    def _rows(self, access: Access, index: int) -> int | slice | Array:
        first = index + access.offset
        last = first + (access.lanes - 1) * access.stride
        if not (0 <= first < self.size and 0 <= last < self.size) or (access.align > 1 and first % access.align):
            self.spread(access, index, self.threads.on)
        return access.rows(first)

    def _are_ready(self, rows: int | slice | Array) -> bool:
        """True where all threads have written rows."""
        if isinstance(rows, int):
            return self.ready[rows]
        return all(self.ready[rows]) if isinstance(rows, slice) else all(self.ready[row] for row in rows)

    def _written(self) -> Array:
        """The elements that each thread has written; those in `ready` may be missing."""
        if self.written is None:
            self.written = np.zeros(self.array.shape, np.bool_)
        return self.written

    def _note_missing(self, access: Access, rows: int | slice | Array) -> None:
        """Keep in mind what is loaded of rows and was not written."""
        ready = np.array([self.ready[row] for row in _listed(rows)])
        missing = ~self._written()[rows] & ~(ready[:, None] if access.is_vector else ready[0])
        if self.threads.on is not None:
            missing &= self.threads.on
        if not missing.any():
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
            self.loaded(access, shaped(missing, shape, on), element, thread)
        else:
            self.loaded(access, None)
        return shaped(self.array.reshape(-1)[cells], shape, on)

    def _store_apart(self, access: Access, index: Any, on: Array | None, value: Any, unknown: Any) -> None:
        cells, shape, on = self._cells(access, index, on)
        self.array.reshape(-1)[cells] = chosen(value, shape, on)
        self._all_written().reshape(-1)[cells] = True if unknown is None else ~chosen(unknown, shape, on)
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
        return shaped(self.array[elements], shape, on)

    def read_in_bulk(self, number: int, elements: Array, threads: Array) -> Array:
        """The elements that the copy engine reads for threads, which are inside."""
        return self.array[elements]

    def store(self, access: Access, index: Any, on: Array | None, value: Any) -> None:
        raise AssertionError("a buffer that is written to is shared")


def _listed(rows: int | slice | Array) -> Sequence[int]:
    if isinstance(rows, int):
        return (rows,)
    return range(rows.start, rows.stop) if isinstance(rows, slice) else [int(row) for row in rows]


def spread_over(value: Any, shape: tuple[int, ...]) -> Array:
    """A value in the shape of the threads."""
    return value if np.shape(value) == shape else np.broadcast_to(value, shape)


def shaped(found: Array, shape: tuple[int, ...], on: Array | None) -> Array:
    """Values in the shape of the threads, 0 where lanes are off."""
    if on is None:
        return found.reshape(shape)
    values = np.zeros(shape, found.dtype)
    values[on] = found
    return values


def chosen(value: Any, shape: tuple[int, ...], on: Array | None) -> Array:
    """The values of the lanes that are on, flat."""
    spread = spread_over(value, shape)
    return spread.reshape(-1) if on is None else spread[on]
