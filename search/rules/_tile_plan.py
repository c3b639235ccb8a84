"""The plan of a reduction tiled on a CPU: its structures, and what axes, panels and accumulators may become."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...dialects.attributes import Axis
from ...dialects.buffers import buffer_shape
from ...dialects.element import element_bytes
from ...dialects.strides import row_major
from ...dialects.target import Target
from ..estimates import cache_traffic as traffic
from ..estimates.product_model import ProductModel
from ..estimates.tile_model import APART_PACK_CYCLES, PACK_CYCLES, ReduceAxis, TiledAxis, TileModel
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole, Kind, Limit
from ..structure.anchor import Anchor, Operand
from ..structure.padding import PaddedWindow, part_read
from ..structure.strides import WIDEST_STRIDE
from ._ahead import may_be_packed_ahead
from ._lanes import threads_pay, upto
from ._reduce_steps import UNROLLED, covers, divides, divides_badly, steps_of
from ._row_panel import covers_padded, padded_blocks, panel_rows, row_operand, turned_rows
from ._turned_epilogue import stored_apart_cycles, turning_cycles
from .few_rows import MOST_ROWS as MOST_ROWS_OF_DOTS

SMALL = 8
"""A reduce axis up to this extent, such as a filter's, is kept whole or unrolled whole. With 4 seven of 58 default
schedules change, in 0.96 of the time (0.78 to 1.26); with 16 two, in 1.06 (Zen 3)."""
MOST_ROWS = 3
"""Spatial axes beside the vectors' that are tiled; further ones outside are tasks: those of a convolution but for its
batch. With 2 three of 58 default schedules change, in 1.13 of the time; with 4 one, in 0.86 (Zen 3), but each more is a
hole more for all."""
FUSED_BELOW = 16
"""Vectors of the last axis below which it may be one with the axis before, so that few lanes are idle. With 4 one of 58
default schedules changes, in 0.94 of the time; with 64 none (Zen 3)."""
MOST_AT_ONCE = 512
"""Terms of a product, at most, that register tiles add up at once, so that each stores its results. A choice: with more
of them the caches keep less of what is used again, and sums in a buffer are no more than a thirtieth of the work."""
SHORTEST_RUN = 4
"""Filters of a group, at least, that are tiled as those of one convolution are; fewer are read each for itself. With 4
128 channels in 32 groups of 56x56 take 0.35 ms, each for itself 0.73 (Emerald Rapids, one core)."""
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


SHORTEST_LINE = 4
"""Elements that are next to each other in an operand, at least, to be copied in lines: as many as a part of a vector
that is transposed in registers has. With 2 and 8 none of 58 default schedules changes (Zen 3)."""

MUCH_PADDING = 0.5
"""Part of a convolution's products, at most, whose pixel is no padding, for tiles that leave padding out beside those
that read it from a copy. They take 6.6 ms for 29 of 14x14x2048 by 12, which is 0.18, 15.3 for 34.3 of 33x33x512 by 18
(0.40), with channels last 6.9 for 19.0; of 28x28 by 12 (0.51) 6.9 for 18.4 and 13.3 for 10.1, of 33x33 by 12 (0.57) 43
for 60 and 20.4 for 20.0, of 33x33x256 by 6 (0.77) 13.0 for 11.6 (Emerald Rapids, one core)."""

FEWEST_CHANNELS = 32
"""Terms along one axis of a sum, at least, for the same. With 3 channels and 11x11 taps the stem of AlexNet takes 4.6
ms so, 2.8 by the model's choice; between 3 and 32 none was measured. Groups of filters are the model's, too: 1024
channels of 14x14 in 32 groups take 1.23 ms so, 0.94 by its choice (a core of 16 of an Emerald Rapids)."""
LONG_SUM = 256
"""Terms of a sum, at least, for estimates to choose lanes along channels. With 27 terms the stem of Inception takes 6.6
times as long as by the model's choice, that of YOLO 4, with 162 18x64x64 2.4 times; with 432 and more 1 / 1.28 of the
time, 0.76 to 2.5 (one core of an Emerald Rapids)."""


@dataclass(frozen=True)
class Variant:
    """One structure: the axes that become lanes, where the operand along them is packed, and what is done with pads.

    `panel` is direct (not packed), root (before all tiles), inner (in a tile), or ahead (a constant, before any run).
    `epilogue` is in the tile or apart. `runs` is the axis whose tiles stay in a run of filters that read the same data.
    Where `packs_rows` is set the operand of the rows is packed too, before all tiles if the other one is, else in a
    tile. `windows` are those of which tiles leave out the steps that read padding alone, which takes taps around
    channels; along `phases` each place is a task, and the taps that it has not are left out. Sums that are taken
    `at_once` are of all terms, and stored by their register tile.
    """

    vector: tuple[Axis, ...]
    panel: str
    inline_pads: bool
    epilogue: str = "tile"
    runs: str = ""
    packs_rows: bool = False
    windows: tuple[PaddedWindow, ...] = ()
    phases: tuple[PaddedWindow, ...] = ()
    at_once: bool = False

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes that become lanes."""
        return tuple(a.name for a in self.vector)

    @property
    def name(self) -> str:
        pads = "_padded" if self.inline_pads else ""
        apart = "_apart" if self.epilogue == "apart" else ""
        rows = "_rows" if self.packs_rows else ""
        taps = "_taps" if self.phases else ""
        once = "_once" if self.at_once else ""
        return f"{'_'.join(self.axes)}_{self.panel}{rows}{pads}{taps}{once}{apart}"


