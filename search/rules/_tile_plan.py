"""The plan of a reduction tiled on a CPU: what axes, panels and accumulators of a structure may become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

import numpy.typing as npt

from ...dialects.attributes import Axis
from ...dialects.buffers import buffer_shape
from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.target import Target
from ..estimates import cache_traffic as traffic
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Derived, Hole, Kind, Limit
from ..structure.anchor import Anchor, Operand
from ._ahead import may_be_packed_ahead
from ._choices import up_to
from ._lanes import lanes_of, threads_pay
from ._pixels_apart import pixels_of
from ._reduce_steps import UNROLLED, divides, divides_badly, steps_of
from ._row_panel import padded_blocks, panel_rows, row_operand, turned_rows
from ._tile_variants import SMALL, Variant, elements_in_turn, is_product, vector_operands
from ._turned import TURNED_BYTES
from ._turned_epilogue import stored_apart_cycles, stored_in_line, turning_cycles

MOST_ROWS = 3
"""Spatial axes beside the vectors' that are tiled; further ones outside are tasks: those of a convolution but for its
batch. With 2 three of 58 default schedules change, in 1.13 of the time; with 4 one, in 0.86 (Zen 3), but each more is a
hole more for all."""
ROW_TILES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
"""Rows of a register tile: more than its accumulators find registers for."""
ODD_ROW_TILES = (9, 11, 13)
"""The same with lanes along channels, where they divide the rows: of 33x33x256 dilated by 6 rows of 11 take 9.4 ms,
tiles of 3x3 10.6 (one core of an Emerald Rapids)."""
VECTORS = (1, 2, 3, 4, 5, 6, 7, 8)
"""Vectors side by side in a register tile."""
MIDDLE_TILES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Register tiles along an axis of a cache tile."""
USUAL_VECTORS = 4
"""Vectors side by side in a register tile without a search: with `USUAL_ROWS` it fills 32 registers, the 24
accumulators beside the vectors and a broadcast."""
USUAL_ROWS = 6
"""Rows of a register tile along one axis without a search, at most. Estimates choose among all of them: with 4 none of
58 default schedules changes (Zen 3)."""


MOST_ASKED, ROWS_AHEAD = 64, 8
"""Rows, at most, for which the other factor, where the second-level cache does not keep it, is asked for ahead while
it is read in place, and by how many of its rows: nothing else fetches what is on another page. 31 x 200 x 3608 takes
503 us without, 425, 427 and 459 with 8, 16 and 32 (MKL 437), 64 x 2752 x 1664 in four tiles 5.5 to 6.6 ms without, 5.1
to 5.7 with (one core of an Emerald Rapids that others use); more rows read it from a cache most of the time: 844 x 48 x
3840 takes 1.1 times as long."""
FEWEST_CHANNELS = 32
"""Terms along one axis of a sum, at least, for the same. With 3 channels and 11x11 taps the stem of AlexNet takes 4.6
ms so, 2.8 by the model's choice; between 3 and 32 none was measured. Groups of filters are the model's, too: 1024
channels of 14x14 in 32 groups take 1.23 ms so, 0.94 by its choice (a core of 16 of an Emerald Rapids)."""
FEWEST_STREAMED = 16
"""Channels of a convolution of one tap, at least, for estimates to choose: 16 of 112x112 to 96 take 202 us so, 233 by
the model's choice (two threads of an Emerald Rapids); fewer were not measured."""
LONG_SUM = 256
"""Terms of a sum, at least, for estimates to choose lanes along channels. With 27 terms the stem of Inception takes 6.6
times as long as by the model's choice, that of YOLO 4, with 162 18x64x64 2.4 times; with 432 and more 1 / 1.28 of the
time, 0.76 to 2.5 (one core of an Emerald Rapids)."""


@dataclass(frozen=True)
class RowTile:
    """A spatial axis in cache tiles (`middle` register tiles each) and register tiles (`inner` rows each)."""

    axis: Axis
    middle: Hole
    inner: Hole


@dataclass(frozen=True)
class ReduceTile:
    """A reduce axis in blocks, and unrolled steps; `block` is None where it is one block.

    One that `is_padded` has whole steps, those beyond its end of zeros.
    """

    axis: Axis
    block: Hole | None
    unroll: Hole
    is_padded: bool = False


