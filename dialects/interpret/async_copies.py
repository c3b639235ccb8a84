"""Asynchronous copies in flight: a thread's groups of them, in the order in which it committed them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .kernel_functions import Array
from .shared_memory import Shared
from .threads import Threads


@dataclass(frozen=True)
class _Flight:
    """Elements that threads copy by one operation, with the number of each thread's group, and what will be there."""

    memory: Shared
    number: int
    elements: Array
    threads: Array
    groups: Array
    values: Array


class AsyncCopies:
    """The copies of all threads that are under way."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self.start()

    def start(self) -> None:
        """Begin with threads that have copied nothing."""
        self._committed: Array | None = None
        self._flights: list[_Flight] = []

    def issue(self, memory: Shared, number: int, elements: Array, threads: Array, values: Array) -> None:
        """Let threads copy `values` to elements that have taken off."""
        self._flights.append(_Flight(memory, number, elements, threads, self._groups()[threads], values))

    def commit(self) -> None:
        """Close the group of each thread that runs."""
        self._committed = self._groups() + (1 if self.threads.on is None else self.threads.on)

    def wait(self, pending: int) -> None:
        """Land all groups but the last `pending` of each thread that runs."""
        last = self._groups() - pending
        if self.threads.on is not None:
            last = np.where(self.threads.on, last, 0)
        left: list[_Flight] = []
        for flight in self._flights:
            done = flight.groups < last[flight.threads]
            if done.all():
                flight.memory.land(flight.number, flight.elements, flight.threads, flight.values)
            elif done.any():
                landing, still = _part(flight, done), _part(flight, ~done)
                landing.memory.land(landing.number, landing.elements, landing.threads, landing.values)
                left.append(still)
            else:
                left.append(flight)
        self._flights = left

    def _groups(self) -> Array:
        """Number of groups that each thread has committed."""
        if self._committed is None or len(self._committed) != self.threads.n:
            self._committed = np.zeros(self.threads.n, np.int64)
        return self._committed


def _part(flight: _Flight, mask: Array) -> _Flight:
    return _Flight(
        flight.memory,
        flight.number,
        flight.elements[mask],
        flight.threads[mask],
        flight.groups[mask],
        flight.values[mask],
    )
