"""Limits of a reduction tiled on a CPU, of its plan: blocks that cover their axes, tiles that are whole."""

from __future__ import annotations

import numpy.typing as npt

from ..sketch import arrays as np
from ..sketch.hole import Columns, Limit
from ._lanes import lanes_of
from ._reduce_steps import covers
from ._row_panel import covers_padded
from ._tile_plan import RowTile, TilePlan


def block_limits(plan: TilePlan) -> list[Limit]:
    """Blocks cover their reduce axes, or those that are padded; tiles divide runs of filters, or are whole vectors.

    Those that turn pixels have whole rows, of which it is known when they are compiled where padding begins: of
    8x160x57x56 apart, 7x7/2, tiles of a quarter of a row take 7.3 ms, of whole rows 1.8 (one core of a Zen 5).
    """
    covered = [
        (covers_padded if t.is_padded else covers)(t.axis.extent, t.block, t.unroll)
        for t in plan.reduce
        if t.block is not None
    ]
    whole = []
    if plan.variant.turned:
        *_, last = plan.rows
        whole = [_whole_vectors(last, lanes_of(plan.anchor, plan.target))]
    if plan.variant.turns_pixels:
        whole = [_whole_axis(plan.rows[-1])]
    return covered + whole + ([plan.runs] if plan.runs is not None else [])


def _whole_axis(tile: RowTile) -> Limit:
    """A cache tile has all of an axis."""

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        return np.asarray(c[tile.middle.name] * c[tile.inner.name] >= tile.axis.extent)

    return limit


def _whole_vectors(tile: RowTile, lanes: int) -> Limit:
    """A cache tile of rows is whole vectors of results, so that neighbouring ones store none twice."""

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        return np.asarray(c[tile.middle.name] * c[tile.inner.name] % lanes == 0)

    return limit
