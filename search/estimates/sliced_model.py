"""Estimate of a product of matrices in slices: groups of a block's threads share the terms, and add up at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from ...dialects.multiprocessor import BANKS, VECTOR, multiprocessor_of
from ...dialects.target import WARP
from ..sketch import arrays as np
from ..sketch.hole import Columns, once
from .gpu_model import GpuModel
from .gpu_tile import Array
from .residency import cycles_of_rounds

ALIGNED = 8
"""Elements behind a multiple of which, by `PADDING`, rows of terms begin in shared memory: vectors of eight of them are
in different banks then."""
SPARE = 128
"""Elements of shared memory of a block beyond what is planned, at most: three blocks of 76 KB did not fit at a time
where they would have filled all of it, and took 1.4 times their estimate (an H200)."""
TURNED_ISSUES = 1.1
"""Instructions that a multiply-add of a `turned` product counts as, whose operands do not come to and fro. Fitted: of
44 products (an H200) what is estimated least of their measured candidates and of other structures takes 0.901, 0.892
and 0.893 of the time of the latter with 1, 1.1 and 1.2; candidates were estimated 6% too low in the mean, 2% so."""
LOAD_ISSUES, COPY_ISSUES, FILL_ISSUES, TAIL_ISSUES = 0.43, 5.6, 10.4, 50.0
"""Instructions of a vector that is read from shared memory beside multiply-adds, of one that is copied there, and
around a fill, where the terms are no multiple of fills more. Fitted, as are the numbers below: to 857 candidates of 86
products (an H200, drawn at random beside those of three networks), whose times it tells to within 6.7%; a fit to half
of the products told those of the other half to within 7%. What is estimated least of a product's measured candidates
takes 1.02 times the fastest one's time."""
WIDE_CYCLES, STORED_CYCLES = 3.2, 0.34
"""Cycles of shared memory that a warp's vectors take at least, and for each 128 bytes that are copied there."""
FILL_BYTES, FIRST_BYTES = 40.0, 95.0
"""Bytes that a multiprocessor gets from the second-level cache in a cycle beside other work, which bounds nothing
measured and is a choice, and those of the first fills, beside which there is none."""
FILL_CYCLES, WARP_CYCLES = 15.0, 7.0
"""Cycles that a block's warps wait for each other in a fill, and more for each of them."""
LACKING, ALIKE, EXPOSED = 0.29, 0.18, 1.4
"""Warps of a scheduler whose time to issue passes with none ready, what a block that has a multiprocessor alone takes
longer, and cycles of each four terms that nothing hides."""
USUAL_SUMS, HEAVY = 48, 0.12
"""Sums of a thread beyond which its registers leave the compiler less room, and what as many more take longer."""
APART = 0.36
"""Part of the shorter one of issuing and serving shared memory that does not pass beside the other."""
COPY_CYCLES, BLOCK_CYCLES, HIDDEN = 690.0, 970.0, 0.38
"""Cycles until a copy is there, those of a block before its first and behind its last fill, and the part of these that
passes beside other blocks of a multiprocessor."""
RESULT_ISSUES = 8.1
"""Instructions of a result behind the last fill."""
KERNEL_S, SECOND_S, JOINED_BYTES_PER_S = 1.24e-6, 1.03e-6, 7.7e12
"""Seconds of a kernel that does nothing, of a second one, and bytes of parts that these write and read in a second."""
CYCLES_PER_S = 1.98e9
"""The clock of an H200."""
SCALE = 1.5
"""Seconds that other estimates of products say for each that they take: 1.53 in the mean of 49 products (an H200)."""


def copied_at_once(run: int) -> int:
    """Elements that a thread copies at once, of rows of so many: a vector where they begin at multiples of one."""
    return VECTOR if run % VECTOR == 0 else 1


