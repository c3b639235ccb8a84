"""A convolution of one image on a GPU, with the knobs of AutoTVM's GPU tutorial, in its order.

Where the tutorial loops over the outermost part of the channels, blocks of their own take it here, and a second kernel
adds up: one image leaves too few blocks for a large device. Shared memory is filled for each middle part.
"""

from __future__ import annotations

from typing import Any

from ..computation import start
from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.registry import template
from ._gpu import AXES, fetch_together, split_among_blocks
from .conv2d_nchw import conv2d_nchw


@template("conv2d_no_batching")
def conv2d_no_batching(cfg: Config, *args: Any) -> Schedule:
    """As `conv2d_nchw`, for one image. Spatial axes in four: blocks, virtual threads, threads, elements;
    reduce axes in three, the channels' over blocks, fills of shared memory, and what is in it.
    """
    made = start(cfg, conv2d_nchw(*args))
    sch, block = made.sch, made.block
    batch, f, y, x, rc, ry, rx = made.loops.values()
    if batch.extent != 1:
        raise ValueError(f"conv2d_no_batching takes one image, got a batch of {batch.extent}")
    cfg.define_split("tile_f", f, num_outputs=4)
    cfg.define_split("tile_y", y, num_outputs=4)
    cfg.define_split("tile_x", x, num_outputs=4)
    cfg.define_split("tile_rc", rc, num_outputs=3)
    cfg.define_split("tile_ry", ry, num_outputs=3)
    cfg.define_split("tile_rx", rx, num_outputs=3)
    cfg.define_knob("auto_unroll_max_step", [0, 512, 1500])
    cfg.define_knob("unroll_explicit", [0, 1])
    if cfg.is_fallback:
        for name, threads in (("tile_f", 16), ("tile_y", 1), ("tile_x", 7)):
            cfg.fallback_split(name, [None, 1, threads, 2])
        cfg.fallback_split("tile_rc", [None, 1, 8])

    parts, _, inner = cfg["tile_rc"].size
    around = [batch]
    if parts > 1:
        block, rc = split_among_blocks(made, cfg.target, rc, parts)
        around.insert(0, sch.get_loops(block)[0])
    out = made.write_back(block)
    shared = [sch.cache_read(block, name, "shared") for name in made.operands]
    made.inline_pads()
    bf, vf, tf, fi = cfg["tile_f"].apply(sch, block, f)
    by, vy, ty, yi = cfg["tile_y"].apply(sch, block, y)
    bx, vx, tx, xi = cfg["tile_x"].apply(sch, block, x)
    rcm, rci = sch.split(block, rc, [None, inner])
    ryo, rym, ryi = cfg["tile_ry"].apply(sch, block, ry)
    rxo, rxm, rxi = cfg["tile_rx"].apply(sch, block, rx)
    steps = (ryo, rxo, rcm, rym, rxm, rci, ryi, rxi)
    sch.reorder(block, *around, bf, by, bx, vf, vy, vx, tf, ty, tx, *steps, fi, yi, xi)
    bf = sch.fuse(block, *around, bf)
    for loop, axis in zip((bf, by, bx), AXES, strict=True):
        sch.bind(block, loop, f"blockIdx.{axis}")
    for loop in (vf, vy, vx):
        sch.bind(block, loop, "vthread")
    for loop, axis in zip((tf, ty, tx), AXES, strict=True):
        sch.bind(block, loop, f"threadIdx.{axis}")
    sch.reverse_compute_at(out, tx)
    counts = [cfg[name].size[2] for name in ("tile_f", "tile_y", "tile_x")]
    for copy in shared:
        fetch_together(sch, copy, rcm, counts, AXES)
    step, explicit = cfg["auto_unroll_max_step"].val, cfg["unroll_explicit"].val
    sch.pragma(block, bf, auto_unroll_max_step=step, unroll_explicit=explicit)
    return sch
