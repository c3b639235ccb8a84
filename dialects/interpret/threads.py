"""The threads of a launch that run side by side: their places, which of them are on, and whom an error names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from xdsl.ir import Operation

from ..kernel import BLOCK_AXES, QUAD, lanes_of
from ..target import WARP
from .kernel_functions import Array
from .located import located
from .loop import InterpretationError
from .races import NEXT_PERIOD, PERIOD, THREAD


class Watched(Protocol):
    """Memory that threads share."""

    def end_period(self, partial: bool) -> None:
        """Hold what threads did to each other before they go on behind a barrier."""

    def hand_over(self, owners: Array) -> None:
        """Make what blocks have written that of others, who have waited for them."""

    def show_to(self, clusters: Array) -> None:
        """Show what blocks have written to all of their cluster: `clusters` has its number for each block."""

    def have_read(self) -> None:
        """Let other blocks of a cluster, which have waited, write what was read."""


@dataclass(frozen=True)
class Unknown:
    """The lanes of a value that come from memory that nobody has written, and the text of the read that they are from.

    `lanes` has the shape of a value: `()`, `(threads,)`, or `(lanes, threads)`.
    """

    lanes: Any
    read: Callable[[], str]


class Threads:
    """Threads of some blocks of a launch, in lockstep: block after block, `x` the fastest, then `y`, then `z`."""

    def __init__(
        self, op: Operation, grid: Sequence[int], block: Sequence[int], cluster: Sequence[int] = (1, 1, 1)
    ) -> None:
        self.op = op
        self.grid, self.block = tuple(grid), tuple(block)
        self.per_block = prod(block)
        places = zip(_coordinates(np.arange(prod(grid)), self.grid), cluster, strict=True)
        x, y, z = (place // size for place, size in places)
        self.clusters = x + self.grid[0] * (y + self.grid[1] * z)
        """For each block a number of its cluster."""
        self.thread_bits = max(1, (self.per_block - 1).bit_length())
        if prod(grid) << self.thread_bits > THREAD:
            raise InterpretationError(f"a launch of {prod(grid)} blocks is too large to interpret: {located(op)}")
        self.block_bits = THREAD & -(1 << self.thread_bits)
        self.operations: list[Operation] = []
        self.on: Array | None = None
        """The threads that run, as a mask; None where all do."""
        self.branches: list[Operation] = []
        """The operations that only some of the threads are in."""
        self.shared: dict[Operation, Watched] = {}
        self.across: list[Watched] = []
        """Memory of each block, by what allocates it, and of all blocks."""
        self.unknown: dict[int, Unknown] = {}
        """The values that are not known in all lanes, by their slots."""
        self.watches_products = False
        """True where products of warp groups run: what they touch is watched."""
        self.share_boxes = False
        """True where blocks of a cluster write to each other: what they have read is watched."""
        self._places: dict[str, Any] = {}

    def start(self, blocks: Array) -> None:
        """Go on with blocks by their numbers."""
        self.blocks, self.n_blocks = blocks, len(blocks)
        self.n = self.per_block * self.n_blocks
        self.numbers = np.arange(self.n)
        self.in_block = self.numbers % self.per_block
        self.of_block = self.numbers // self.per_block
        self.tags = (blocks[self.of_block] << self.thread_bits) | self.in_block
        self.shared = {}
        self.unknown.clear()
        self._places = {}
        self._tiled: dict[int, Array] = {}

    def tiled(self, lanes: int) -> Array:
        """The numbers of the threads, once for each of the lanes of a vector."""
        found = self._tiled.get(lanes)
        if found is None:
            found = self._tiled[lanes] = np.tile(self.numbers, lanes)
        return found

    def number(self, op: Operation) -> int:
        """The number by which accesses of an operation are told."""
        self.operations.append(op)
        return len(self.operations) - 1

    def place(self, axis: str) -> Any:
        """The places of the threads on an axis such as `threadIdx.x`: one number where all have the same."""
        found = self._places.get(axis)
        if found is None:
            level, dimension = axis.split(".")
            is_block = level == "blockIdx"
            sizes, numbers = (self.grid, self.blocks[self.of_block]) if is_block else (self.block, self.in_block)
            found = _coordinates(numbers, sizes)["xyz".index(dimension)]
            if sizes["xyz".index(dimension)] == 1 or (is_block and self.n_blocks == 1):
                found = found[0]
            self._places[axis] = found
        return found

    def count_on(self) -> int:
        """Number of threads that run."""
        return self.n if self.on is None else int(np.count_nonzero(self.on))

    def both(self, mask: Any) -> Array | None:
        """The mask of lanes that are on in threads that run; None where all are."""
        if np.ndim(mask) == 0:
            return self.on if mask else np.zeros(self.n, np.bool_)
        return np.asarray(mask) if self.on is None else mask & self.on

    @contextmanager
    def only(self, mask: Array, op: Operation) -> Iterator[None]:
        """Run threads of a mask alone, in a region of `op`."""
        before = self.on
        self.on = mask
        self.branches.append(op)
        yield
        self.branches.pop()
        self.on = before

    def require_known(self, slot: int, op: Operation, what: str) -> None:
        """Refuse `what`, a use of a value that shows, where threads that run have it from memory nobody has written."""
        found = self.unknown.get(slot)
        if found is None:
            return
        bad = np.broadcast_to(
            found.lanes if self.on is None else found.lanes & self.on, (*found.lanes.shape[:-1], self.n)
        )
        if bad.any():
            thread = int(np.flatnonzero(bad.reshape(-1, self.n).any(axis=0))[0])
            text = self._by(op, self.tag(thread))
            raise InterpretationError(f"{what} depends on memory that nobody has written\n  {found.read()}\n  {text}")

    # -- what threads do together -------------------------------------------------------------------------------------

    def wait_for_each_other(self, op: Operation) -> None:
        """A barrier of the threads that run."""
        if self.on is not None:
            self.require_together(op, self.of_block, self.n_blocks, "a block")
        partial = self.on is not None and not self.on.all()
        self._end_period(partial)
        if (self.tags.max() & PERIOD) + NEXT_PERIOD >= PERIOD:
            raise InterpretationError(f"too many barriers to interpret: {located(op)}")
        self.tags = self.tags + (NEXT_PERIOD if self.on is None else np.where(self.on, NEXT_PERIOD, 0))

    def wait_in_clusters(self, op: Operation) -> None:
        """A barrier of the threads of all blocks of each cluster, which run side by side."""
        self.wait_for_each_other(op)
        if self.on is not None:
            self._require_clusters(op)
        for memory in self.across:
            memory.show_to(self.clusters)
        self._have_read()

    def meet_in_clusters(self, op: Operation) -> None:
        """The same, but that nobody sees more than before: what was read may be written."""
        if self.on is not None:
            self.require_together(op, self.of_block, self.n_blocks, "a block")
            self._require_clusters(op)
        self._have_read()

    def _require_clusters(self, op: Operation) -> None:
        assert self.on is not None
        self.require_together(op, self.clusters[self.blocks][self.of_block], int(self.clusters.max()) + 1, "a cluster")

    def _have_read(self) -> None:
        for memory in self.shared.values():
            memory.have_read()

    def neighbours(self, by: Array, axes: Sequence[str]) -> tuple[Array, Array]:
        """The blocks of the clusters of threads, one of a block each, that differ from theirs along `axes` alone.

        Returns for each of them which of the threads it is for, and its own first thread.
        """
        of, clusters = self.of_block[by], self.clusters[self.blocks]
        same = clusters[of][:, None] == clusters
        for axis, places in zip(BLOCK_AXES, _coordinates(self.blocks, self.grid), strict=True):
            if axis not in axes:
                same &= places[of][:, None] == places
        own, blocks = np.nonzero(same)
        return own, blocks * self.per_block

    def hand_over(self, owners: Mapping[int, int]) -> None:
        """Make what blocks have written, by their numbers, that of others, who have waited for them."""
        found = np.arange(prod(self.grid))
        found[list(owners)] = list(owners.values())
        for memory in self.across:
            memory.hand_over(found)

    def alone(self, op: Operation) -> Array:
        """The numbers of the threads that run, of which each block has one."""
        by = self.numbers if self.on is None else np.flatnonzero(self.on)
        if len(by) and np.bincount(self.of_block[by]).max() > 1:
            raise InterpretationError(f"one thread of a block begins it, and several do: {located(op)}")
        return by

    def require_whole_warps(self, op: Operation) -> None:
        """Refuse an operation of warps that some of their threads do not come to."""
        if self.per_block % WARP:
            raise InterpretationError(
                f"a block of {self.per_block} threads is not made of whole warps\n  {located(op)}"
            )
        if self.on is not None:
            self.require_together(op, self.numbers // WARP, self.n // WARP, "a warp")

    def exchanged(self, op: Operation, value: Any, distance: int) -> Any:
        """The value of the thread of a warp whose number differs in the bits of `distance`, for each thread."""
        if np.shape(value)[-1:] != (self.n,):
            return value
        if self.on is not None:
            warps = -(-self.per_block // WARP)
            of_warp = self.of_block * warps + self.in_block // WARP
            self.require_together(op, of_warp, warps * self.n_blocks, "a warp")
        other = self.in_block ^ distance
        missing = other >= self.per_block if self.on is None else (other >= self.per_block) & self.on
        if missing.any():
            thread = self.tag(int(np.argmax(missing)))
            raise InterpretationError(
                f"a shuffle takes the value of a thread that is not there\n  {self._by(op, thread)}"
            )
        return value[..., np.where(other < self.per_block, self.numbers - self.in_block + other, 0)]

    def transposed(self, op: Operation, value: Any) -> Any:
        """Part t of the vectors of four neighbouring threads, for the thread t of them."""
        if self.per_block % QUAD:
            raise InterpretationError(f"a block of {self.per_block} threads is not made of fours\n  {located(op)}")
        if self.on is not None:
            self.require_together(op, self.numbers // QUAD, self.n // QUAD, "four neighbours")
        lanes = lanes_of(op.results[0].type)
        parts = np.broadcast_to(value, (lanes, self.n)).reshape(QUAD, lanes // QUAD, self.n)
        own = self.in_block % QUAD
        found = [parts[own, :, self.numbers - own + other].T for other in range(QUAD)]
        return np.concatenate(found)

    def require_together(self, op: Operation, groups: Array, count: int, what: str) -> None:
        """Refuse an operation that some threads of a group reach, and some not."""
        assert self.on is not None
        reached = np.bincount(groups, self.on, count)
        split = (reached != 0) & (reached != np.bincount(groups, minlength=count))
        if split.any():
            group = np.argmax(split)
            thread = self.tag(int(np.argmax(self.on & (groups == group))))
            of_all = int(np.count_nonzero(groups == group))
            raise InterpretationError(
                f"divergence: {int(reached[group])} of the {of_all} threads of {what} come to what all of them take "
                "part in\n"
                f"  {self._by(op, thread)}\n  {located(self.branches[-1])}: the others are not in it"
            )

    def finish_blocks(self) -> None:
        """End what the blocks that run have of their own."""
        self._end_period(False)

    def _end_period(self, partial: bool) -> None:
        for memory in (*self.shared.values(), *self.across):
            memory.end_period(partial)

    # -- names --------------------------------------------------------------------------------------------------------

    def named(self, number: int, thread: int) -> str:
        """Text of an operation that a thread, by the bits of its tag, ran."""
        return self._by(self.operations[number], thread)

    def tag(self, thread: int) -> int:
        """The bits of its tag that name a thread, by its place among those that run side by side."""
        return int(self.tags[thread]) & THREAD

    def _by(self, op: Operation, thread: int) -> str:
        block, own = thread >> self.thread_bits, thread & ((1 << self.thread_bits) - 1)
        places = [tuple(int(c[0]) for c in _coordinates(np.array([n]), s)) for n, s in _pairs(self, own, block)]
        return f"{located(op)}, by thread {places[0]} of block {places[1]}"


def _pairs(threads: Threads, own: int, block: int) -> tuple[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]]]:
    return (own, threads.block), (block, threads.grid)


def _coordinates(numbers: Array, sizes: Sequence[int]) -> tuple[Array, Array, Array]:
    x, y = sizes[0], sizes[1]
    return numbers % x, numbers // x % y, numbers // (x * y)
