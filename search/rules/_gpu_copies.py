"""Copies of a tile on a GPU: who reads it along which axis, how it lies for that, and how all threads bring it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from ...dialects.element import FLOAT32_BYTES
from ...dialects.multiprocessor import BANK_BYTES, BANKS
from ...dialects.target import WIDEST_ACCESS_BYTES
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.reorder import Reorder
from ...passes.schedule.storage_align import StorageAlign
from ...passes.schedule.swizzle import Swizzle
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.gpu_tile import PADDING
from ..estimates.sliced_model import ALIGNED
from ..sketch.draft import Draft
from ..sketch.hole import Number


class Reads(Enum):
    """Ways in which threads read what lies in shared memory, by which its rows lie (`rows_for`)."""

    ROWS = auto()
    """A thread reads vectors along a row, and neighbouring threads neighbouring rows."""
    TERMS = auto()
    """The same along the terms of a sum, of which slices of threads have eight each."""
    VECTORS = auto()
    """A thread reads vectors of rows whose length may be no multiple of theirs."""
    COLUMNS = auto()
    """Neighbouring threads read single elements along a column."""
    MATRICES = auto()
    """Warps read matrices, whose rows are as long as all banks."""


class Apart(NamedTuple):
    """Elements along a `dimension` begin `offset` behind a multiple of `factor`, as `StorageAlign` has it.

    Or rows along it have chunks of 16 bytes in another order each, where they are `swizzled` (`Swizzle`).
    """

    dimension: int
    factor: int = 1
    offset: int = 0
    swizzled: bool = False


def rows_for(reads: Reads, dimension: int = 0, size: int = FLOAT32_BYTES) -> Apart:
    """Return how rows along a `dimension`, of elements of `size` bytes, lie in shared memory: every rule asks here.

    Neighbouring rows begin in other banks where threads read them at once, and vectors are aligned where they are read.
    Of rows that are swizzled no dimension is asked.
    """
    match reads:
        case Reads.ROWS:
            return Apart(dimension, BANKS, PADDING)
        case Reads.TERMS:
            return Apart(dimension, ALIGNED, PADDING)
        case Reads.VECTORS:
            return Apart(dimension, WIDEST_ACCESS_BYTES // size)
        case Reads.COLUMNS:
            in_a_bank = max(1, BANK_BYTES // size)
            return Apart(dimension, BANKS * in_a_bank, in_a_bank)
        case Reads.MATRICES:
            return Apart(dimension, swizzled=True)


def place_rows(draft: Draft, block: str, apart: Apart) -> None:
    """Have the rows of what a block writes to shared memory lie so."""
    if apart.swizzled:
        draft.do(Swizzle, block=block)
    else:
        draft.do(StorageAlign, block=block, axis=apart.dimension, factor=apart.factor, offset=apart.offset)


@dataclass(frozen=True)
class SharedCopy:
    """A tile of a buffer in shared memory, for threads that read it along other axes than it is brought along.

    `label` names the block that copies, and the copy. `layout` are the axes in the order in which it has them, where
    that is not the buffer's: the last one is that along which a thread reads vectors, or neighbouring threads
    neighbours. `apart` is how its rows are kept apart.
    """

    buffer: str
    label: str
    layout: tuple[str, ...] = ()
    apart: Apart | None = None

    def read_by(self, draft: Draft, block: str) -> None:
        """Have a block read the copy; what is but a view of another buffer is read as that is copied."""
        draft.do(CacheRead, block=block, buffer=self.buffer, scope="shared", layout=self.layout, label=self.label)
        draft.inline_view(self.buffer)

    def keep_apart(self, draft: Draft) -> None:
        """Begin its rows where they are to."""
        if self.apart is not None:
            place_rows(draft, self.label, self.apart)


def bring(
    draft: Draft,
    copy: str,
    loop: str,
    threads: Mapping[str, Number],
    vector: Number | None = None,
    last_first: bool = False,
) -> str:
    """Fill a copy at a loop by all threads together, which are listed from the outside in; the loop over their rounds.

    Neighbouring threads have neighbouring elements, each a `vector`. With `last_first` the copy's last axis is gone
    over outside of the others: where the copy is turned round, the buffer's neighbours are along these.
    """
    draft.do(ComputeAt, block=copy, loop=loop, unit_loops=True)
    own = draft.loops(copy, loop)
    if last_first:
        own = [own[-1], *own[:-1]]
        draft.do(Reorder, block=copy, loops=tuple(own))
    draft.settled.add(copy)
    return among_threads(draft, copy, own, threads, vector)


def among_threads(
    draft: Draft, block: str, loops: Sequence[str], threads: Mapping[str, Number], vector: Number | None = None
) -> str:
    """Give the iterations of loops to threads, neighbours to neighbours, each a vector; the loop over their rounds."""
    vectors = [] if vector is None else [vector]
    rounds, *parts = draft.split(block, draft.fuse(block, loops), (0, *threads.values(), *vectors))
    for thread, part in zip(threads, parts, strict=False):
        draft.do(Bind, block=block, loop=part, thread=thread)
    for part in parts[len(threads) :]:
        draft.do(Vectorize, block=block, loop=part)
    return rounds


def into_registers(draft: Draft, copy: str, loop: str) -> None:
    """Read in a loop what a thread needs in its iterations, in vectors, to registers."""
    draft.do(ComputeAt, block=copy, loop=loop, unit_loops=True)
    in_registers(draft, copy, draft.loops(copy, loop))
    draft.settled.add(copy)


def in_registers(draft: Draft, block: str, inner: Sequence[str]) -> None:
    """Write out loops over what a thread holds, the last one as vectors."""
    for name in inner[:-1]:
        draft.do(Unroll, block=block, loop=name)
    draft.do(Vectorize, block=block, loop=inner[-1])