@dataclass(frozen=True)
class TilePlan:
    """A tiled reduction: axes that are `outer` are tasks, `rows` and the variant's `vector` axes are tiled.

    `vectors` of so many `lanes` are side by side in a register tile, `vector_middle` times that in a cache tile.
    `moving` are the operands along the lanes, `packed` the names of their buffers, which arguments that are packed
    ahead have no more once they are; `panel_width` the lanes of a panel, None where nothing is packed. `still` is the
    operand of the rows where it is packed too, `turned` how many of its rows are transposed together, `block_steps` the
    steps of a block where panels are of all blocks, one after the other. `turning` are the cycles of an epilogue that
    writes along another axis. `numbers` are all holes and derived numbers, in the order they have in a sketch. `runs`
    keeps tiles within runs of filters. Rows of the moving operand are asked for so many steps `ahead`. Results that are
    stored along the last rows, across the lanes of their sums, change places in registers, so many `stored_lanes` at a
    time.
    """

    anchor: Anchor
    variant: Variant
    target: Target
    outer: tuple[Axis, ...]
    rows: tuple[RowTile, ...]
    lanes: Hole
    vectors: Hole
    vector_middle: Hole
    reduce: tuple[ReduceTile, ...]
    moving: tuple[Operand, ...]
    packed: frozenset[str]
    panel_width: Derived | None
    still: Operand | None
    turned: Derived | None
    block_steps: Derived | None
    turning: float
    numbers: tuple[Hole | Derived, ...]
    runs: Limit | None = None
    ahead: Derived | None = None
    stored_lanes: Derived | int | None = None

    @property
    def block(self) -> str:
        return self.anchor.block

    @property
    def is_sure(self) -> bool:
        """True for lanes along channels of long sums over windows, whose estimates the shipped model does not correct.

        It has seen none, and takes others for faster. Of windows in padding it chooses the faster ones all the same:
        14x14x2048 by 12 6.6 ms for 10. Without windows estimates take pixels that lie a line at a time in planes of a
        page and more for near: 256 channels of 56x56 to 64 take 3.0 ms so, 2.0 by the model's choice, of 129x129 to 21
        8.6 and 6.3, 14x14 and 7x7 0.85 to 1.09 of its speed (one core of an Emerald Rapids).
        """
        terms = prod(a.extent for a in self.anchor.reduce)
        channels = self.variant.vector[-1] != self.anchor.spatial[-1] and self.anchor.has_windows
        deep = max(a.extent for a in self.anchor.reduce) >= FEWEST_CHANNELS and not self.variant.runs
        return channels and deep and terms >= LONG_SUM and not self.variant.windows

    @property
    def pixels(self) -> Operand | None:
        """The operand of windows that each tile lays out along the lanes, pixel by pixel."""
        return pixels_of(self.anchor) if self.variant.turns_pixels else None

    @property
    def in_panels(self) -> tuple[Operand, ...]:
        """The operands along the lanes that are packed in panels."""
        return tuple(o for o in self.moving if o is not self.pixels) if self.variant.panel != "direct" else ()

    @property
    def pads_ahead(self) -> tuple[str, ...]:
        """The blocks that pad operands ahead of all tiles: neither where these are read, nor as they are packed."""
        if self.variant.inline_pads:
            return ()
        phases = {window.pad for window in self.variant.phases}
        packed = self.packed if self.panel_width is not None else frozenset()
        return tuple(pad for pad in self.anchor.pads if pad not in phases and pad not in packed)

    @property
    def leaves_out(self) -> bool:
        """True for sums over channels whose tiles leave out much padding, by which estimates alone choose.

        Nothing else tells the shipped model of it. Of nine random ones with 8 to 768 channels of 7x7 to 36x36, 3x3 and
        5x5 by 4 to 18, choices take 1 / 1.14 to 1 / 2.81 of the time so (one core of a Zen 5).
        """
        taps = {window.tap for window in self.variant.windows}
        return bool(taps) and any(axis.name not in taps for axis in self.anchor.reduce)

    @property
    def is_streamed(self) -> bool:
        """True for lanes along channels of convolutions of one tap, channels last, whose filters may be packed ahead.

        Estimates alone choose among them, in rounds: 21 layers take 1 / 1.10 of the time of the model's choice so (one
        core of an Emerald Rapids, seconds of the CPU; 0.95 to 1.27), MobileNet v1 and v2 1 / 1.16 and 1 / 1.03 on two
        threads. With filters of 2 MB and more, which come from further away than the second-level cache, they take 1.06
        to 1.13 times as long by estimates (7x7x2048 to 512, a ResNet-50 on one core). Products were not measured.
        """
        anchor = self.anchor
        free = self.variant.panel in ("ahead", "direct") and self.still is None and not self.variant.runs
        if not free or len(anchor.reduce) != 1 or anchor.reduce[0].extent < FEWEST_STREAMED or anchor.pads:
            return False
        pixels = [o for o in anchor.operands if o not in self.moving]
        windows = len(pixels) == 1 and not pixels[0].reads_plain
        elements = prod(a.extent for a in (*self.variant.vector, *anchor.reduce))
        near = elements * element_bytes(anchor.element) < self.target.l2_bytes
        packed = (near or self.variant.panels_asked) and all(
            may_be_packed_ahead(o, self.variant.axes) for o in self.moving
        )
        return packed and windows and pixels[0].indices[-1].as_axis() == anchor.reduce[0].name and len(self.rows) > 1

    @property
    def filters_first(self) -> bool:
        """True where tasks are those of all pixels for one block of filters after the other, which are packed ahead.

        With pixels around filters all of these are read for every few pixels, from beyond the second-level cache where
        it does not keep them, and by each thread. Pixels are the smaller operand: they are read for each block of
        filters. Where threads divide the filters, each reads the pixels of all, and leaves to others what they read of
        its results: a thread finds its own pixels in its cache, and those of others take at least twice as long.
        """
        if self.variant.panels_asked:
            return True
        if self.variant.panel != "ahead" or self.still is not None or self.variant.runs or self.pixels is not None:
            return False
        filters = max(self._bytes_in_turn(operand) for operand in self.moving)
        pixels = max(self._bytes_in_turn(operand) for operand in self.anchor.operands if operand not in self.moving)
        if self.is_parallel and prod(axis.extent for axis in self.outer) < self.target.cores:
            results = prod(axis.extent for axis in self.anchor.spatial) * element_bytes(self.anchor.element)
            return filters > 2 * (pixels + results)
        return filters > pixels and filters >= traffic.KEPT * self.target.l2_bytes

    @property
    def asks_blocks(self) -> bool:
        """True where the next block of a panel is asked for while one is in use: of products laid out before all tiles.

        Where the second-level cache does not keep all panels, the first rows of a tile waited for each block, and the
        others found it there with the caches beyond idle.
        """
        return _asks_blocks(self.anchor, self.variant, self.target, self.moving)

    def _bytes_in_turn(self, operand: Operand) -> int:
        """Bytes of an operand that the tasks of one place of the outer axes read."""
        places = prod(axis.extent for axis in self.outer if axis.name in operand.axes)
        return prod(buffer_shape(operand.buffer)) * element_bytes(self.anchor.element) // places

    @property
    def is_line(self) -> bool:
        """True for lanes along rows of pixels as one line, that each tile packs, in sums over channels alone.

        The model that ships likes others better, of planes read in place above all: 256 channels of 129x129 to 21 take
        7.7 ms by it and 3.7 so, 320 of 65x65 to 21 1.85 and 1.22, 384 of 35x35 to 64 1.12 and 0.81. 22 with one tap
        took 1 / 1.15 of the time in the mean, 1 / 0.95 to 1 / 2.06 (one core of an Emerald Rapids, least of 8 turns).
        """
        anchor, axes = self.anchor, self.variant.axes
        sized = {a.name for a in (*anchor.spatial, *anchor.reduce)}
        moved = [(e, e.axes() & sized) for o in self.moving for e in o.indices]
        steps = {name: e.coefficient(name) for e, names in moved for name in names if len(names) == 1}
        plain = all(steps.get(name) == 1 for name in (*axes, *(a.name for a in anchor.reduce)))
        packed = self.variant.panel == "inner" and self.still is None
        return packed and plain and len(axes) == 2 and len(anchor.reduce) == 1

    @property
    def padded(self) -> tuple[str, ...]:
        """The spatial axes that are padded to whole register tiles: those of packed operands."""
        if self.still is None:
            return ()
        rows = tuple(t.axis.name for t in self.rows if t.axis.name in self.still.axes)
        whole = len(self.variant.vector) == 1 and self.variant.panel != "ahead"
        return (*rows, *(self.variant.axes if whole else ()))

    @property
    def is_parallel(self) -> bool:
        """True where there is enough to do for threads."""
        work = prod(a.extent for a in (*self.anchor.spatial, *self.anchor.reduce))
        return threads_pay(self.target, work, max(1, lanes_of(self.anchor, self.target)))


