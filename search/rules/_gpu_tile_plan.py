"""The plan of a reduction tiled on a GPU: what its axes, its operands and the pipeline around them may become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy.typing as npt

from ...dialects.attributes import Axis
from ...dialects.buffers import element_of_buffer
from ...dialects.element import element_bytes
from ...dialects.kernel import ASYNC_BYTES
from ...dialects.target import WARP, Target
from ...passes.analysis.views import run_of
from ..estimates.gpu_tile import MOST_INNER
from ..sketch import arrays as np
from ..sketch.hole import Columns, Derived, Hole, Kind
from ..structure.anchor import Anchor, Operand
from ._ahead import may_be_packed_ahead
from ._choices import dividing, up_to
from ._gpu_copies import Apart, Reads, SharedCopy, rows_for
from ._gpu_division import Division
from ._gpu_factors import INNER, LONG, STEPS, THREADS, factors_of, largest_divisors, odd_divisors
from ._gpu_large_tiles import LARGE_STAGES, LARGE_STEPS, LARGE_UNROLLED, copied_widths, large_factors

SMALL = 8
"""A reduce axis up to this extent, such as a filter's, is in shared memory as a whole. A choice: filters of 1 to 7
elements are, and no channels."""
MOST_AXES = 4
"""Spatial axes that are tiled, counting fused ones as one; the shortest of more are left to the grid. A choice: a
convolution has as many but for its batch, and each more is two holes. Of a transposed one the phases are the shortest:
with its channels left to the grid instead, each block read the image for one channel, and 64 of 128x64x64 with stride 2
took 3.2 times cuDNN's time on an H200."""
VIRTUAL = (1, 2, 4)
"""Virtual threads along an axis."""
WIDTHS = (1, 2, 4)
"""Elements that a thread copies, or stores, at once: up to 16 bytes of float32, the widest access of a thread (CUDA C++
programming guide, "Device memory accesses")."""
STAGES = (1, 2, 3, 4)
"""Stages of the software pipeline that fills shared memory; 1 is none."""
UNROLLED = (0, 32, 128, 512)
"""Statements that the loops of a reduction step may become when they are unrolled."""

USUAL_INNER = 4
"""Results of a thread along an axis without a search: one vector of float32. A choice: two axes of them are 16 sums,
which hide the latency of a multiply-add."""
USUAL_STEP = 8
"""Reduction steps between two fills of shared memory without a search, at most. A choice: the defaults fit the smallest
shared memory, that of embedded GPUs."""
USUAL_THREADS = 256
"""Threads of a block without a search, at most: eight warps, two for each scheduler of a multiprocessor. A choice."""
USUAL_SLICE_THREADS = 128
"""The same for one of several slices, of which there are two without a search: as many in all."""
MOST_WHOLE = 64
"""Results of an image that a thread takes as a whole without a search, where a reduction is divided twice: two thirds
of its registers are its sums and a row of the window then. 7x7 of 512 channels take 10.2 us so at best on an H200, in
rows 13.1."""
USUAL_THREADS_OF_AXIS = 16
"""Threads along one axis without a search: a square of them is a block. A choice, as is that."""


@dataclass(frozen=True)
class GpuVariant:
    """One structure: the last axes taken as one, and among what the reduction is divided.

    `split`: among blocks, and a second kernel adds up. `sliced`: among the threads of a block, which add up in shared
    memory; both: each block's part among its threads. `runs` is the axis whose tiles stay in a run of filters that read
    the same data, empty where there is none.
    """

    fused: tuple[Axis, ...]
    split: bool = False
    sliced: bool = False
    runs: str = ""
    large: bool = False

    @property
    def axis(self) -> str:
        """The axis that the fused ones become."""
        return "_".join(a.name for a in self.fused)

    @property
    def along_terms(self) -> bool:
        """A product in slices whose rows are read along their terms, of which `_gpu_sliced_products` has the plan."""
        return self.sliced and self.large

    @property
    def in_both(self) -> bool:
        """Divided among blocks, and among the threads of each, with operands as other tiles have them."""
        return self.split and self.sliced and not self.along_terms

    def label(self, block: str) -> str:
        """The holes' names begin with it: those of large tiles have choices of their own."""
        return f"{block}_large" if self.large else block

    @property
    def name(self) -> str:
        marks = (("split", self.split), ("sliced", self.sliced), ("runs", self.runs), ("large", self.large))
        return "_".join((self.axis, *(mark for mark, is_so in marks if is_so)))


