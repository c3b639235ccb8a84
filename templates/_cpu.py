"""What the templates for CPUs share: a tile of sums in vector registers, rows unrolled beside a vector of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..search.template.config import Config
from ..te import Tensor
from ._operators import start

MOST_ROWS = 16
MOST_COLUMNS = 64


def tiled(
    cfg: Config,
    tensors: list[Tensor],
    outer: Sequence[str],
    row: str,
    column: str,
    reduce: Sequence[str],
    packed: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """The schedule of an operator, given by its tensors, with all tiles dealt to the cores.

    Knobs: the rows and columns of a tile, the step of the first reduce loop, what is unrolled, and which tiles come
    first. `packed` are operands to copy first into the order in which they are read: layouts in which `<width>` stands
    for the columns of a tile.
    """
    sch, block, loops = start(cfg, tensors)
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

    if "pad_temp" in sch.blocks:
        sch.parallel("pad_temp", sch.fuse("pad_temp", *sch.get_loops("pad_temp")[:2]))
    out = sch.cache_write(block, block.name, "local")
    rows, row_inner = cfg["tile_row"].apply(sch, block, loops[row])
    columns, lanes = cfg["tile_column"].apply(sch, block, loops[column])
    step, step_inner = cfg["tile_reduce"].apply(sch, block, loops[reduce[0]])
    around = [loops[name] for name in outer]
    tiles = [rows, columns] if cfg["rows_first"].val else [columns, rows]
    rest = [loops[name] for name in reduce[1:]]
    sch.reorder(block, *around, *tiles, step, *rest, step_inner, row_inner, lanes)
    width = cfg["tile_column"].size[-1]
    for operand, layout in (packed or {}).items():
        copy = sch.cache_read(block, operand, "global", [part.replace("<width>", str(width)) for part in layout])
        sch.parallel(copy, sch.get_loops(copy)[0])
    cfg["unroll"].apply(sch, block, [step_inner, row_inner])
    sch.vectorize(block, lanes)
    sch.reverse_compute_at(out, tiles[-1])
    sch.vectorize(out, sch.get_loops(out)[-1])
    sch.parallel(block, sch.fuse(block, *around, *tiles))
    return sch