def direct_variant(anchor: Anchor) -> Variant:
    """Lanes along the last axis, whose operand is read in place."""
    return Variant(anchor.spatial[-1:], "direct", False, runs=_grouped_axis(anchor))


def variants(anchor: Anchor, target: Target, windows: Sequence[PaddedWindow] = ()) -> Iterator[Variant]:
    """The structures worth searching for an anchor, which reads padding in `windows`."""
    groups = _grouped_axis(anchor)
    within = anchor.within_runs(groups)
    if groups == anchor.spatial[-1].name:
        anchor = within
    for group in _vector_axes(anchor, target):
        phases = phases_apart(windows, group)
        for panel in _panels(anchor, group):
            runs = groups if panel == "direct" or anchor is within else ""
            yield Variant(group, panel, False, runs=runs, phases=phases)
            if is_product(anchor, target) and anchor.reduce[-1].extent in range(SMALL + 1, MOST_AT_ONCE + 1):
                yield Variant(group, panel, False, runs=runs, at_once=True)
            if anchor.pads and (panel == "direct" or left_out(windows, group)):
                yield Variant(group, panel, True, runs=runs, windows=left_out(windows, group), phases=phases)
            if panel != "direct" and row_operand(anchor, group) is not None:
                yield Variant(group, panel, False, packs_rows=True)
    for group in _channel_axes(within, target):
        for panel in _panels(within, group):
            yield Variant(group, panel, False, runs=groups)
            if leaving := left_out(windows, group):
                yield Variant(group, panel, True, runs=groups, windows=leaving)


def left_out(windows: Sequence[PaddedWindow], vector: Sequence[Axis]) -> tuple[PaddedWindow, ...]:
    """The windows along which tiles leave out the steps that read padding alone: with pixels in lanes along none."""
    lanes = {axis.name for axis in vector}
    pixels = [window for window in windows if not window.moves_back]
    some = part_read(pixels) <= MUCH_PADDING and lanes.isdisjoint(window.spatial for window in pixels)
    return tuple(pixels) if some else ()


def phases_apart(windows: Sequence[PaddedWindow], vector: Sequence[Axis]) -> tuple[PaddedWindow, ...]:
    """The windows of padded kernels along axes other than the lanes', in which some places have fewer taps than others.

    A transposed convolution whose window strides do not divide has such phases: with 3x3/2 16 taps for 9. 112 channels
    of 14x14 to 192 take 0.88 ms with each phase by its own taps, 2.1 by all (a core of an Emerald Rapids, PyTorch 1.1).
    """
    lanes = {axis.name for axis in vector}
    return tuple(w for w in windows if w.moves_back and w.spatial not in lanes and w.part(1, 1) < 1)


