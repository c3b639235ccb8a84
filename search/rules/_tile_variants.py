"""Structures of a reduction tiled on a CPU: axes that become lanes, where operands are packed, padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ...dialects.attributes import Axis
from ...dialects.buffers import buffer_shape
from ...dialects.element import element_bytes
from ...dialects.target import Target
from ..estimates.cache_traffic import KEPT
from ..estimates.tile_model import PANELS_KEPT
from ..structure.anchor import Anchor, Operand
from ..structure.kinds import contraction_of
from ..structure.padding import PaddedWindow, part_read
from ._ahead import may_be_packed_ahead
from ._lanes import lanes_of
from ._pixels_apart import depthwise_channels, pixels_of
from ._row_lanes import rows_as_lanes
from ._row_panel import row_operand
from .few_rows import MOST_ROWS

FUSED_BELOW = 16
"""Vectors of the last axis below which it may be one with the axis before, so that few lanes are idle. With 4 one of 58
default schedules changes, in 0.94 of the time; with 64 none (Zen 3)."""
SHORTEST_RUN = 4
"""Filters of a group, at least, that are tiled as those of one convolution are; fewer are read each for itself. With 4
128 channels in 32 groups of 56x56 take 0.35 ms, each for itself 0.73 (Emerald Rapids, one core)."""
SHORTEST_LINE = 4
"""Elements that are next to each other in an operand, at least, to be copied in lines: as many as a part of a vector
that is transposed in registers has. With 2 and 8 none of 58 default schedules changes (Zen 3)."""
MUCH_PADDING = 0.5
"""Part of a convolution's products, at most, whose pixel is no padding, for tiles that leave padding out beside those
that read it from a copy. They take 6.6 ms for 29 of 14x14x2048 by 12, which is 0.18, 15.3 for 34.3 of 33x33x512 by 18
(0.40), with channels last 6.9 for 19.0; of 28x28 by 12 (0.51) 6.9 for 18.4 and 13.3 for 10.1, of 33x33 by 12 (0.57) 43
for 60 and 20.4 for 20.0, of 33x33x256 by 6 (0.77) 13.0 for 11.6 (Emerald Rapids, one core)."""
SOME_PADDING = 0.95
"""The same with lanes along channels, where each padded pixel of a tile is left out by itself: 2x64x34x34 to 80, 5x5 by
8, takes 1.3 ms for 2.8 (0.66 are none), 8x256x15x15 to 384 by 6 7.6 for 14.8 (0.55), 256x33x33 by 6 4.1 for 5.6 (0.77),
7x7x512, batch 8, 6.8 for 8.5 (0.82; one core of a Zen 5). Of the rest, such as windows of three over 28 pixels, a
twentieth at most could be left out."""
FEWEST_TERMS = 16
"""Terms of a tap, at least, for that: sums are stored and loaded anew between taps. With 8 channels 33x33 to 40 by 12
takes 57 us for 36, with 16 2x34x34 to 512, 5x5 by 2, 4.1 ms for 5.4 (one core of a Zen 5)."""
SMALL = 8
"""A reduce axis up to this extent, such as a filter's, is kept whole or unrolled whole. With 4 seven of 58 default
schedules change, in 0.96 of the time (0.78 to 1.26); with 16 two, in 1.06 (Zen 3)."""
NARROW = 2
"""Vectors of the narrowest panel of register tiles that take all registers, those of 12 rows: terms of a product are
all added up at once where the second-level cache keeps one of all terms. Sums in a buffer are loaded and stored for
each block of terms, and copied out at the end: 1024 cubed runs at 221 GFLOP/s in blocks and at 242 so, 560 x 2528 x
1616 at 234 and 250, 300 x 2000 x 900 at 230 and 254, 256 x 256 x 3000 at 235 and 233 (one core of a Zen 5)."""


@dataclass(frozen=True)
class Variant:
    """One structure: the axes that become lanes, where the operand along them is packed, and what is done with pads.

    `panel` is direct (not packed), root (before all tiles), inner (in a tile), or ahead (a constant, before any run).
    `epilogue` is in the tile or apart. `runs` is the axis whose tiles stay in a run of filters that read the same data.
    Where `packs_rows` is set the operand of the rows is packed too, before all tiles if the other one is, else in a
    tile. `windows` are those of which tiles leave out the steps that read padding alone, which takes taps around
    channels; along `phases` each place is a task, and the taps that it has not are left out. Sums that are taken
    `at_once` are of all terms, and stored by their register tile; where `panels_asked` is set tasks are those of all
    rows for one panel after the other, the next of which is asked for meanwhile. Results that are `turned` have lanes
    along another axis than they are stored along, and change places in registers. Where `turns_pixels` is set channels
    of a depthwise convolution are lanes, and a tile lays out its pixels so: `panel` is that of the filters.
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
    panels_asked: bool = False
    turned: bool = False
    turns_pixels: bool = False

    @property
    def parted(self) -> tuple[PaddedWindow, ...]:
        """The windows of which some tiles, or tasks, leave out taps."""
        return (*self.windows, *self.phases)

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
        pixels = "_pixels" if self.turns_pixels else ""
        return f"{'_'.join(self.axes)}_{self.panel}{rows}{pixels}{pads}{taps}{once}{apart}"