@dataclass(frozen=True)
class AxisTile:
    """A spatial axis in virtual threads, threads, and elements of a thread."""

    name: str
    extent: int
    virtual: Hole
    threads: Hole
    inner: Hole

    @property
    def factors(self) -> tuple[Hole, Hole, Hole]:
        """From the outermost to the innermost."""
        return self.virtual, self.threads, self.inner


@dataclass(frozen=True)
class GpuReduceTile:
    """A reduce axis: its extent, that before it was divided, and the steps that shared memory holds at a time.

    `step` is None where that is all of a part.
    """

    name: str
    extent: int
    step: Hole | None


@dataclass(frozen=True)
class StagedOperand:
    """An operand whose tile is copied to shared memory, in vectors; the copy is turned round where it has a layout.

    A `fragment` is what a thread reads of it in one reduction step, as vectors into registers.
    """

    operand: Operand
    copy: SharedCopy
    vector: Hole
    has_fragment: bool

    @property
    def fragment(self) -> str:
        """The block that copies to registers, and its buffer."""
        return f"{self.copy.label}_local"


@dataclass(frozen=True)
class SlicePlan:
    """Joining of slices: vectors of so many results, tiles of the result by axis, and the threads that add up.

    These are as many as divide the vectors of a tile.
    """

    width: Hole
    tiles: dict[str, Derived]
    threads: Derived


@dataclass(frozen=True)
class GpuTilePlan:
    """A tiled reduction: `outer` axes are left to the grid, `axes` are tiled, the fused ones last.

    `anchor` is the reduction, of partial results where there is a `division`: in slices, or in parts; `parts` are those
    that are sliced again. `threads` are those of a block.
    """

    anchor: Anchor
    variant: GpuVariant
    target: Target
    division: Division | None
    parts: Division | None
    outer: tuple[Axis, ...]
    axes: tuple[AxisTile, ...]
    reduce: tuple[GpuReduceTile, ...]
    operands: tuple[StagedOperand, ...]
    stages: Hole
    registers: Hole
    unroll: Hole
    threads: Derived
    slices: SlicePlan | None
    run: int | None = None
    """Neighbours along the axis of the variant's runs, which tiles divide; None where it has none."""
    image: tuple[str, ...] = ()
    """The axes of images that a thread has as a whole without a search; none where it has a part."""

    @property
    def block(self) -> str:
        return self.anchor.block

    def within_runs(self, c: Columns) -> npt.NDArray[np.bool_]:
        """True where no tile goes from one run of filters to the next."""
        (tile,) = (tile for tile in self.axes if tile.name == self.variant.runs)
        assert self.run is not None
        return np.asarray(self.run % prod(c[hole.name] for hole in tile.factors) == 0)

    @property
    def steps(self) -> dict[str, Hole]:
        """The reduce axes that go through shared memory a few steps at a time."""
        return {r.name: r.step for r in self.reduce if r.step is not None}

    def numbers(self) -> Iterator[Hole | Derived]:
        """Return the holes and derived numbers in the order they have in a sketch."""
        for tile in reversed(self.axes):
            yield from (tile.inner, tile.threads, tile.virtual)
        yield from self.steps.values()
        yield from (staged.vector for staged in self.operands)
        yield from (self.stages, self.registers, self.unroll, self.threads)
        if self.slices is not None:
            yield self.slices.width
            yield from self.slices.tiles.values()
            yield self.slices.threads


