"""Constants of a kernel in copies that take turns: nearer caches do not hold what a run reads, as in a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from ..arrays import aligned_copy
from ..signature import Argument
from .sequence import KernelSequence

Array = npt.NDArray[Any]

_MOST_COPIES = 64
"""Copies at most, in the place of as many as the bytes asked for hold. A choice: constants of which so many copies are
fewer bytes are small beside the rest that a run reads."""


class Turns:
    """Runs of a kernel that take one copy of its constants after the other.

    There are as many copies as hold `nbytes` all together, `_MOST_COPIES` at most; constants that do alone have none.
    """

    def __init__(self, arguments: Sequence[Argument], nbytes: int) -> None:
        self._positions = [n for n, argument in enumerate(arguments) if argument.constant]
        self._nbytes = nbytes
        self._next = 0
        self._copies: list[list[Array]] = []

    def forget(self) -> None:
        """Take the constants to have changed."""
        self._copies = []

    def sequences(
        self, kernel: int, arrays: Sequence[Array], workspace: Array, number: int, threads: int
    ) -> list[tuple[KernelSequence, int]]:
        """`number` runs of the kernel at an address, from the copy on that is next: calls, and how often they are run.

        `arrays` are those of all arguments, which must stay in memory.
        """
        if not self._copies:
            self._copies = self._copied(arrays)
        order = [*self._copies[self._next :], *self._copies[: self._next]]
        self._next = (self._next + number) % len(order)
        calls = [(kernel, [a.ctypes.data for a in (*self._with(arrays, copy), workspace)]) for copy in order]
        rounds, rest = divmod(number, len(order))
        parts = ((calls, rounds), (calls[:rest], 1))
        return [(KernelSequence(part, threads), times) for part, times in parts if part and times]

    def _copied(self, arrays: Sequence[Array]) -> list[list[Array]]:
        own = [arrays[n] for n in self._positions]
        size = sum(array.nbytes for array in own)
        count = min(_MOST_COPIES, -(-self._nbytes // size)) if size else 1
        return [own, *([aligned_copy(array) for array in own] for _ in range(count - 1))]

    def _with(self, arrays: Sequence[Array], copies: Sequence[Array]) -> list[Array]:
        found = list(arrays)
        for position, array in zip(self._positions, copies, strict=True):
            found[position] = array
        return found
