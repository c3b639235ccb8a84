"""Blocks that read along one axis and write along another, such as transposes: tiles of both, small ones unrolled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy.typing as npt

from ...dialects.loop import BlockOp
from ...dialects.target import LINE_BYTES, Target
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..estimates.tile_model import L1_WAY_BYTES
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole, Kind, Limit
from ..structure.strides import WIDEST_STRIDE, Access, accesses, lanes_of_block, output_bytes
from ._lanes import deal, is_costly, lane_choices, loops_together, not_idle, parallel_elements

SHORTEST = 4
"""Axes of a smaller extent fill no tile. With 2 and 8 none of 58 default schedules changes (Zen 3)."""
UNROLLED = (1, 2, 4, 8)
"""Rows, or columns, that are written out side by side."""
REPEATED = (1, 2, 4, 8, 16, 32)
"""Number of such vectors in a tile."""
MOST_COPIES = 64
"""Elements that one tile writes out at most. With 16 and 256 none of 58 default schedules changes (Zen 3)."""
USUAL_ROWS = (4, 4)
"""Without a search: rows side by side, and how many times that many a tile has."""
USUAL_COLUMNS = (8, 8)
"""The same of columns that are moved one by one.

The fastest on the whole for extents that are powers of two, primes, and those of images (measured on a Zen 5): 16 rows
are a line of a cache where they are read."""
TURNED_BYTES = 16
"""Of neighbouring rows that change places with lanes in registers, or lanes with rows: a part within which vectors are
shuffled. 4096x1000 takes 0.93 ms so, 3.2 element by element, 64x56x56 with channels last 15 us for 32, 9x64x42x64 to
(1, 3, 2, 0) 213 for 1790 (one core of a Zen 5; of 35 others one is slower)."""
PARTS_IN_LINE, PARTS_ACROSS_LINES = LINE_BYTES // TURNED_BYTES, 8
"""Parts of rows of such a tile without a search: a line where they are read, where rows that are written begin with
lines, and two lines where they begin anywhere. Lines that begin amid a vector are written twice whichever way; with
tiles that follow each other along what is read, which caches fetch ahead, 1848x511 takes 498 us for 1184, 3001x1777 8.8
ms for 19.1, 773x494 239 us for 383, 300x700 54 for 81, ten others 0.9 to 1.1 times as long (one core of an Emerald
Rapids; on one of a Zen 5 82 us for 99, 1.2 ms for 1.2, 37 us for 36, 20 for 21, 0.9 to 1.1). Seven whose rows begin
with lines, as 4096x1000 and 2048x2048, took 0.99 to 1.1 times as long so, in tiles of four vectors (an Emerald Rapids):
they stay along what is written."""


def turned_axes(block: BlockOp) -> tuple[str, str] | None:
    """The loops along which the block reads and along which it writes contiguous memory, where these differ.

    None where they are the same, where the block reads with small strides, or where one of them is short.
    """
    sizes = {loop.loop_name: loop.size for loop in block.enclosing_loops}
    found = accesses(block)
    written = _contiguous([a for a in found if a.is_write], sizes)
    if written is None or len(block.outputs) != 1:
        return None
    for access in found:
        read = None if access.is_write else _contiguous([access], sizes)
        across = access.step(written)
        if read not in (None, written) and across is not None and abs(across) > WIDEST_STRIDE:
            return str(read), written
    return None


def _contiguous(found: Sequence[Access], sizes: dict[str, int]) -> str | None:
    """The loop of some length that moves an access by one element."""
    names = (n for n, size in sizes.items() if size >= SHORTEST)
    return next((n for n in names if all(access.step(n) == 1 for access in found)), None)


@dataclass(frozen=True)
class TurnedPlan:
    """Tiles of the loops read and written along; their elements one by one, or in lanes where each takes long.

    The loops `written` become one. `rows`, and `columns` of so many `lanes`, are written out, so many times as the
    tiles say. Tiles follow each other `along_read`, or in the order of the block's own loops.
    """

    name: str
    read: str
    written: tuple[str, ...]
    rows: Hole
    row_tile: Hole
    columns: Hole
    column_tile: Hole
    lanes: Hole
    limits: tuple[Limit, ...]
    is_parallel: bool
    along_read: bool

    def numbers(self) -> tuple[Hole, ...]:
        """Return the holes in the order they have in a sketch."""
        return self.rows, self.row_tile, self.columns, self.column_tile, self.lanes


def plan_turned(draft: Draft, block: BlockOp, axes: tuple[str, str], target: Target) -> TurnedPlan:
    """Plan the tiling of a block that reads along the first of two loops, and writes along the second."""
    name, loops = block.block_name, block.enclosing_loops
    read, written = axes
    sizes = {loop.loop_name: loop.size for loop in loops}
    fused = loops_together(draft, name, loops) if loops[-1].loop_name == written else []
    along = tuple(loop.loop_name for loop in fused) or (written,)
    extent = prod(sizes[n] for n in along)
    row, column = (read, sizes[read]), ("_".join(along), extent)
    choices, usual = lane_choices(extent, lanes_of_block(block, target))
    part = TURNED_BYTES // output_bytes(block)
    in_parts = (
        not is_costly(block) and 1 < part <= min(row[1], extent, max(UNROLLED)) and _fills_parts(block, read, written)
    )
    one_by_one = not is_costly(block) and not in_parts
    (unrolled, repeated), along_read = USUAL_ROWS, False
    if in_parts:  # nothing else is in the space: the model that ships has seen none, and takes lanes of one element
        choices = tuple(n for n in choices if part <= n <= lanes_of_block(block, target))
        unrolled, (repeated, along_read) = part, _part_tiles(block, read, part, target)
    else:
        choices = (1, *choices)
    usual_columns = USUAL_COLUMNS if one_by_one else (1, 1)
    rows = _tile(name, "rows", tuple(n for n in UNROLLED if not in_parts or n % part == 0), unrolled, row)
    row_tile = _tile(name, "row_tile", REPEATED, repeated, row)
    columns = _tile(name, "columns", (*UNROLLED, 2 * max(UNROLLED)), usual_columns[0], column)
    column_tile = _tile(name, "column_tile", REPEATED, usual_columns[1], column)
    lanes = Hole.near(f"{name}_lanes", choices, 1 if one_by_one else usual, "vector", f"{name}_{column[0]}")
    limits = (
        _written_out(rows.name, columns.name),
        not_idle((row_tile.name, rows.name), row[1]),
        not_idle((lanes.name, column_tile.name, columns.name), extent),
    )
    is_parallel = target.cores > 1 and prod(sizes.values()) >= parallel_elements(target)
    return TurnedPlan(name, read, along, rows, row_tile, columns, column_tile, lanes, limits, is_parallel, along_read)


def _fills_parts(block: BlockOp, read: str, written: str) -> bool:
    """True where each load is a vector along the loop `written`, or neighbours along `read` that are turned."""
    if block.conditions or any(load.conditions for load in block.loads):
        return False
    steps = [(one.step(written), one.step(read)) for one in accesses(block) if not one.is_write]
    return all(across in (0, 1) or ((across or 0) > WIDEST_STRIDE and along in (1, -1)) for across, along in steps)


def _part_tiles(block: BlockOp, read: str, part: int, target: Target) -> tuple[int, bool]:
    """Parts of rows of a tile without a search, and True where tiles follow each other along what is read.

    A line that begins amid a vector is written twice, by two tiles, and is lost in between where its set has not the
    ways for all rows: then these are along what is written. 1023x517, whose rows are written 4092 bytes apart, takes 76
    us so in tiles of 8 rows, 141 of 16, 226 along what is read.
    """
    bytes_apart = {abs(step) * output_bytes(block) for a in accesses(block) if a.is_write and (step := a.step(read))}
    if not any(distance % LINE_BYTES for distance in bytes_apart):
        return PARTS_IN_LINE, False
    if _keep_lines(bytes_apart, PARTS_ACROSS_LINES * part, target):
        return PARTS_ACROSS_LINES, True
    parts = PARTS_IN_LINE
    while parts > 1 and not _keep_lines(bytes_apart, parts * part, target):
        parts //= 2
    return parts, False


def _keep_lines(bytes_apart: Iterable[int], rows: int, target: Target) -> bool:
    """True where each set of the first-level cache has the ways for its lines of rows that begin anywhere."""
    ways, sets = target.l1_bytes // L1_WAY_BYTES, L1_WAY_BYTES // LINE_BYTES
    first = [(np.arange(rows) * distance // LINE_BYTES) for distance in bytes_apart]
    lines = np.unique(np.concatenate([*first, *(line + 1 for line in first)]))
    return bool(np.bincount(lines % sets).max() <= ways)


def write_turned(draft: Draft, plan: TurnedPlan) -> None:
    """Apply all steps."""
    name = plan.name
    draft.limits += plan.limits
    column = draft.fuse(name, plan.written)
    draft.add(*plan.numbers())
    row_parts = draft.split(name, plan.read, (0, plan.row_tile, plan.rows))
    column_parts = draft.split(name, column, (0, plan.column_tile, plan.columns, plan.lanes))
    parts = {*row_parts[1:], *column_parts[1:]}
    outer = [n for n in draft.loops(name) if n not in parts]
    if plan.along_read:
        outer = [*(n for n in outer if n != row_parts[0]), row_parts[0]]
    unrolled = [row_parts[2], column_parts[2]]
    draft.order(name, [*outer, column_parts[1], row_parts[1], *unrolled, column_parts[3]])
    draft.do(Vectorize, block=name, loop=column_parts[3])
    for loop in unrolled:
        draft.do(Unroll, block=name, loop=loop)
    if plan.is_parallel:
        deal(draft, name, outer)


def _tile(block: str, label: str, choices: tuple[int, ...], usual: int, axis: tuple[str, int]) -> Hole:
    loop, extent = axis
    kind: Kind = "tile" if label.endswith("tile") else "unroll"
    fitting = tuple(n for n in choices if n < 2 * extent)
    return Hole.near(f"{block}_{label}", fitting, min(usual, extent), kind, f"{block}_{loop}")


def _written_out(rows: str, columns: str) -> Limit:
    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        return np.asarray(c[rows] * c[columns] <= MOST_COPIES)

    return limit