def is_product(anchor: Anchor, target: Target) -> bool:
    """True for products of two matrices, also in batches, but for those of few rows: dot products may be.

    One row is among them, which may be in no axis: a vector times a matrix along whose rows it is added up. Few columns
    are not, whose weights are packed in no time: dot products are beside them, and seemed near, as other estimates have
    twice what these tiles take (256 x 2047 to 29 0.63 ms for 0.31). Of 96 such products, drawn by two seeds, 42 are
    chosen otherwise, and take 0.87 of the time in geometric mean, 0.49 to 1.23 (one core of a Zen 4), of 96 by two
    others 34 and 0.78, 0.38 to 1.27 (an Emerald Rapids).
    """
    found = contraction_of(anchor)
    if found is None or anchor.pads or not (found.reads_plain and found.columns):
        return False
    wide = anchor.wide_operand(Operand.is_next_along)
    if wide is None or wide is found.a or anchor.kept_results(wide) > MOST_ROWS:
        return True
    return rows_as_lanes(anchor, target) is not None


def _panel_stays(anchor: Anchor, target: Target) -> bool:
    """True where the second-level cache keeps a narrow panel of all terms."""
    terms = prod(axis.extent for axis in anchor.reduce)
    return terms * NARROW * target.vector_bytes <= KEPT * target.l2_bytes


def _panels_pay(anchor: Anchor, target: Target, group: Sequence[Axis]) -> bool:
    """True where the operand along the lanes comes from beyond the second-level cache, a panel of all terms at a time.

    The cache keeps two panels and the other operand: what the tasks of one place of the outer axes read of it, those
    that all operands move along. Panels of windows are of two vectors: those of one load a pixel for each multiply-add,
    and take 1.2 and 1.1 times as long as tiles of blocks for 13x13x192 to 256 5x5 and 13x13x512 3x3, 1 / 1.17 for
    14x14x512 3x3/2 (one core of a Zen 5, filters from memory).
    """
    terms = prod(axis.extent for axis in anchor.reduce)
    panel_bytes = terms * (NARROW if anchor.has_windows else 1) * target.vector_bytes
    if terms <= SMALL or 2 * panel_bytes > PANELS_KEPT * target.l2_bytes:
        return False
    size, kept = element_bytes(anchor.element), KEPT * target.l2_bytes
    moving = vector_operands(anchor, group)
    others = [operand for operand in anchor.operands if operand not in moving]
    if max(size * prod(buffer_shape(operand.buffer)) for operand in moving) < kept or not others:
        return False
    filters = max(size * elements_in_turn(anchor, operand) for operand in moving)
    pixels = max(size * elements_in_turn(anchor, operand) for operand in others)
    reused = any(axis.extent > 1 for axis in anchor.spatial if all(axis.name not in o.axes for o in moving))
    return reused and (pixels <= kept or pixels < filters)


