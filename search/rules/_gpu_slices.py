"""The steps of a tiled reduction of which groups of a block's threads take slices, and add them up in shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ...passes.primitive import ScheduleError
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.reorder import Reorder
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.vectorize import Vectorize
from ..sketch.hole import Columns, Derived
from ._gpu_tiles import Tiling


class SlicedTiling(Tiling):
    """Blocks of the result; in each, the partial sums of all slices, a barrier, and their sum by all threads."""

    def _holes(self) -> None:
        super()._holes()
        last, extent = self.axes[-1]
        self.width = self.hole("join_vector", tuple(n for n in (1, 2, 4) if extent % n == 0), 1, "vector")
        self.tiles: dict[str, Derived] = {}
        for name, levels in self.levels.items():
            self.tiles[name] = self.draft.derive(f"{self.block}_{name}_tile", _product_of([h.name for h in levels]))
        tiles, threads = {self.tiles[n].name: extent for n, extent in self.axes}, self.threads.name
        row, width = self.tiles[last].name, self.width.name

        def even(c: Columns) -> npt.NDArray[np.bool_]:
            """Tiles within the result, vectors within a row of a tile, and as many of them for all threads."""
            results = np.prod([c[t] for t in tiles], axis=0)
            mask = (c[row] % c[width] == 0) & (results % (c[threads] * c[width]) == 0)
            return np.asarray(mask & np.all([c[t] <= extent for t, extent in tiles.items()], axis=0))

        self.draft.limits.append(even)

    def _place(self) -> None:
        """Blocks of threads for the sum; the partial sums of all slices ahead of it, in shared memory."""
        do = self.draft.do
        self.partial = f"{self.anchor.output}_tile"
        do(CacheWrite, block=self.block, buffer=self.anchor.output, scope="local", label=self.partial)
        out = self._joining()
        around = [(x.loop_name, x.size) for x in self.draft.block(out).enclosing_loops]
        axes = [a for a in self.anchor.spatial if a.name != self.part and a.extent > 1]
        if [size for _, size in around if size > 1] != [a.extent for a in axes]:
            rule = f"'{out}' must go over the extents {[a.extent for a in axes]}, got {[size for _, size in around]}"
            raise ScheduleError(type(self).__name__, rule)
        blocks, inside = [], []
        for loop, size in around:
            axis = axes.pop(0).name if size > 1 else ""
            if axis in self.tiles:
                do(Split, block=out, loop=loop, factors=(0, self.tiles[axis]))
                blocks.append(f"{loop}0")
                inside.append(f"{loop}1")
            else:
                blocks.append(loop)
        do(Reorder, block=out, loops=(*blocks, *inside))
        for group in (blocks, inside):
            self.draft.fuse(out, group)
        self.block_loop = block = "_".join(blocks)
        results = "_".join(inside)
        do(Bind, block=out, loop=block, thread="blockIdx.x")
        assert self.width is not None
        do(Split, block=out, loop=results, factors=(0, self.threads, self.width))
        do(Bind, block=out, loop=f"{results}1", thread="threadIdx.x")
        do(Vectorize, block=out, loop=f"{results}2")
        self._sum_up(out, f"{results}1")
        do(ComputeAt, block=self.partial, loop=block, unit_loops=True)
        do(SetScope, block=self.partial, scope="shared")
        do(ComputeAt, block=self.block, loop=block, unit_loops=True)

    def _split_axes(self) -> tuple[list[str], list[str], list[str], list[str]]:
        names = [n for n, _ in self.axes]
        for name in names:
            self.draft.do(Split, block=self.block, loop=name, factors=self.levels[name])
        return [], [f"{n}0" for n in names], [self.part, *(f"{n}1" for n in names)], [f"{n}2" for n in names]

    def _result(self) -> str:
        return self.partial

    def _join(self) -> None:
        """All is in its place."""


def _product_of(names: list[str]) -> Callable[[Columns], npt.NDArray[np.int64]]:
    return lambda c: np.asarray(np.prod([c[n] for n in names], axis=0))
