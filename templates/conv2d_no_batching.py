"""A convolution of one image on a GPU, tiled in the classic way (the template of AutoTVM's GPU tutorial)."""

from __future__ import annotations

from typing import Any

from ..search.template.config import Config
from ..search.template.registry import template
from ._gpu import AXES, fetch_together
from ._operators import conv2d_nchw, operands, start

Pair = tuple[int, int]


@template("conv2d_no_batching")
def conv2d_no_batching(
    cfg: Config, n: int, h: int, w: int, co: int, ci: int, kh: int, kw: int, stride: Pair, padding: Pair
) -> Any:
    """NCHW data. Spatial axes in four: blocks, virtual threads, threads, elements; reduce axes in three."""
    if n != 1:
        raise ValueError(f"conv2d_no_batching takes one image, got a batch of {n}")
    tensors = conv2d_nchw(n, h, w, co, ci, kh, kw, stride, padding)
    sch, conv, _ = start(cfg, tensors)

    batch, f, y, x, rc, ry, rx = sch.get_loops(conv)
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

    out = sch.cache_write(conv, conv.name, "local")
    shared = [sch.cache_read(conv, name, "shared") for name in operands(sch, tensors)]
    if "pad_temp" in sch.blocks:
        sch.compute_inline("pad_temp")
    bf, vf, tf, fi = cfg["tile_f"].apply(sch, conv, f)
    by, vy, ty, yi = cfg["tile_y"].apply(sch, conv, y)
    bx, vx, tx, xi = cfg["tile_x"].apply(sch, conv, x)
    rco, rcm, rci = cfg["tile_rc"].apply(sch, conv, rc)
    ryo, rym, ryi = cfg["tile_ry"].apply(sch, conv, ry)
    rxo, rxm, rxi = cfg["tile_rx"].apply(sch, conv, rx)
    steps = (rco, ryo, rxo, rcm, rym, rxm, rci, ryi, rxi)
    sch.reorder(conv, batch, bf, by, bx, vf, vy, vx, tf, ty, tx, *steps, fi, yi, xi)
    for loop, axis in zip((bf, by, bx), AXES, strict=True):
        sch.bind(conv, loop, f"blockIdx.{axis}")
    for loop in (vf, vy, vx):
        sch.bind(conv, loop, "vthread")
    for loop, axis in zip((tf, ty, tx), AXES, strict=True):
        sch.bind(conv, loop, f"threadIdx.{axis}")
    sch.reverse_compute_at(out, tx)
    counts = [cfg[name].size[2] for name in ("tile_f", "tile_y", "tile_x")]
    for copy in shared:
        fetch_together(sch, copy, rxo, counts, AXES)
    step, explicit = cfg["auto_unroll_max_step"].val, cfg["unroll_explicit"].val
    sch.pragma(conv, batch, auto_unroll_max_step=step, unroll_explicit=explicit)
    return sch
