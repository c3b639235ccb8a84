"""Blocks that read along one axis and write along another, such as transposes: tiles of both, small ones unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.schedule.reorder import Reorder
from ...passes.schedule.split import Split
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole, Kind, Limit
from ..structure.strides import WIDEST_STRIDE, Access, accesses, lanes_of_block
from ._lanes import PARALLEL_ELEMENTS, deal, is_costly, lane_choices, not_idle, together

SHORTEST = 4
"""Axes of a smaller extent fill no tile."""
UNROLLED = (1, 2, 4, 8)
REPEATED = (1, 2, 4, 8, 16, 32)
MOST_COPIES = 64
"""Elements that one tile writes out at most."""
USUAL_ROWS = (4, 4)
USUAL_COLUMNS = (8, 8)
"""Without a search: rows, or columns, side by side, and how many times that many a tile has.

The fastest on the whole for extents that are powers of two, primes, and those of images (measured on a Zen 5): 16 rows
are a line of a cache where they are read."""


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


def tile_turned(draft: Draft, name: str, axes: tuple[str, str], target: Target) -> None:
    """Tiles of the axes read and written along; their elements one by one, or in lanes where each takes long."""
    loops = draft.block(name).enclosing_loops
    total = prod(loop.size for loop in loops)
    read, written = axes
    if loops[-1].loop_name == written:
        written, _ = together(draft, name, loops)
    block = draft.block(name)
    sizes = {loop.loop_name: loop.size for loop in block.enclosing_loops}
    rows, row_tile, columns, column_tile, lanes = _holes(
        draft, block, (read, sizes[read]), (written, sizes[written]), target
    )
    draft.do(Split, block=name, loop=read, factors=(0, row_tile, rows))
    draft.do(Split, block=name, loop=written, factors=(0, column_tile, columns, lanes))
    outer = [f"{n}0" if n in (read, written) else n for n in sizes]
    inner = [f"{written}1", f"{read}1", f"{read}2", f"{written}2", f"{written}3"]
    draft.do(Reorder, block=name, loops=(*outer, *inner))
    draft.do(Vectorize, block=name, loop=inner[-1])
    for loop in inner[2:4]:
        draft.do(Unroll, block=name, loop=loop)
    if target.cores > 1 and total >= PARALLEL_ELEMENTS:
        deal(draft, name, outer)


def _holes(
    draft: Draft, block: BlockOp, read: tuple[str, int], written: tuple[str, int], target: Target
) -> tuple[Hole, ...]:
    """The factors of both axes, and the lanes."""
    name = block.block_name
    full = lanes_of_block(block, target)
    choices, usual = lane_choices(written[1], full)
    one_by_one = not is_costly(block)
    columns, column_tile = USUAL_COLUMNS if one_by_one else (1, 1)
    found = (
        _tile(draft, name, "rows", UNROLLED, USUAL_ROWS[0], read),
        _tile(draft, name, "row_tile", REPEATED, USUAL_ROWS[1], read),
        _tile(draft, name, "columns", (*UNROLLED, 16), columns, written),
        _tile(draft, name, "column_tile", REPEATED, column_tile, written),
        draft.hole(f"{name}_lanes", (1, *choices), 1 if one_by_one else usual, "vector", f"{name}_{written[0]}"),
    )
    names = [hole.name for hole in found]
    draft.limits += [
        _written_out(names[0], names[2]),
        not_idle(names[1::-1], read[1]),
        not_idle(names[:1:-1], written[1]),
    ]
    return found


def _tile(draft: Draft, block: str, label: str, choices: tuple[int, ...], usual: int, axis: tuple[str, int]) -> Hole:
    loop, extent = axis
    kind: Kind = "tile" if label.endswith("tile") else "unroll"
    fitting = tuple(n for n in choices if n < 2 * extent)
    return draft.hole(f"{block}_{label}", fitting, min(usual, extent), kind, f"{block}_{loop}")


def _written_out(rows: str, columns: str) -> Limit:
    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        return np.asarray(c[rows] * c[columns] <= MOST_COPIES)

    return limit
