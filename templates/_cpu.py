"""Tiling for CPUs, shared by templates: sums in vector registers, rows unrolled beside a vector of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..computation import Computation
from ..passes.open_number import NumberText
from ..schedule import Schedule
from ..search.template.config import Config

MOST_ROWS = 16
"""Rows of a register tile, at most. A choice: as many as there are registers of AVX2."""
MOST_COLUMNS = 64
"""Columns of a register tile: four vectors of 16 floats. A choice."""


def tiled(
    cfg: Config,
    made: Computation,
    outer: Sequence[str],
    row: str,
    column: str,
    reduce: Sequence[str],
    packed: Sequence[str] = (),
    channels: int | None = None,
) -> Schedule:
    """Schedule an operator and what is fused around it, with all tiles in parallel on the cores.

    Knobs: the rows and columns of a tile, the step of the first reduce loop, what is unrolled, and which tiles come
    first. `packed`: the layout to copy the second operand into first, so that it is read in order; `<width>` stands for
    the columns of a tile, `<step>` for the inner step. `channels`: the dimension of the first operand, padded or
    copied, that is blocked by that step, with the blocks contiguous.
    """
    sch, block, loops = made.sch, made.block, made.loops
    cfg.define_split("tile_row", loops[row], num_outputs=2, max_factor=MOST_ROWS)
    cfg.define_split("tile_column", loops[column], num_outputs=2, max_factor=MOST_COLUMNS)
    cfg.define_split("tile_reduce", loops[reduce[0]], num_outputs=2)
    cfg.define_annotate("unroll", ["reduce", "row"], "try_unroll")
    cfg.define_knob("rows_first", [0, 1])
    if cfg.is_fallback:
        cfg.fallback_split("tile_row", [None, 6])
        cfg.fallback_split("tile_column", [None, 16])
        cfg.fallback_split("tile_reduce", [None, 4])
        cfg["unroll"] = ["none", "unroll"]

    numbers = {"<width>": cfg["tile_column"].size[-1], "<step>": cfg["tile_reduce"].size[-1]}
    if channels is not None:
        _block_channels(made, channels, numbers["<step>"])
    for other in (*made.pads, *made.behind):
        sch.parallel(other, sch.fuse(other, *sch.get_loops(other)[:2]))
    out = made.write_back(block)
    rows, row_inner = cfg["tile_row"].apply(sch, block, loops[row])
    columns, lanes = cfg["tile_column"].apply(sch, block, loops[column])
    step, step_inner = cfg["tile_reduce"].apply(sch, block, loops[reduce[0]])
    around = [loops[name] for name in outer]
    tiles = [rows, columns] if cfg["rows_first"].val else [columns, rows]
    rest = [loops[name] for name in reduce[1:]]
    sch.reorder(block, *around, *tiles, step, *rest, step_inner, row_inner, lanes)
    if packed:
        layout = [_spelled(part, numbers) for part in packed]
        copy = sch.cache_read(block, made.operands[1], "global", layout)
        sch.parallel(copy, sch.get_loops(copy)[0])
    cfg["unroll"].apply(sch, block, [step_inner, row_inner])
    sch.vectorize(block, lanes)
    sch.reverse_compute_at(out, tiles[-1])
    made.lay_out_sums([*outer, row, column])
    sch.vectorize(out, sch.get_loops(out)[-1])
    sch.parallel(block, sch.fuse(block, *around, *tiles))
    return sch


def _block_channels(made: Computation, dimension: int, step: int) -> None:
    """Let blocks of channels of the first operand be contiguous, in its padding or in a copy."""
    sch = made.sch
    writer = made.pads[0] if made.pads else str(sch.cache_read(made.block, made.operands[0], "global"))
    names = [str(loop) for loop in sch.get_loops(writer)]
    channel = names[dimension]
    names[dimension] = _spelled(f"{channel}/<step>", {"<step>": step})
    sch.transform_layout(
        writer, made.operands[0] if made.pads else writer, [*names, _spelled(f"{channel}%<step>", {"<step>": step})]
    )
    if not made.pads:
        sch.parallel(writer, sch.fuse(writer, *sch.get_loops(writer)[:2]))


def _spelled(item: str, numbers: Mapping[str, int]) -> str:
    """An item of a layout, with a number for its name in angle brackets."""
    name = next((name for name in numbers if name in item), None)
    if name is None:
        return item
    before, _, after = item.partition(name)
    return NumberText(before, numbers[name], after)