def plan_tiles(
    anchor: Anchor, variant: GpuVariant, target: Target, division: Division | None, parts: Division | None = None
) -> GpuTilePlan:
    """Plan the tiling of one variant of an anchor; `parts` are those that a division into slices is of."""
    run = anchor.run_of(variant.runs) if variant.runs else None
    anchor = anchor.within_runs(variant.runs)
    sliced_part = division.part if division is not None and variant.sliced else ""
    spatial = [a for a in anchor.spatial if a.name != sliced_part]
    outer, tiled = _tiled_axes(anchor, variant, spatial)
    image = tuple(_whole_image(anchor, tiled)) if variant.in_both else ()
    axes = _axis_tiles(anchor.block, tiled, variant, run, image)
    reduce = _reduce_tiles(anchor, variant, division)
    names = [n for n, _ in tiled]
    operands = tuple(_staged(anchor, variant, o, names, outer) for o in _distinct(anchor))
    stepped = [r for r in reduce if r.step is not None]
    iterations = 1
    if stepped and (last := stepped[-1]).step is not None:
        extent = next(a.extent for a in anchor.reduce if a.name == last.name)
        iterations = -(-extent // last.step.default)
    stages = LARGE_STAGES if variant.large else tuple(n for n in STAGES if stepped or n == 1)
    unrolled = (LARGE_UNROLLED,) if variant.large else UNROLLED
    label = variant.label(anchor.block)
    counted = [tile.threads for tile in axes]
    if division is not None and variant.sliced:
        counted.append(division.parts)
    threads = Derived.of(f"{label}_all_threads", product_of([h.name for h in counted]), counted)
    return GpuTilePlan(
        anchor,
        variant,
        target,
        division,
        parts,
        tuple(outer),
        axes,
        reduce,
        operands,
        _hole(label, "stages", stages, min(2, iterations), "stages"),
        _hole(label, "registers", (0, 1) if stepped else (0,), 0),
        _hole(label, "unroll", unrolled, unrolled[-1], "unroll"),
        threads,
        _slices(anchor.block, axes, threads) if variant.sliced else None,
        run,
        image,
    )


def packed_row(anchor: Anchor, variant: GpuVariant, operand: Operand) -> str:
    """The axis that a constant operand is packed along ahead, whose copy would be turned round; empty for none.

    Vectors start at multiples of their size then. On an H200 a product of 512x4096 and 4096x4096 takes 454 us at best
    with a factor whose terms lie side by side, and one of 2048 cubed, of as many, without any 347.
    """
    within = anchor.within_runs(variant.runs)
    names = [name for name, _ in _tiled_axes(within, variant, within.spatial)[1]]
    layout = _turned_layout(within, variant, operand, names[:-1])
    extents = {a.name: a.extent for a in anchor.spatial}
    fits = bool(layout) and extents[layout[-1]] % max(WIDTHS) == 0
    return layout[-1] if fits and may_be_packed_ahead(operand, layout[-1:]) else ""


def join_width(block: str, extent: int, usual: int = 1) -> Hole:
    """Return the hole of results, a vector of a row, that a thread adds up parts for."""
    return _hole(block, "join_vector", tuple(n for n in WIDTHS if extent % n == 0), usual, "vector")


def _hole(block: str, name: str, choices: tuple[int, ...], wanted: int, kind: Kind = "tile", axis: str = "") -> Hole:
    return Hole.near(f"{block}_{name}", choices, wanted, kind, axis and f"{block}_{axis}")


def product_of(names: Sequence[str]) -> Callable[[Columns], npt.NDArray[np.int64]]:
    return lambda c: np.asarray(np.prod([c[n] for n in names], axis=0))


def _tiled_axes(
    anchor: Anchor, variant: GpuVariant, spatial: Sequence[Axis]
) -> tuple[list[Axis], list[tuple[str, int]]]:
    """The axes left to the grid, and those that are tiled with their extents, the fused ones as one at the end."""
    fused = {a.name for a in variant.fused}
    outer = [a for a in spatial if a.name not in fused and anchor.shared_by_all(a.name)]
    tiled = [a for a in spatial if a.name not in fused and a not in outer]
    left = sorted(tiled, key=lambda a: a.extent)[: 1 - MOST_AXES]
    outer = [a for a in spatial if a in outer or a in left]
    kept = [(a.name, a.extent) for a in tiled if a not in left]
    return outer, [*kept, (variant.axis, prod(a.extent for a in variant.fused))]


def _whole_image(anchor: Anchor, tiled: Sequence[tuple[str, int]]) -> list[str]:
    """The tiled axes along which windows slide, where a thread may have a whole image; none where it may not."""
    slid = {slide.place.name for operand in anchor.operands for slide in operand.slides}
    image = {name: extent for name, extent in tiled if name in slid}
    fits = prod(image.values()) <= MOST_WHOLE and all(extent in INNER for extent in image.values())
    return list(image) if fits else []


def _axis_tiles(
    block: str, tiled: Sequence[tuple[str, int]], variant: GpuVariant, run: int | None, image: Sequence[str] = ()
) -> tuple[AxisTile, ...]:
    """The factors of the tiled axes; the last one gets its threads first. Those of an axis of runs divide one.

    Without a search a thread has all of an `image`, of one filter; none for others.
    """

    def factors(name: str, extent: int, listed: tuple[int, ...], most: int) -> tuple[int, ...]:
        """Tiles of slices go evenly to all threads, which only powers of two do."""
        if run is not None and name == variant.runs:
            return dividing(factors_of(run, listed, most), run)
        return up_to(listed, extent) if variant.sliced else factors_of(extent, listed, most)

    left = USUAL_SLICE_THREADS if variant.sliced else USUAL_THREADS
    tiles: list[AxisTile] = []
    if variant.large:
        return _large_tiles(variant.label(block), tiled)
    for name, extent in reversed(tiled):
        choices = factors(name, extent, INNER, MOST_INNER)
        usual_inner = (extent if name in image else 1) if image else min(USUAL_INNER, extent)
        inner = _hole(block, f"{name}_inner", choices, usual_inner, axis=name)
        most = max(1, min(left, WARP if image else USUAL_THREADS_OF_AXIS, extent // inner.default))
        listed = [t for t in up_to(THREADS, max(1, extent)) if t <= most]
        if run is not None and name == variant.runs:
            listed = [t for t in listed if run % (t * inner.default) == 0]
        usual = max(listed, default=1)
        left //= usual
        choices = factors(name, extent, THREADS, max(THREADS) if extent >= LONG else 1)
        threads = _hole(block, f"{name}_threads", choices, usual, "threads", name)
        virtual = _hole(block, f"{name}_virtual", up_to(VIRTUAL, extent), 1, axis=name)
        tiles.insert(0, AxisTile(name, extent, virtual, threads, inner))
    return tuple(tiles)


def _large_tiles(block: str, tiled: Sequence[tuple[str, int]]) -> tuple[AxisTile, ...]:
    """The factors of rows and columns of a large product."""
    tiles = []
    for name, extent in tiled:
        virtual, threads, inner = large_factors(name == tiled[-1][0])
        tiles.append(
            AxisTile(
                name,
                extent,
                _hole(block, f"{name}_virtual", virtual, 2, axis=name),
                _hole(block, f"{name}_threads", threads, USUAL_THREADS_OF_AXIS, "threads", name),
                _hole(block, f"{name}_inner", inner, USUAL_INNER, axis=name),
            )
        )
    return tuple(tiles)


def _reduce_tiles(anchor: Anchor, variant: GpuVariant, division: Division | None) -> tuple[GpuReduceTile, ...]:
    """The reduce axes, with the steps of those that are long or divided, and of taps that lie far apart, in front.

    Of such taps shared memory has one at a time, or all with what lies between them. What fills it for one is in loops
    within, so that it runs ahead there: they are many, and taps are few.
    """
    tiles, far = list[GpuReduceTile](), list[GpuReduceTile]()
    for axis in anchor.reduce:
        divided = division is not None and division.rest.name == axis.name
        whole = division.rest.extent if division is not None and divided else axis.extent
        if axis.extent <= SMALL and not divided and _is_far_apart(anchor, axis):
            step = _hole(anchor.block, f"{axis.name}_step", (1, axis.extent), 1)
            far.append(GpuReduceTile(axis.name, whole, step))
            continue
        if axis.extent <= SMALL and not divided:
            tiles.append(GpuReduceTile(axis.name, whole, None))
            continue
        most = whole // 2 if divided else axis.extent
        even = tuple(n for n in STEPS if n <= most)
        fitting = [n for n in even if n <= USUAL_STEP and 2 * n <= axis.extent]
        exact = () if variant.sliced else odd_divisors(whole, min(max(STEPS), most))
        choices = LARGE_STEPS if variant.large else tuple(sorted({*even, *exact}))
        step = _hole(variant.label(anchor.block), f"{axis.name}_step", choices, max(fitting, default=even[0]))
        tiles.append(GpuReduceTile(axis.name, whole, step))
    return (*far, *tiles)


def _is_far_apart(anchor: Anchor, taps: Axis) -> bool:
    """True for taps of a window of which no two are of one element in the results that a thread has along an axis.

    Those along planes of a volume whose tiles are numbered through are so: the next one is a plane of tiles further on.
    """
    spatial = {a.name for a in anchor.spatial}
    for terms in (dict(index.terms) for operand in anchor.operands for index in operand.indices):
        along = [abs(step) for axis, step in terms.items() if axis in spatial]
        if taps.name in terms and along and abs(terms[taps.name]) >= MOST_INNER * min(along):
            return True
    return False


def _distinct(anchor: Anchor) -> list[Operand]:
    """The operands of which tiles are copied, each once; a single number is read where it is."""
    return list({o.name: o for o in anchor.operands if o.indices}.values())


def _staged(
    anchor: Anchor, variant: GpuVariant, operand: Operand, names: Sequence[str], outer: Sequence[Axis]
) -> StagedOperand:
    layout = _turned_layout(anchor, variant, operand, names[:-1])
    widths = copied_widths(run_of(operand.buffer), bool(layout)) if variant.large else WIDTHS
    usual = max(widths) if variant.in_both and operand.name not in anchor.pads else 1
    vector = _hole(variant.label(anchor.block), f"{operand.name}_vector", widths, usual, "vector")
    is_box = _is_box(operand, {*names, *(a.name for a in outer)}, variant)
    copy = SharedCopy(operand.name, f"{operand.name}_shared", layout, _apart(anchor, variant, operand, names, layout))
    return StagedOperand(operand, copy, vector, is_box)


def _apart(
    anchor: Anchor, variant: GpuVariant, operand: Operand, names: Sequence[str], layout: Sequence[str]
) -> Apart | None:
    """The dimension of a copy whose elements are to begin anew: rows that vectors are read of, or in other banks."""
    if layout:
        return rows_for(Reads.ROWS, len(layout) - 2)
    if not variant.in_both:
        return None
    if operand.name in anchor.pads:
        return rows_for(Reads.VECTORS, len(operand.indices) - 2)
    first = next((d for d, e in enumerate(operand.indices) if e.as_axis() in names), None)
    return None if first is None else rows_for(Reads.ROWS, first)


def _turned_layout(anchor: Anchor, variant: GpuVariant, operand: Operand, row_axes: Sequence[str]) -> tuple[str, ...]:
    """The layout that puts neighbours along a spatial axis side by side, for an operand contiguous in another one.

    That is the data of a product, and its weight where terms are last in it: read as it lies in global memory, 8 terms
    of a column behind 8 of the next, 16 threads along the columns meet in two banks. On an H200 twelve untuned products
    of 197 rows take 1.54x as long so, in geometric mean. Narrow elements stay, since threads copy four bytes or more at
    once while they go on. So do windows that slide along the lanes: turned, each window would have its elements apart.
    """
    lanes = [a.name for a in variant.fused]
    rows = [n for n in (*row_axes, *lanes) if n in operand.axes]
    if len(rows) != 1 or operand.steps_along(rows[0]):
        return ()
    if rows[0] in lanes and (len(lanes) > 1 or not _has_lanes_apart(operand, rows[0])):
        return ()
    padded = any(operand.name == pad for pad in anchor.pads)
    once = sum(o.name == operand.name for o in anchor.operands) == 1
    return () if padded or not once or variant.in_both else (*(n for n in operand.axes if n != rows[0]), rows[0])


def _has_lanes_apart(operand: Operand, lanes: str) -> bool:
    """True for elements of four bytes or more whose neighbours along the lanes are rows apart, none in one row."""
    return (
        element_bytes(element_of_buffer(operand.buffer)) >= min(ASYNC_BYTES) and lanes not in operand.indices[-1].axes()
    )


def _is_box(operand: Operand, spatial: set[str], variant: GpuVariant) -> bool:
    """True where the elements that a thread reads in one reduction step are just a box of its tile's sizes."""
    fused = {a.name for a in variant.fused} if len(variant.fused) > 1 else set()
    moved = [(n, c) for e in operand.indices for n, c in e.terms if not isinstance(n, str) or n in spatial | fused]
    once = len({n for n, _ in moved}) == len(moved)
    return once and all(isinstance(n, str) and n in spatial and c == 1 for n, c in moved)


def _slices(block: str, axes: Sequence[AxisTile], threads: Derived) -> SlicePlan:
    def tile(axis: AxisTile) -> Derived:
        return Derived.of(f"{block}_{axis.name}_tile", product_of([h.name for h in axis.factors]), axis.factors)

    width, tiles = join_width(block, axes[-1].extent), {axis.name: tile(axis) for axis in reversed(axes)}
    names = [each.name for each in tiles.values()]

    def adding(c: Columns) -> npt.NDArray[np.int64]:
        vectors = np.prod([c[name] for name in names], axis=0) // c[width.name]
        return largest_divisors(np.maximum(1, vectors), c[threads.name])

    numbers: list[Hole | Derived] = [*tiles.values(), width, threads]
    return SlicePlan(width, tiles, Derived.of(f"{block}_adding_threads", adding, numbers))