def elements_in_turn(anchor: Anchor, operand: Operand) -> int:
    """Elements of an operand that the tasks of one place of the outer axes read."""
    outer = [a for a in anchor.spatial if anchor.shared_by_all(a.name) and a.name in operand.axes]
    return prod(buffer_shape(operand.buffer)) // prod(axis.extent for axis in outer)


def direct_variant(anchor: Anchor) -> Variant:
    """Lanes along the last axis, whose operand is read in place."""
    return Variant(anchor.spatial[-1:], "direct", False, runs=anchor.axis_of_runs(SHORTEST_RUN))


def variants(anchor: Anchor, target: Target, windows: Sequence[PaddedWindow] = ()) -> Iterator[Variant]:
    """The structures worth searching for an anchor, which reads padding in `windows`."""
    groups = anchor.axis_of_runs(SHORTEST_RUN)
    within, run = anchor.within_runs(groups), anchor.run_of(groups)
    if groups == anchor.spatial[-1].name:
        anchor = within
    for group in _vector_axes(anchor, target):
        phases = phases_apart(windows, group)
        for panel in _panels(anchor, group):
            runs = groups if panel == "direct" or anchor is within else ""
            yield Variant(group, panel, False, runs=runs, phases=phases)
            asked = panel == "ahead" and not runs and not phases and _panels_pay(anchor, target, group)
            if asked or (is_product(anchor, target) and _panel_stays(anchor, target)):
                yield Variant(group, panel, False, runs=runs, at_once=True, panels_asked=asked)
            leaving = _left_out_unpacked(anchor, windows, group, panel)
            if anchor.pads and (panel == "direct" or leaving):
                yield Variant(group, panel, True, runs=runs, windows=leaving, phases=phases)
            if panel != "direct" and row_operand(anchor, group) is not None:
                yield Variant(group, panel, False, packs_rows=True)
    if (rows := rows_as_lanes(within, target)) is not None:
        yield Variant((rows,), "root", False, turned=True)
    for group in _channel_axes(within, target):
        for panel in _panels(within, group):
            yield Variant(group, panel, False, runs=groups)
            if leaving := left_out(
                windows, group, _most_read(within, target, windows, run if groups else prod(a.extent for a in group))
            ):
                yield Variant(group, panel, True, runs=groups, windows=leaving)
    yield from channels_apart(anchor, target)


def channels_apart(anchor: Anchor, target: Target) -> Iterator[Variant]:
    """Lanes along the channels of a depthwise convolution, whose pixels each tile lays out so."""
    for axis in depthwise_channels(anchor, target):
        (filters,) = (o for o in anchor.operands if o is not pixels_of(anchor))
        panel = "ahead" if may_be_packed_ahead(filters, (axis.name,)) else "root"
        yield Variant((axis,), panel, False, turns_pixels=True)


def left_out(
    windows: Sequence[PaddedWindow], vector: Sequence[Axis], most_read: float = MUCH_PADDING
) -> tuple[PaddedWindow, ...]:
    """The windows along which tiles leave out the steps that read padding alone, those of no lanes.

    None where more than `most_read` of the products read none.
    """
    lanes = {axis.name for axis in vector}
    pixels = [window for window in windows if not window.moves_back]
    if part_read(pixels) > most_read:
        return ()
    return tuple(window for window in pixels if window.spatial not in lanes)


def _most_read(anchor: Anchor, target: Target, windows: Sequence[PaddedWindow], filters: int) -> float:
    """Part of an anchor's products that may read no padding for tiles of channels that leave the rest out.

    `filters` read the same pixels. Of less than a vector of them much must be padding: 512x28x28 to 64 in 16 groups,
    5x5, would be chosen in lanes of four filters, and take 1.34 ms for 0.40 (one core of a Zen 5).
    """
    taps = {window.tap for window in windows}
    terms = prod(axis.extent for axis in anchor.reduce if axis.name not in taps)
    whole = filters * element_bytes(anchor.element) >= target.vector_bytes
    return SOME_PADDING if whole and terms >= FEWEST_TERMS else MUCH_PADDING


