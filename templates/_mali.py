"""Tiling for Mali, shared by templates: blocks, threads and elements, vectors of neighbours, no shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from ..computation import Computation
from ..schedule import Schedule
from ..search.template.config import Config
from ._gpu import spread_over_threads

AXES = "zyx"
MOST_ELEMENTS = 16
"""Results of a work-item along an axis: four vectors of 16 bytes. A choice."""


def tiled(
    cfg: Config, made: Computation, spatial: Sequence[str], reduce: Sequence[str], outer: Sequence[str]
) -> Schedule:
    """The schedule of an operator and what is fused around it: knobs `tile_<loop>` for its loops, and what is unrolled.

    `spatial` loops have three parts: blocks, threads, and elements of a thread, the innermost of which may be a vector.
    """
    sch, block, loops = made.sch, made.block, made.loops
    for name in spatial:
        cfg.define_split(f"tile_{name}", loops[name], num_outputs=3, filter=lambda e: e.size[-1] <= MOST_ELEMENTS)
    cfg.define_split("tile_reduce", loops[reduce[0]], num_outputs=2)
    cfg.define_annotate("elements", list(spatial), "try_unroll_vec")
    cfg.define_knob("unroll_reduce", [0, 1])
    if cfg.is_fallback:
        for name, most in zip(reversed(spatial), (16, 4, 1), strict=False):
            cfg.fallback_split(f"tile_{name}", [None, most, 2])
        cfg.fallback_split("tile_reduce", [None, 4])
        cfg["elements"] = ["unroll"] * (len(spatial) - 1) + ["vec"]

    out = made.write_back(block)
    made.inline_pads()
    axes = AXES[3 - len(spatial) :]
    parts = [cfg[f"tile_{name}"].apply(sch, block, loops[name]) for name in spatial]
    step, step_inner = cfg["tile_reduce"].apply(sch, block, loops[reduce[0]])
    blocks, threads, inner = ([p[i] for p in parts] for i in range(3))
    around = [loops[name] for name in outer]
    rest = [loops[name] for name in reduce[1:]]
    marks = cfg["elements"].anns
    if "vec" in marks:  # lanes are innermost
        inner = sorted(inner, key=lambda loop: marks[inner.index(loop)] == "vec")
        marks = tuple(sorted(marks, key=lambda mark: mark == "vec"))
    sch.reorder(block, *around, *blocks, *threads, step, *rest, step_inner, *inner)
    if around:
        blocks[0] = sch.fuse(block, *around, blocks[0])
    for loop, axis in zip(blocks, axes, strict=True):
        sch.bind(block, loop, f"blockIdx.{axis}")
    for loop, axis in zip(threads, axes, strict=True):
        sch.bind(block, loop, f"threadIdx.{axis}")
    sch.reverse_compute_at(out, threads[-1])
    for loop, mark in zip(inner, marks, strict=True):
        if mark == "unroll":
            sch.unroll(block, loop)
        elif mark == "vec":
            sch.vectorize(block, loop)
    if cfg["unroll_reduce"].val:
        sch.unroll(block, step_inner)
    spread_over_threads(sch, made.behind, cfg.target)
    return sch