def plan_tiles(draft: Draft, anchor: Anchor, variant: Variant, target: Target) -> TilePlan:
    """Plan the tiling of one variant of an anchor of a draft."""
    run = anchor.run_of(variant.runs)
    anchor = anchor.within_runs(variant.runs)
    whole = anchor
    if variant.epilogue == "apart":
        anchor = replace(anchor, epilogue=None)
    outer, rows = _tasks_and_rows(anchor, variant)
    lanes, vectors, vector_middle = _vector_holes(anchor, variant, target, run if variant.runs in variant.axes else 0)
    moving = tuple(vector_operands(anchor, variant.vector))
    if variant.panels_asked or variant.turns_pixels or _asks_blocks(anchor, variant, target, moving):
        vector_middle = replace(vector_middle, choices=(1,), default=1)
    left = max(1, (target.vector_registers - 2) // (vectors.default + 1))
    still = row_operand(anchor, variant.vector) if variant.packs_rows else None
    by_reuse = _row_tiles(anchor, variant, rows, left, still)
    if variant.turned:
        by_reuse = [_in_whole_vectors(anchor.block, tile, lanes_of(anchor, target)) for tile in by_reuse]
    runs = _in_runs(variant, run, (lanes, vectors, vector_middle), by_reuse)
    padded = still is not None and variant.panel != "ahead"
    taps = {window.tap for window in variant.parted}
    in_turn = sorted(anchor.reduce, key=lambda axis: axis.name not in taps)  # of which tiles leave some out as a whole
    reduce = tuple(_reduce_tile(anchor.block, axis, padded, variant.at_once) for axis in in_turn)
    holes = [lanes, vectors, vector_middle]
    holes += [hole for tile in by_reuse for hole in (tile.inner, tile.middle)]
    holes += [hole for tile in reduce for hole in (tile.unroll, tile.block) if hole is not None]
    width = None
    if variant.panel != "direct":
        names = lanes.name, vectors.name
        width = Derived.of(f"{anchor.block}_panel_width", lambda c: c[names[0]] * c[names[1]], (lanes, vectors))
    tiles = tuple(sorted(by_reuse, key=lambda tile: rows.index(tile.axis)))
    turned = None
    if still is not None:
        turned = turned_rows(f"{anchor.block}_turned_rows", [t.inner for t in tiles if t.axis.name in still.axes][-1])
    block_steps = steps_of_block(anchor.block, reduce) if still is not None and variant.panel == "root" else None
    ahead = _steps_ahead(anchor.block, reduce) if _reads_far(anchor, variant, target, moving) else None
    stored = _stored_lanes(draft, anchor, variant, target, tiles)
    across = stored if isinstance(stored, Derived) else None
    together = lanes_of(anchor, target) if stored is not None else 1
    turning = _turning_cycles(draft, whole, variant, together)
    return TilePlan(
        anchor,
        variant,
        target,
        outer,
        tiles,
        lanes,
        vectors,
        vector_middle,
        reduce,
        moving,
        frozenset(operand.name for operand in moving),
        width,
        still,
        turned,
        block_steps,
        turning,
        (*holes, *(number for number in (width, turned, block_steps, ahead, across) if number is not None)),
        runs,
        ahead,
        stored,
    )


def _turning_cycles(draft: Draft, anchor: Anchor, variant: Variant, together: int) -> float:
    """Cycles of results, or of what takes them, that are written along another axis than the lanes, so many at once."""
    apart, along_last = variant.epilogue == "apart", variant.vector[-1] == anchor.spatial[-1]
    turning = turning_cycles(draft, anchor, apart) if apart or along_last else 0.0
    if not along_last and not variant.turned:
        stored = replace(anchor, epilogue=None) if apart else anchor
        turning += stored_apart_cycles(draft, stored, variant.axes[-1], together)
    return turning


def _tasks_and_rows(anchor: Anchor, variant: Variant) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """The axes beside the lanes that are tasks, along which nothing is reused or too far out, and those of tiles."""
    rest = [a for a in anchor.spatial if a.name not in variant.axes]
    phases = {window.spatial for window in variant.phases}
    rows = [a for a in rest if not anchor.shared_by_all(a.name) and a.name not in phases]
    outer = [a for a in rest if anchor.shared_by_all(a.name)]
    outer += [a for a in rest if not anchor.shared_by_all(a.name) and a.name in phases]
    outer += rows[:-MOST_ROWS]
    if not rows and len(anchor.operands) == 1:
        rows, outer = outer[-1:], outer[:-1]  # several sums at a time hide what one of them waits for
    return tuple(outer), tuple(rows[-MOST_ROWS:])


def _reads_far(anchor: Anchor, variant: Variant, target: Target, moving: Sequence[Operand]) -> bool:
    """True where the second-level cache does not hold the factor that a product of few rows reads in place."""
    if variant.panel != "direct" or not is_product(anchor, target) or len(moving) != 1 or len(anchor.reduce) != 1:
        return False
    (operand,) = moving
    kept = prod(buffer_shape(operand.buffer)) * element_bytes(anchor.element) <= target.l2_bytes
    return not kept and anchor.kept_results(operand) <= MOST_ASKED


def _asks_blocks(anchor: Anchor, variant: Variant, target: Target, moving: Sequence[Operand]) -> bool:
    """True for panels of a product that are laid out before all tiles, and together fill the second-level cache."""
    if variant.panel != "root" or variant.turned or not is_product(anchor, target) or len(variant.vector) != 1:
        return False
    panels_bytes = sum(elements_in_turn(anchor, operand) for operand in moving) * element_bytes(anchor.element)
    return panels_bytes > traffic.KEPT * target.l2_bytes


def _stored_lanes(
    draft: Draft, anchor: Anchor, variant: Variant, target: Target, rows: Sequence[RowTile]
) -> Derived | int | None:
    """Lanes of results along the last rows, which change places with those of sums; None where they need not.

    Stored one by one neighbours among channels are on pages of their own, more of them than a core translates at once
    where images are large (16 for stores on current Intel cores): 64x56x56 with a batch of 16 takes 18.8 ms so, 17.2
    in vectors of pixels, the stem of a ResNet 1.37 and 1.07 (one core of a Zen 5).
    """
    if variant.turned:
        return lanes_of(anchor, target)
    last, whole = anchor.spatial[-1], lanes_of(anchor, target)
    fewest = TURNED_BYTES // element_bytes(anchor.element)
    if variant.vector[-1] == last or variant.at_once or not rows or rows[-1].axis != last or whole < fewest:
        return None
    if last.extent < fewest or element_bytes(anchor.element) < FLOAT32_BYTES:
        return None
    if not stored_in_line(draft, anchor, last.name):
        return None

    def lanes(c: Columns) -> npt.NDArray[np.int64]:
        tile = np.minimum(c[middle] * c[inner], last.extent)
        found = whole + 0 * tile
        for fewer in (n for n in (8, 4, 2) if fewest <= n < whole):
            found = np.where(tile <= fewer, fewer, found)
        return np.asarray(found)

    middle, inner = rows[-1].middle.name, rows[-1].inner.name
    return Derived.of(f"{anchor.block}_stored_lanes", lanes, (rows[-1].middle, rows[-1].inner))


def _steps_ahead(block: str, reduce: Sequence[ReduceTile]) -> Derived:
    """The steps, several of which may be written out, until what is asked for is read."""
    (unroll,) = (tile.unroll for tile in reduce)
    return Derived.of(f"{block}_ahead", lambda c: np.maximum(1, ROWS_AHEAD // c[unroll.name]), (unroll,))


def _hole(block: str, name: str, choices: tuple[int, ...], wanted: int, kind: Kind = "tile", axis: str = "") -> Hole:
    return Hole.near(f"{block}_{name}", choices, wanted, kind, axis and f"{block}_{axis}")


def _vector_holes(anchor: Anchor, variant: Variant, target: Target, run: int) -> tuple[Hole, Hole, Hole]:
    """Lanes of a vector, vectors of a register tile, and register tiles of a cache tile.

    Where tiles divide a `run` of filters that half a vector does not, lanes are its largest power of two.
    """
    full = lanes_of(anchor, target)
    if run % max(1, full // 2):
        full = run & -run
    extent = prod(a.extent for a in variant.vector)
    choices = tuple(n for n in (full // 2, full) if n >= 1)
    lanes = _hole(anchor.block, "lanes", choices, full if extent >= full else choices[0], "vector")
    most = max(1, -(-extent // choices[0]))
    usual = min(USUAL_VECTORS, max(1, -(-extent // lanes.default)))
    vectors = _hole(anchor.block, "vectors", up_to(VECTORS, most), usual, axis="vector")
    return lanes, vectors, _hole(anchor.block, "vector_tile", up_to(MIDDLE_TILES, most), 1, axis="vector")


def _row_tiles(
    anchor: Anchor, variant: Variant, rows: Sequence[Axis], left: int, still: Operand | None
) -> list[RowTile]:
    """The tiles of rows, which share the `left` registers: first those along which the vectors' operands are reused."""
    moving = {n for o in vector_operands(anchor, variant.vector) for n in o.axes}
    tiles = []
    for axis in sorted(rows, key=lambda a: (a.name in moving, -rows.index(a))):
        usual = min(left, axis.extent, USUAL_ROWS)
        packed = still is not None and axis.name in still.axes
        odd = variant.vector[-1] != anchor.spatial[-1]
        choices = panel_rows(axis.extent) if packed else _row_choices(axis.extent, odd)
        inner = _hole(anchor.block, f"{axis.name}_rows", choices, usual, axis=axis.name)
        most = (
            (*MIDDLE_TILES, axis.extent) if variant.turns_pixels else MIDDLE_TILES
        )  # of all rows pixels are read once
        middle = _hole(anchor.block, f"{axis.name}_tile", up_to(most, axis.extent), 1, axis=axis.name)
        tiles.append(RowTile(axis, middle, inner))
        left //= max(1, usual)
    return tiles


def _in_whole_vectors(block: str, tile: RowTile, lanes: int) -> RowTile:
    """A tile of rows whose cache tile is whole vectors of results by default, which are stored along them."""
    middle = lanes // gcd(lanes, tile.inner.default)
    return replace(
        tile, middle=_hole(block, f"{tile.axis.name}_tile", tile.middle.choices, middle, axis=tile.axis.name)
    )


def _row_choices(extent: int, odd: bool) -> tuple[int, ...]:
    """Rows of a register tile; with lanes along channels also `odd` ones."""
    more = [n for n in ODD_ROW_TILES if odd and extent % n == 0]
    return tuple(sorted({*up_to(ROW_TILES, extent), *more}))


def _reduce_tile(block: str, axis: Axis, may_be_padded: bool, at_once: bool) -> ReduceTile:
    if axis.extent <= SMALL:
        return ReduceTile(axis, None, _hole(block, f"{axis.name}_unroll", (1, axis.extent), 1, "unroll"))
    if at_once:
        return ReduceTile(axis, None, _hole(block, f"{axis.name}_unroll", steps_of(axis.extent).unrolls, 4, "unroll"))
    if may_be_padded and divides_badly(axis.extent):
        unroll = _hole(block, f"{axis.name}_unroll", UNROLLED, 4, "unroll")
        return ReduceTile(axis, _hole(block, f"{axis.name}_block", padded_blocks(axis.extent), 64), unroll, True)
    steps = steps_of(axis.extent)
    unroll = _hole(block, f"{axis.name}_unroll", steps.unrolls, steps.unroll, "unroll")
    return ReduceTile(axis, _hole(block, f"{axis.name}_block", steps.blocks, steps.block), unroll)


def steps_of_block(name: str, reduce: Sequence[ReduceTile]) -> Derived | None:
    """The steps of a block of the one reduce axis; None where there are several, or no blocks."""
    if len(reduce) != 1 or reduce[0].block is None:
        return None
    block, unroll = reduce[0].block, reduce[0].unroll
    return Derived.of(f"{name}_block_steps", lambda c: c[block.name] * c[unroll.name], (block, unroll))


def _in_runs(variant: Variant, run: int, vector: tuple[Hole, ...], rows: Sequence[RowTile]) -> Limit | None:
    """Return the limit of tiles that divide a run along the variant's axis of runs; None without one."""
    holes = (
        vector
        if variant.runs in variant.axes
        else next(((tile.middle, tile.inner) for tile in rows if tile.axis.name == variant.runs), ())
    )
    return divides(run, holes) if holes else None