@dataclass(frozen=True)
class SlicedModel(GpuModel):
    """The time of such a product, whose rows are read as vectors along the terms, in `parts` on blocks of their own.

    So are columns of a `turned` one.
    """

    turned: bool = False

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Whole warps in each slice, parts of whole vectors, and as many results for all threads, beside others."""
        own, (axis,) = self.threads(c) / self._slices(c), self.reduce
        along_terms = self.operands if self.turned else self.operands[:1]
        has_vectors = any(copied_at_once(operand.run) == VECTOR for operand in along_terms)
        whole = VECTOR * self._parts(c) if has_vectors else 1
        mask = (own % WARP == 0) & (axis.extent % whole == 0)
        mask &= np.all([self._tile(c, a) <= a.extent for a in self.axes], axis=0)
        return np.asarray(mask & (self._accumulators(c) % self._slices(c) == 0) & super().limit(c))

    def _parts(self, c: Columns) -> Array:
        return np.asarray(c[self.parts], dtype=np.float64) if self.parts else self._ones(c)

    @once
    def planned_elements(self, c: Columns) -> Array:
        """As of others, with what the last of several rounds of copies goes beyond a tile.

        Where a round of all threads are whole rows, that is rows more: a predicate holds them back, by which
        `passes.analysis.placement` does not see where the tile ends.
        """
        planned, sizes = self._ones(c) * 0, self._extents(c)
        for operand in self.operands:
            first, row = (span.reach(sizes) for span in operand.spans)
            copied = self.threads(c) * copied_at_once(operand.run)
            rounds = np.ceil(first * row / copied)
            rows = np.where((rounds > 1) & (copied % row == 0), rounds * copied / row, first)
            planned = planned + self._planned_tile(c, operand) / first * rows
        return np.asarray(planned * c[self.stages])

    def _registers(self, c: Columns, planned: Array) -> Array:
        """As of others, in a `turned` product with those of all terms of a vector, of rows and of columns.

        Without, blocks were to fit that left no room for them: of 320 candidates (an H200) 58 spilled registers, and
        took up to 1.6 times their estimate.
        """
        found = super()._registers(c, planned)
        words = [self._words(c, operand) for operand in self.operands] if self.turned else []
        return np.asarray(found + (VECTOR - 1) * sum(words, np.zeros(1)))

    def _resident(self, c: Columns, planned: Array) -> Array:
        return super()._resident(c, planned + SPARE)

    def _fill(self, c: Columns) -> tuple[Array, Array, Array]:
        """Of a fill: instructions of a warp, cycles of shared memory of a block, and bytes that it reads."""
        rows, columns = self.axes
        steps = self._step(c) / VECTOR
        by_rows = c[rows.inner].astype(np.float64)
        by_columns = (c[columns.virtual] * c[columns.inner]).astype(np.float64)
        terms_of_fill, tiles = self._step(c) * self._slices(c), [self._tile(c, axis) for axis in self.axes]
        elements = (tiles[0] + tiles[1]) * terms_of_fill
        alone = [tile for tile, o in zip(tiles, self.operands, strict=True) if copied_at_once(o.run) == 1]
        copies = elements / VECTOR + (1 - 1 / VECTOR) * terms_of_fill * sum(alone, np.zeros(1))
        each = TURNED_ISSUES if self.turned else 1.0
        issues = steps * (VECTOR * each * by_rows * by_columns + LOAD_ISSUES * (by_rows + by_columns))
        (terms,) = self.reduce
        tail = terms.extent % (self._step(c) * self._slices(c) * self._parts(c)) > 0
        issues = issues + TAIL_ISSUES * tail + COPY_ISSUES * np.ceil(copies / self.threads(c)) + FILL_ISSUES
        beside = np.maximum(WIDE_CYCLES, np.minimum(WARP, c[columns.thread]) * VECTOR / BANKS)
        served = self.threads(c) / WARP * steps * (WIDE_CYCLES * by_rows + beside * by_columns)
        return issues, served + STORED_CYCLES * elements / BANKS, elements * self.element_bytes

    def _cycles(self, c: Columns) -> Array:
        on, warps, stages = multiprocessor_of(self.target), self.threads(c) / WARP, c[self.stages].astype(np.float64)
        issues, served, filled = self._fill(c)
        joined = self.joined_elements(c) * self.element_bytes / on.shared_bytes_per_cycle
        results = self._accumulators(c) / self._slices(c) * (self._slices(c) / VECTOR + RESULT_ISSUES)

        heavy = 1 + HEAVY * np.maximum(0.0, self._accumulators(c) / USUAL_SUMS - 1)

        def blocks(resident: Array) -> Array:
            """Cycles of so many blocks at a time on a multiprocessor."""
            of_scheduler = np.ceil(resident * warps / on.schedulers)
            issued = (of_scheduler * (1 + ALIKE / resident) + LACKING) * issues * heavy
            issued = issued + EXPOSED * self._step(c) / VECTOR
            shared = resident * served
            together = np.maximum(issued, shared) + APART * np.minimum(issued, shared)
            alone = np.maximum(issues, COPY_CYCLES / (stages - 1))
            fill = np.maximum(
                np.maximum(together, resident * filled / FILL_BYTES) + FILL_CYCLES + WARP_CYCLES * warps, alone
            )
            first = resident * filled * np.minimum(stages - 1, self._fills(c)) / FIRST_BYTES
            ends = resident * 2 * joined + of_scheduler * results + BLOCK_CYCLES + first
            return np.asarray(self._fills(c) * fill + ends)

        per_sm, launched = self._resident(c, self.planned_elements(c)), self._blocks(c)
        total, rounds = cycles_of_rounds(launched, self.cores, per_sm, blocks), launched / (self.cores * per_sm)
        return np.asarray(total - HIDDEN * BLOCK_CYCLES * np.maximum(0.0, np.ceil(rounds) - 1) * (per_sm > 1))

    def seconds(self, c: Columns) -> Array:
        """Seconds on the scale of other estimates of products."""
        seconds = self._cycles(c) / CYCLES_PER_S + KERNEL_S
        if self.parts:
            results = self.outer * float(np.prod([float(a.extent) for a in self.axes]))
            seconds = seconds + SECOND_S + 2 * self.element_bytes * results * c[self.parts] / JOINED_BYTES_PER_S
        return np.asarray(SCALE * seconds)