def is_product(anchor: Anchor, target: Target) -> bool:
    """True for products of two matrices on one core, also in batches, but for those of few rows: dot products may be.

    On two threads 55 products took as long by estimates of products as by others in the mean, 0.4 to 1.8 times (the
    host of an H200).
    """
    if target.cores > 1:
        return False
    plain = all(e.is_constant or e.as_axis() is not None for o in anchor.operands for e in o.indices)
    if len(anchor.operands) != 2 or not plain or anchor.pads or not all(map(anchor.moved_alone, anchor.operands)):
        return False
    wide = anchor.wide_operand(Operand.is_next_along)
    return wide is None or anchor.kept_results(wide) > MOST_ROWS_OF_DOTS


def _grouped_axis(anchor: Anchor) -> str:
    """The axis of filters in groups that are long enough to be tiled; an empty name where there is none."""
    found = [a.name for a in anchor.spatial if anchor.shared_by_all(a.name) and anchor.run_of(a.name) >= SHORTEST_RUN]
    return found[0] if found else ""


def _vector_axes(anchor: Anchor, target: Target) -> list[tuple[Axis, ...]]:
    """Return the axes for lanes: the last axis; where few vectors of it leave a tail, it and the one before as one.

    Both where a row has half a vector at least, and where each channel has operands of its own more than half of the
    narrowest vector: it may be read in place, and both as one are packed element by element, for each channel anew.
    Rows of 7, one Zen 3 core: a depthwise convolution of 960 channels 81 us for 887, one of 320 in groups of 16 180 us
    for 4650, a plain one of batch 8 1.7 ms for 2.8. On an Emerald Rapids, whose narrowest vector has 8 lanes, a
    depthwise one of 672 channels with stride 2 0.35 ms for 2.5, one of 768 and a batch of 32 1.8 ms for 20.
    """
    *others, last = anchor.spatial
    lanes = target.vector_bytes // element_bytes(anchor.element)
    if not others or last.extent % lanes == 0 or last.extent >= FUSED_BELOW * lanes:
        return [(last,)]
    moving = vector_operands(anchor, (last,))
    if len(moving) == len(anchor.operands) or not all(others[-1].name in o.axes for o in moving):
        return [(last,)]
    both = (others[-1], last)
    is_shared = any(anchor.shared_by_all(a.name) for a in others)
    return [both] if last.extent < lanes // 2 and (not is_shared or last.extent <= lanes // 4) else [both, (last,)]


def _channel_axes(anchor: Anchor, target: Target) -> Iterator[tuple[Axis, ...]]:
    """Axes for lanes other than the last: the output channels of convolutions, whose filters are packed in lines.

    Pixels are then read one by one for all lanes, where they are, whatever rows, strides and dilations there are. One
    core of an Emerald Rapids, of 50x50 pixels with 256 channels 24.3 ms for 35.7 with lanes along pixels, of 80x80 with
    stride 2 2.5 ms for 5.1, of a batch of 8 of 7x7 with 512 channels 15.7 ms for 23.5.
    """
    lanes = target.vector_bytes // element_bytes(anchor.element)
    moved = [a for a in anchor.spatial if not anchor.shared_by_all(a.name)]
    if len(anchor.operands) != 2 or len(moved) + len(anchor.reduce) < 4:
        return
    for axis in moved[:-1]:
        filters = [o for o in vector_operands(anchor, (axis,)) if [a for a in moved if a.name in o.axes] == [axis]]
        if axis.extent < lanes or len(filters) != 1 or all(e.as_axis() != axis.name for e in filters[0].indices):
            continue
        in_lines = _elements_in_a_row(filters[0], anchor.reduce) >= SHORTEST_LINE
        if in_lines or may_be_packed_ahead(filters[0], (axis.name,)):
            yield (axis,)


def _panels(anchor: Anchor, group: tuple[Axis, ...]) -> list[str]:
    """Return where the operand along the lanes may be packed, and that it may be read in place."""
    moving = vector_operands(anchor, group)
    once = all(sum(o.buffer is other.buffer for other in anchor.operands) == 1 for o in moving)
    found = []
    if len(group) == 1 and all(o.steps_along(group[0].name) for o in moving):
        found.append("direct")
    if len(moving) == 1 < len(anchor.operands) and once:
        ahead = may_be_packed_ahead(moving[0], tuple(a.name for a in group))
        found += ["ahead"] if ahead else ["root", "inner"]
    return found or ["direct"]