def _left_out_unpacked(
    anchor: Anchor, windows: Sequence[PaddedWindow], group: Sequence[Axis], panel: str
) -> tuple[PaddedWindow, ...]:
    """The same but for windows of what is packed, whose padding is written into panels as any pixel is."""
    packed = {operand.name for operand in vector_operands(anchor, group)} if panel != "direct" else set()
    return left_out([window for window in windows if window.pad not in packed], group)


def phases_apart(windows: Sequence[PaddedWindow], vector: Sequence[Axis]) -> tuple[PaddedWindow, ...]:
    """The windows of padded kernels along axes other than the lanes', in which some places have fewer taps than others.

    A transposed convolution whose window strides do not divide has such phases: with 3x3/2 16 taps for 9. 112 channels
    of 14x14 to 192 take 0.88 ms with each phase by its own taps, 2.1 by all (a core of an Emerald Rapids, PyTorch 1.1).
    """
    lanes = {axis.name for axis in vector}
    return tuple(w for w in windows if w.moves_back and w.spatial not in lanes and w.part(1, 1) < 1)


def _vector_axes(anchor: Anchor, target: Target) -> list[tuple[Axis, ...]]:
    """Return the axes for lanes: the last axis; where few vectors of it leave a tail, it and the one before as one.

    Both where a row has half a vector at least, and where each channel has operands of its own more than half of the
    narrowest vector: it may be read in place, and both as one are packed element by element, for each channel anew.
    Rows of 7, one Zen 3 core: a depthwise convolution of 960 channels 81 us for 887, one of 320 in groups of 16 180 us
    for 4650, a plain one of batch 8 1.7 ms for 2.8. On an Emerald Rapids, whose narrowest vector has 8 lanes, a
    depthwise one of 672 channels with stride 2 0.35 ms for 2.5, one of 768 and a batch of 32 1.8 ms for 20.

    Strided rows of a vector and more are never one with others, which would be gathered: 96x80x80 to 48 by one tap
    with stride 2 takes 83 us for 244, 256x56x56 to 512 0.94 ms for 1.9 (one core of a Zen 5).
    """
    *others, last = anchor.spatial
    lanes = lanes_of(anchor, target)
    if not others or last.extent % lanes == 0 or last.extent >= FUSED_BELOW * lanes:
        return [(last,)]
    moving = vector_operands(anchor, (last,))
    if len(moving) == len(anchor.operands) or not all(others[-1].name in o.axes for o in moving):
        return [(last,)]
    both = (others[-1], last)
    if last.extent >= lanes and any(_skips_along(o, last.name) for o in moving):
        return [(last,)]
    is_shared = any(anchor.shared_by_all(a.name) for a in others)
    return [both] if last.extent < lanes // 2 and (not is_shared or last.extent <= lanes // 4) else [both, (last,)]


def _skips_along(operand: Operand, axis: str) -> bool:
    """True where neighbours along an axis are not neighbours in the operand's rows."""
    last = operand.indices[-1]
    return last.is_linear_in(axis) and last.coefficient(axis) not in (0, 1)


def _channel_axes(anchor: Anchor, target: Target) -> Iterator[tuple[Axis, ...]]:
    """Axes for lanes other than the last: the output channels of convolutions, whose filters are packed in lines.

    Pixels are then read one by one for all lanes, where they are, whatever rows, strides and dilations there are. One
    core of an Emerald Rapids, of 50x50 pixels with 256 channels 24.3 ms for 35.7 with lanes along pixels, of 80x80 with
    stride 2 2.5 ms for 5.1, of a batch of 8 of 7x7 with 512 channels 15.7 ms for 23.5.
    """
    lanes = lanes_of(anchor, target)
    found = contraction_of(anchor)
    if found is None or len(found.columns) + len(found.terms) < 3 or len(found.rows) != 1:
        return
    (axis,), filters = found.rows, found.a
    if axis.extent < lanes or all(e.as_axis() != axis.name for e in filters.indices):
        return
    in_lines = elements_in_a_row(filters, anchor.reduce) >= SHORTEST_LINE
    if in_lines or may_be_packed_ahead(filters, (axis.name,)):
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


def elements_in_a_row(operand: Operand, reduce: Sequence[Axis]) -> int:
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
