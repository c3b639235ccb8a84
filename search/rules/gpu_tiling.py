"""Multi-level tiling on a GPU: S S S R R S R S over blocks, virtual threads and threads, operands in shared memory.

The threads of a block fill the shared buffers together, a few neighbouring elements each; accumulators are registers.

How rows in shared memory are padded (`storage_align`) is no choice of a search. An operand that lies there as it does
in global memory is filled along its rows, without a conflict at any padding. One that is turned is filled across its
rows: of rows of 32m + 4 elements, the threads of a warp meet in no bank where a step is 8 deep, two do at 2, 4 and 16,
four at 32. Its rows are read as vectors of four, so the padding is a multiple of four; 12, 20 and 28 conflict as 4
does, and 8 and 16, better for steps of 4 and of 2, twice and four times as often from 8 on.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import ClassVar

from ...dialects.attributes import Axis
from ...dialects.buffers import buffer_shape
from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.index import atom_axes
from ...dialects.target import Target
from ...passes.analysis.argument_marks import is_constant
from ...passes.primitive import ScheduleError
from ..sketch.draft import CostEstimate, Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, Operand
from ..structure.gpu_chains import Shape, chains_of
from ..structure.kinds import contraction_of
from ._gpu_factors import parts_of
from ._gpu_large_tiles import is_large
from ._gpu_one_tap import as_product, seen_as_product
from ._gpu_register_windows import RegisterWindow, register_windows, write_register_windows
from ._gpu_sliced_products import is_sliced, write_sliced
from ._gpu_tile_plan import SMALL, GpuVariant
from ._gpu_tiles import with_packed, write_tiling
from ._structures import tile_anchors

MOST_FUSED = 4096
"""Elements of the last two axes up to which they may be taken as one. A choice: an image of 64 x 64, beyond which whole
rows fill blocks."""
DEEPEST_UNDIVIDED = 64
"""Terms from which on a reduction may be divided. A choice: parts of it are eight fills of 8."""
LEAST_OF_WINDOWS = 256
"""The same where the taps of windows are counted, with fewer channels. A choice: a part is some channels of 5x5. On an
H200 32x1536 to 384 with 15 taps, 4 apart, takes 8.9 us so, 29.1 undivided (11.8 at best), 4x32x20x20 to 64 of 5x5/2 6.6
and 10.7, 48x13560 to 32 with 15 taps 23.2 and 36.7, 32x28x28 to 32 of 3x3, 288 terms, 4.4 both."""
DEEPEST_OF_VECTOR = 256
"""Terms of a vector times one matrix from which on tiles have it, in parts. On an H200 six with fewer take 1 / 1.05 to
1 / 1.2 of the time by the rules of rows, nine with as many and more 0.8 to 1.6 times as long (2000 by 80 4.9 us for
3.1), nine of several matrices 1 / 1.5 to 1.04 times."""
MOST_DIVIDED = 1 << 20
"""Results up to which a reduction may be divided. A choice: more keep all multiprocessors busy, and parts of each cost
memory."""

MOST_OF_DEEP, MOST_TAPS, LEAST_FILTERS = 1 << 16, 25, 1_000_000
"""Results and places of a window, at most, and elements of the filters, at least, of a convolution that may be divided
among blocks, and again among the threads of each. 512 channels of 7x7 take 10.2 us so at best, 13.5 of those divided
once (an H200), 448 of 14x14 to 256 with stride 2 10.8 and 12.3, 256 of 7x7 to 512 in batches of 2 12.9 and 14.7. Of 13
with fewer elements what is chosen so took 0.88 to 2.0 times as long, 1.2 in the mean."""

SHORTEST_RUN = 4
"""Filters of a group, at least, that are tiled as those of one convolution are. A choice: one vector of results. On an
H200 groups of 80, 32, 16 and 4 filters take 4.0, 10.8, 3.6 and 34 us so, each for itself 18.6, 27.9, 6.4 and 76."""
MOST_JOINED = 1 << 14
"""Results up to which products for the same elements are one kernel, in which nothing is reused in shared memory. A
choice: those of 16 rows of 1024 columns; an LSTM of 2 layers and 32 steps of 4 x 128 takes 0.26 ms so on an H200, where
it took 0.6."""


class GpuTiling(SketchRule):
    """Reductions with data reuse, on a GPU."""

    order: ClassVar[int] = 300

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        joined = joined_reductions(draft)

        def structures(anchor: Anchor) -> list[GpuVariant | RegisterWindow]:
            left = anchor.block in joined or (target.kind == "cuda" and is_matrix_by_vector(anchor))
            found = [] if left else gpu_variants(anchor)
            kept = [variant for variant in found if target.kind == "cuda" or not (variant.large or variant.in_both)]
            product = seen_as_product(draft, anchor) if kept and target.kind == "cuda" else anchor
            if kept and is_sliced(product, target, product is not anchor):
                kept.append(GpuVariant(anchor.spatial[-1:], sliced=True, large=True))
                kept.append(GpuVariant(anchor.spatial[-1:], split=True, sliced=True, large=True))
            return [*kept, *register_windows(anchor, target)]

        def write(grown: Draft, anchor: Anchor, variant: GpuVariant | RegisterWindow) -> Iterator[CostEstimate]:
            if isinstance(variant, RegisterWindow):
                return write_register_windows(grown, anchor, target)
            if variant.along_terms:
                product = as_product(grown, with_packed(grown, anchor, variant))
                if not is_sliced(product, target, pixels=True):
                    raise ScheduleError(None, f"'{anchor.block}' is no product beside one that is tiled already")
                return write_sliced(grown, product, variant.split, target)
            return write_tiling(grown, anchor, variant, target)

        return tile_anchors(draft, structures, write)


def joined_reductions(draft: Draft) -> set[str]:
    """Return the reductions of which others have results for the same few elements, which one block computes of all.

    They are left to rules that compute all of them in one kernel, as the sums for the gates of a recurrent cell.
    """
    found: set[str] = set()
    for chain in chains_of(draft):
        if len(chain.reductions) > 1 and not chain.within and Shape.of(draft, chain).rows <= MOST_JOINED:
            found.update(chain.reductions)
    return found


def gpu_variants(anchor: Anchor) -> Iterator[GpuVariant]:
    """The structures worth searching for an anchor."""
    if anchor.shared_by_all(anchor.spatial[-1].name):
        return  # nothing is reused along what neighbouring threads compute: shared memory would not pay
    deepest = max((a.extent for a in anchor.reduce), default=1)
    terms = prod(a.extent for a in anchor.reduce)
    runs = anchor.axis_of_runs(SHORTEST_RUN)
    deep = deepest >= DEEPEST_UNDIVIDED or terms >= LEAST_OF_WINDOWS
    divided = deep and prod(a.extent for a in anchor.spatial) <= MOST_DIVIDED
    for group in _fused_axes(anchor):
        yield GpuVariant(group)
        if runs and all(a.name != runs for a in group):
            yield GpuVariant(group, runs=runs)
        if divided and parts_of(deepest, False):
            yield GpuVariant(group, split=True)
        if divided and parts_of(deepest, True) and len(group) == 1:
            yield GpuVariant(group, sliced=True)
            if is_deep_window(anchor):
                yield GpuVariant(group, split=True, sliced=True)
        if len(group) == 1 and is_large(anchor):
            yield GpuVariant(group, large=True)
            if parts_of(deepest, False):
                yield GpuVariant(group, split=True, large=True)


def is_matrix_by_vector(anchor: Anchor) -> bool:
    """True for sums of products that use each element of a factor once, which through shared memory pays for nothing.

    Threads read it where it is, and add up by the rules of rows: those of several matrices, or of few terms. Many terms
    of one matrix are divided among blocks of threads.
    """
    if len(anchor.operands) != 2 or len(anchor.reduce) != 1:
        return False
    names = {a.name for a in (*anchor.spatial, *anchor.reduce)}
    read_once = [o for o in anchor.operands if all(len(e.axes() & names) <= 1 for e in o.indices)]
    short = anchor.reduce[0].extent < DEEPEST_OF_VECTOR or any(anchor.shared_by_all(a.name) for a in anchor.spatial)
    return short and any(anchor.kept_results(operand) == 1 for operand in read_once)


def is_deep_window(anchor: Anchor) -> bool:
    """True for windows of many channels and filters whose results are few tiles.

    Not of constant filters, which are packed ahead: nobody has measured these.
    """
    found = contraction_of(anchor)
    taps = prod(slide.tap.extent for slide in found.slides if slide.tap.extent <= SMALL) if found is not None else 1
    if not 1 < taps <= MOST_TAPS or not anchor.pads or element_bytes(anchor.element) != FLOAT32_BYTES:
        return False
    others = [o.buffer for o in anchor.operands if o.name not in anchor.pads and not is_constant(o.buffer)]
    filters = [prod(buffer_shape(buffer)) for buffer in others]
    return max(filters, default=0) >= LEAST_FILTERS and prod(a.extent for a in anchor.spatial) <= MOST_OF_DEEP


def _fused_axes(anchor: Anchor) -> list[tuple[Axis, ...]]:
    """The last axes that threads may take as one: two of them first, where operands move along both or neither.

    Not filters of groups, as where images have one row: of two groups, a tile would have all channels between them.
    """
    *others, last = anchor.spatial
    if not others or others[-1].extent * last.extent > MOST_FUSED:
        return [(last,)]
    moving = [o for o in anchor.operands if last.name in o.axes]
    both = all(others[-1].name in o.axes and not _jumps(o, others[-1].name) for o in moving)
    return [(others[-1], last), (last,)] if both else [(last,)]


def _jumps(operand: Operand, axis: str) -> bool:
    """True where an axis moves the place in a dimension, among other terms, by a quotient or a remainder of it."""
    return any(
        len(index.terms) > 1 and not isinstance(atom, str) and axis in atom_axes(atom)
        for index in operand.indices
        for atom, _ in index.terms
    )
