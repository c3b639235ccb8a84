"""What a tile costs on a GPU, as array expressions over a population: limits, features, and an estimate in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..dialects.target import Target
from .sketch import Columns
from .tile_model import FEATURES

Array = npt.NDArray[np.float64]

CLOCK_HZ = 1.7e9
"""A clock to turn cycles into seconds with; only ratios matter."""
LANES_PER_SM = 128
"""FP32 lanes of a multiprocessor since Volta's successors (NVIDIA architecture whitepapers)."""
SHARED_WORDS_PER_CYCLE = 32
REGISTERS_PER_THREAD = 255
REGISTERS_PER_SM = 65536
SHARED_BYTES_PER_SM = 233472
GLOBAL_WORDS_PER_CYCLE_SM = 8
"""Words a multiprocessor gets from the second-level cache in a cycle, about."""


@dataclass(frozen=True)
class GpuAxis:
    """A spatial axis and the names of its tile factors: virtual threads, threads, elements of a thread."""

    name: str
    extent: int
    virtual: str
    thread: str
    inner: str


@dataclass(frozen=True)
class GpuReduce:
    """A reduce axis; `step` is what shared memory holds at a time, empty where all of it."""

    name: str
    extent: int
    step: str


@dataclass(frozen=True)
class Span:
    """One dimension of an operand's tile: the axes it moves along with their strides, in elements."""

    strides: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class GpuModel:
    """The shape of one tiled reduction on a GPU.

    `operands` are the tiles of what is kept in shared memory, dimension by dimension. `pair` are two axes, with their
    extents, that are tiled as the last one of `axes`. `split` names the hole of parts
    that the reduction is split into, each on blocks of its own; empty where it is not.
    """

    target: Target
    outer: int
    axes: tuple[GpuAxis, ...]
    reduce: tuple[GpuReduce, ...]
    operands: tuple[tuple[Span, ...], ...]
    element_bytes: int
    variant: int
    split: str = ""
    pair: tuple[tuple[str, int], tuple[str, int]] | None = None

    @property
    def cores(self) -> int:
        return max(1, self.target.cores)

    def threads(self, c: Columns) -> Array:
        """Threads of a block."""
        return self._product(c, [a.thread for a in self.axes])

    def _product(self, c: Columns, names: Sequence[str]) -> Array:
        total = np.ones(len(next(iter(c.values()))))
        for name in names:
            total = total * c[name]
        return total

    def _tile(self, c: Columns, axis: GpuAxis) -> Array:
        return np.asarray(c[axis.virtual] * c[axis.thread] * c[axis.inner], dtype=np.float64)

    def _extents(self, c: Columns) -> dict[str, Array]:
        """How far a block of threads goes along each axis between two fills of shared memory."""
        sizes = {a.name: self._tile(c, a) for a in self.axes}
        for r in self.reduce:
            sizes[r.name] = (
                np.asarray(c[r.step], np.float64) if r.step else np.full(len(next(iter(c.values()))), r.extent)
            )
        if self.pair is not None:
            (before, rows), (last, width) = self.pair
            tile = self._tile(c, self.axes[-1])
            sizes[before] = np.minimum(rows, np.ceil(tile / width) + (tile % width != 0))
            sizes[last] = np.minimum(width, tile)
        return sizes

    def shared_words(self, c: Columns) -> Array:
        """Elements in shared memory."""
        sizes = self._extents(c)
        total = np.zeros(len(next(iter(c.values()))))
        for operand in self.operands:
            words = np.ones(len(total))
            for span in operand:
                reach = np.ones(len(total))
                for name, stride in span.strides:
                    reach = reach + (sizes[name] - 1) * stride
                words = words * reach
            total = total + words
        return total

    def _accumulators(self, c: Columns) -> Array:
        return self._product(c, [a.inner for a in self.axes]) * self._product(c, [a.virtual for a in self.axes])

    def _blocks(self, c: Columns) -> Array:
        total = np.full(len(next(iter(c.values()))), float(self.outer))
        for axis in self.axes:
            total = total * np.ceil(axis.extent / self._tile(c, axis))
        return total * c[self.split] if self.split else total

    def _waste(self, c: Columns) -> Array:
        waste = np.ones(len(next(iter(c.values()))))
        for axis in self.axes:
            tile = self._tile(c, axis)
            waste = waste * np.ceil(axis.extent / tile) * tile / axis.extent
        return waste

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Threads, shared memory, registers and tails within what the target has."""
        threads = self.threads(c)
        mask = (threads <= max(1, self.target.max_threads_per_block)) & (threads >= 32) & (threads % 32 == 0)
        mask &= self.shared_words(c) * self.element_bytes <= self.target.max_shared_bytes
        accumulators = self._accumulators(c)
        mask &= accumulators <= 128
        mask &= (accumulators * 1.4 + 32) * threads <= REGISTERS_PER_SM
        mask &= self._waste(c) <= 2.2
        for axis in self.axes:
            mask &= self._tile(c, axis) < 2 * axis.extent
        virtual = self._product(c, [a.virtual for a in self.axes])
        return np.asarray(mask & (virtual <= max(1, self.target.max_vthreads)))

    def _quantities(self, c: Columns) -> dict[str, Array]:
        threads, accumulators = self.threads(c), self._accumulators(c)
        blocks, waste = self._blocks(c), self._waste(c)
        shared = self.shared_words(c)
        depth = np.ones(len(threads))
        for r in self.reduce:
            depth = depth * r.extent
        if self.split:
            depth = depth / c[self.split]
        step = np.ones(len(threads))
        for r in self.reduce:
            step = step * (c[r.step] if r.step else r.extent)
        inner = [np.asarray(c[a.inner] * c[a.virtual], np.float64) for a in self.axes]
        loads = np.zeros(len(threads))
        for operand in self.operands:
            names = {name for span in operand for name, _ in span.strides}
            if self.pair is not None and self.pair[1][0] in names:
                names.add(self.axes[-1].name)
            words = np.ones(len(threads))
            for axis, size in zip(self.axes, inner, strict=True):
                words = words * (size if axis.name in names else 1)
            loads = loads + words
        per_sm = np.minimum(
            np.minimum(2048 // threads, SHARED_BYTES_PER_SM // np.maximum(1, shared * self.element_bytes)),
            REGISTERS_PER_SM // ((accumulators * 1.4 + 32) * threads),
        )
        per_sm = np.maximum(1, per_sm)
        resident = np.minimum(per_sm, np.ceil(blocks / self.cores))
        warps = resident * threads / 32
        waves = np.ceil(blocks / (self.cores * per_sm))
        balance = waves * self.cores * per_sm / blocks
        fma = threads * accumulators / LANES_PER_SM
        words = threads * loads / (SHARED_WORDS_PER_CYCLE * 2.5)
        fill = shared / step / GLOBAL_WORDS_PER_CYCLE_SM
        cycles = np.maximum(np.maximum(fma, words), fill)
        hiding = np.minimum(1.0, warps * np.minimum(accumulators, 16) / 48)
        return {
            "cycles": np.maximum(1.0, blocks / self.cores) * depth * cycles / np.maximum(0.05, hiding),
            "threads": threads,
            "accumulators": accumulators,
            "blocks": blocks,
            "waste": waste,
            "shared": shared * self.element_bytes,
            "step": step,
            "depth": depth,
            "loads": loads / accumulators,
            "per_sm": per_sm,
            "warps": warps,
            "waves": waves,
            "balance": balance,
            "fill": fill / fma,
            "words": words / fma,
        }

    def seconds(self, c: Columns) -> Array:
        """A rough time: arithmetic, shared and global traffic, how much of the latency other warps hide."""
        return np.asarray(self._quantities(c)["cycles"] / CLOCK_HZ + 3e-6)

    def features(self, c: Columns) -> npt.NDArray[np.float32]:
        """`(n, FEATURES)`: base-2 logarithms of the quantities, the tile's shape, and the structure."""
        q = self._quantities(c)
        logs = ["cycles", "threads", "accumulators", "blocks", "shared", "step", "depth", "per_sm", "warps", "waves"]
        columns = [np.log2(np.maximum(q[name], 1e-3)) for name in logs]
        columns += [q["waste"], q["loads"], q["balance"], q["fill"], q["words"]]
        last = self.axes[-1]
        for name in (
            last.virtual,
            last.thread,
            last.inner,
            self.axes[0].virtual,
            self.axes[0].thread,
            self.axes[0].inner,
        ):
            columns.append(np.log2(c[name].astype(np.float64)))
        columns.append(np.full(len(columns[0]), float(self.variant)))
        columns.append(np.log2(c[self.split].astype(np.float64)) if self.split else np.zeros(len(columns[0])))
        columns += [np.zeros(len(columns[0]))] * (FEATURES - len(columns))
        assert len(columns) == FEATURES
        return np.stack(columns, axis=1).astype(np.float32)