def vector_operands(anchor: Anchor, group: Sequence[Axis]) -> list[Operand]:
    """The operands that move along the lanes."""
    return [o for o in anchor.operands if any(a.name in o.axes for a in group)]


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
    `moving` are the operands along the lanes, `packed` the names of their buffers, `panel_width` the lanes of a panel,
    None where nothing is packed. `still` is the operand of the rows where it is packed too, `turned` how many of its
    rows are transposed together, `block_steps` the steps of a block where panels are of all blocks, one after the
    other. `turning` are the cycles of an epilogue that writes along another axis. `numbers` are all holes and derived
    numbers, in the order they have in a sketch. `runs` keeps tiles within runs of filters.
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
        channels = self.variant.vector[-1] != self.anchor.spatial[-1] and len(self.anchor.reduce) > 1
        deep = max(a.extent for a in self.anchor.reduce) >= FEWEST_CHANNELS and not self.variant.runs
        return channels and deep and terms >= LONG_SUM and not self.variant.windows

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
        return threads_pay(self.target, work, max(1, self.target.vector_bytes // element_bytes(self.anchor.element)))


def plan_tiles(draft: Draft, anchor: Anchor, variant: Variant, target: Target) -> TilePlan:
    """Plan the tiling of one variant of an anchor of a draft."""
    apart = variant.epilogue == "apart"
    run = anchor.run_of(variant.runs)
    anchor = anchor.within_runs(variant.runs)
    turned_later = apart or variant.vector[-1] == anchor.spatial[-1]
    turning = turning_cycles(draft, anchor, apart) if turned_later else 0.0
    if apart:
        anchor = replace(anchor, epilogue=None)
    if variant.vector[-1] != anchor.spatial[-1]:
        turning += stored_apart_cycles(draft, anchor, variant.axes[-1])
    rest = [a for a in anchor.spatial if a.name not in variant.axes]
    rows = [a for a in rest if not anchor.shared_by_all(a.name)]
    outer = [a for a in rest if anchor.shared_by_all(a.name)]
    phases = {window.spatial for window in variant.phases}
    outer += [a for a in rows if a.name in phases]
    rows = [a for a in rows if a.name not in phases]
    outer += rows[:-MOST_ROWS]
    if not rows and len(anchor.operands) == 1:
        rows, outer = outer[-1:], outer[:-1]  # several sums at a time hide what one of them waits for
    lanes, vectors, vector_middle = _vector_holes(anchor, variant, target)
    left = max(1, (target.vector_registers - 2) // (vectors.default + 1))
    still = row_operand(anchor, variant.vector) if variant.packs_rows else None
    by_reuse = _row_tiles(anchor, variant, rows[-MOST_ROWS:], left, still)
    runs = _in_runs(variant, run, (lanes, vectors, vector_middle), by_reuse)
    padded = still is not None and variant.panel != "ahead"
    taps = {window.tap for window in (*variant.windows, *variant.phases)}
    in_turn = sorted(anchor.reduce, key=lambda axis: axis.name not in taps)  # of which tiles leave some out as a whole
    reduce = tuple(_reduce_tile(anchor.block, axis, padded, variant.at_once) for axis in in_turn)
    holes = [lanes, vectors, vector_middle]
    holes += [hole for tile in by_reuse for hole in (tile.inner, tile.middle)]
    holes += [hole for tile in reduce for hole in (tile.unroll, tile.block) if hole is not None]
    width = None
    if variant.panel != "direct":
        names = lanes.name, vectors.name
        width = Derived.of(f"{anchor.block}_panel_width", lambda c: c[names[0]] * c[names[1]], (lanes, vectors))
    moving = tuple(vector_operands(anchor, variant.vector))
    tiles = tuple(sorted(by_reuse, key=lambda tile: rows.index(tile.axis)))
    turned = None
    if still is not None:
        turned = turned_rows(f"{anchor.block}_turned_rows", [t.inner for t in tiles if t.axis.name in still.axes][-1])
    block_steps = steps_of_block(anchor.block, reduce) if still is not None and variant.panel == "root" else None
    return TilePlan(
        anchor,
        variant,
        target,
        tuple(outer),
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
        (*holes, *(number for number in (width, turned, block_steps) if number is not None)),
        runs,
    )


def _hole(block: str, name: str, choices: tuple[int, ...], wanted: int, kind: Kind = "tile", axis: str = "") -> Hole:
    return Hole.near(f"{block}_{name}", choices, wanted, kind, axis and f"{block}_{axis}")


def _vector_holes(anchor: Anchor, variant: Variant, target: Target) -> tuple[Hole, Hole, Hole]:
    """Lanes of a vector, vectors of a register tile, and register tiles of a cache tile."""
    full = target.vector_bytes // element_bytes(anchor.element)
    extent = prod(a.extent for a in variant.vector)
    choices = tuple(n for n in (full // 2, full) if n >= 1)
    lanes = _hole(anchor.block, "lanes", choices, full if extent >= full else choices[0], "vector")
    most = max(1, -(-extent // choices[0]))
    usual = min(USUAL_VECTORS, max(1, -(-extent // lanes.default)))
    vectors = _hole(anchor.block, "vectors", upto(VECTORS, most), usual, axis="vector")
    return lanes, vectors, _hole(anchor.block, "vector_tile", upto(MIDDLE_TILES, most), 1, axis="vector")


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
        middle = _hole(anchor.block, f"{axis.name}_tile", upto(MIDDLE_TILES, axis.extent), 1, axis=axis.name)
        tiles.append(RowTile(axis, middle, inner))
        left //= max(1, usual)
    return tiles


def _row_choices(extent: int, odd: bool) -> tuple[int, ...]:
    """Rows of a register tile; with lanes along channels also `odd` ones."""
    more = [n for n in ODD_ROW_TILES if odd and extent % n == 0]
    return tuple(sorted({*upto(ROW_TILES, extent), *more}))


def _reduce_tile(block: str, axis: Axis, may_be_padded: bool, at_once: bool) -> ReduceTile:
    if at_once:
        return ReduceTile(axis, None, _hole(block, f"{axis.name}_unroll", steps_of(axis.extent).unrolls, 4, "unroll"))
    if axis.extent <= SMALL:
        return ReduceTile(axis, None, _hole(block, f"{axis.name}_unroll", (1, axis.extent), 1, "unroll"))
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


def block_limits(plan: TilePlan) -> list[Limit]:
    """Blocks cover their reduce axes, or those that are padded, and tiles divide runs of filters."""
    covered = [
        (covers_padded if t.is_padded else covers)(t.axis.extent, t.block, t.unroll)
        for t in plan.reduce
        if t.block is not None
    ]
    return covered + ([plan.runs] if plan.runs is not None else [])


def tile_model(plan: TilePlan) -> TileModel:
    """Return the model of a plan's candidates."""
    vector = plan.variant.vector
    extents = {a.name: a.extent for a in (*plan.anchor.spatial, *plan.anchor.reduce)}
    panels = [*plan.moving, *([plan.still] if plan.still is not None else [])]
    packed = sum(prod(extents[n] for n in o.axes) for o in panels) if plan.variant.panel == "root" else 0
    in_vectors = all(
        operand.steps_along(vector[-1].name)
        or _elements_in_a_row(operand, plan.anchor.reduce) >= SHORTEST_LINE
        or _is_strided(plan, operand)
        for operand in plan.moving
    )
    kind = ProductModel if is_product(plan.anchor, plan.target) else TileModel
    return kind(
        target=plan.target,
        outer=tuple((a.name, a.extent) for a in plan.outer),
        rows=tuple(TiledAxis(t.axis.name, t.axis.extent, t.middle.name, t.inner.name) for t in plan.rows),
        vector=TiledAxis(vector[-1].name, prod(a.extent for a in vector), plan.vector_middle.name, plan.vectors.name),
        lanes=plan.lanes.name,
        fewest_lanes=min(plan.lanes.choices),
        reduce=tuple(
            ReduceAxis(t.axis.name, t.axis.extent, t.block.name if t.block is not None else "", t.unroll.name)
            for t in plan.reduce
        ),
        element_bytes=element_bytes(plan.anchor.element),
        panel=plan.variant.panel,
        operands=tuple(_touched(plan, operand) for operand in plan.anchor.operands),
        result=_touched_together(plan, [a.name for a in plan.anchor.spatial]),
        padded_inline=plan.variant.inline_pads,
        pack_cycles=PACK_CYCLES if in_vectors else APART_PACK_CYCLES,
        packed=packed,
        turning=plan.turning,
        panels=tuple(place for place, o in enumerate(plan.anchor.operands) if o in _packed_in_tiles(plan)),
        whole=frozenset(plan.padded),
        asks_sets=row_operand(plan.anchor, vector) is not None,
        windows=(*plan.variant.windows, *plan.variant.phases),
        sure=plan.is_sure,
    )


def _is_strided(plan: TilePlan, operand: Operand) -> bool:
    """True where lanes are a few elements apart, as strided pixels are: vectors are loaded and shuffled.

    The model that ships, for one core, was trained on estimates that take them for single elements, and corrects these.
    On several threads there is none. With this 7 of 90 convolutions are scheduled otherwise for two threads, and take
    1 / 2.2 of the time in the mean, run on one (an Emerald Rapids): depthwise 672x14x14 5x5/2 0.45 ms for 3.5,
    96x112x112 3x3/2 1.7 for 8.1, the stem of YOLO 1.2 for 3.8; that of Inception 1.07 for 1.0, wav2vec 23.6 for 22.4.
    """
    lane = plan.variant.vector[-1].name
    near = 1 < operand.indices[-1].coefficient(lane) <= WIDEST_STRIDE and len(plan.variant.vector) == 1
    return near and plan.target.cores > 1


def _packed_in_tiles(plan: TilePlan) -> tuple[Operand, ...]:
    """The operands that each tile packs for itself."""
    inner = plan.moving if plan.variant.panel == "inner" else ()
    return (*inner, plan.still) if plan.still is not None and plan.variant.panel != "root" else inner


def _elements_in_a_row(operand: Operand, reduce: Sequence[Axis]) -> int:
    """The elements that lie next to each other along reduce axes alone, as taps of a filter and channels do."""
    extents = {axis.name: axis.extent for axis in reduce}
    elements = 1
    for index, extent in zip(reversed(operand.indices), reversed(buffer_shape(operand.buffer)), strict=True):
        axis = index.as_axis()
        if extent > 1 and axis not in extents:
            break
        elements *= extents.get(axis or "", 1)
        if extents.get(axis or "", 1) < extent:
            break
    return elements


def _touched(plan: TilePlan, operand: Operand) -> traffic.Operand:
    """Return what the tiles touch of an operand; as it is packed, an element for each point of its axes."""
    lanes, used = set(plan.variant.axes), [e.axes() for e in operand.indices]
    linear = all(e.is_linear_in(n) for e in operand.indices for n in e.axes())
    is_packed = (operand.name in plan.packed and plan.variant.panel != "direct") or operand is plan.still
    if is_packed or not linear or (len(lanes) > 1 and lanes & set(operand.axes)):
        return _touched_together(plan, operand.axes)
    terms = [
        tuple((n, index.coefficient(n)) for n in operand.axes if n in names)
        for index, names in zip(operand.indices, used, strict=True)
    ]
    size = element_bytes(plan.anchor.element)
    strides = tuple(size * n for n in row_major(buffer_shape(operand.buffer)))
    return traffic.Operand(tuple(terms), size, strides=strides, skips=plan.is_sure)


def _touched_together(plan: TilePlan, axes: Iterable[str]) -> traffic.Operand:
    """Return what lies in memory in the order it is touched in, along axes of which those of the lanes are one."""
    axes, lanes = list(axes), set(plan.variant.axes)
    names = [n for n in axes if n not in lanes] + [plan.variant.axes[-1]] * any(n in lanes for n in axes)
    return traffic.Operand(tuple(((n, 1),) for n in names), element_bytes(plan.anchor.element), is_packed=True)
