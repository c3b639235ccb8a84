"""Templates that tests define: a matrix product for CPUs with every kind of knob, and one that hides what it asks."""

from typing import Any

import loopwright as lw
from loopwright import te, topi

CONV = ("conv2d_no_batching", (1, 7, 7, 512, 512, 3, 3, (1, 1), (1, 1)), "cuda model=h200")
"""Name, arguments and target of the tutorial's task."""


@lw.template("tests_matmul")
def matmul(cfg: Any, m: int, n: int, k: int) -> lw.Schedule:
    a = te.placeholder((m, k), name="a")
    b = te.placeholder((k, n), name="b")
    c = topi.matmul(a, b)
    sch = lw.Schedule([a, b, c], target=cfg.target)
    i, j, r = sch.get_loops(c)
    cfg.define_split("tile_i", i)
    cfg.define_split("tile_j", j, num_outputs=3)
    cfg.define_split("tile_k", r)
    cfg.define_reorder("order", ["ko", "jm"], "all")
    cfg.define_annotate("unroll", ["ki", "ii"], "try_unroll")
    cfg.define_knob("parallel", [0, 1])
    if cfg.is_fallback:
        cfg.fallback_split("tile_j", [None, 2, 8])
    io, ii = cfg["tile_i"].apply(sch, c, i)
    jo, jm, ji = cfg["tile_j"].apply(sch, c, j)
    ko, ki = cfg["tile_k"].apply(sch, c, r)
    sch.reorder(c, io, jo, ko, jm, ki, ii, ji)
    cfg["order"].apply(sch, c, [ko, jm])
    cfg["unroll"].apply(sch, c, [ki, ii])
    sch.vectorize(c, ji)
    if cfg["parallel"].val:
        sch.parallel(c, io)
    return sch


@lw.template("tests_depths")
def depths(cfg: Any, n: int) -> lw.Schedule:
    """Looks at a number in a way that leaves no note: in the bounds of a range."""
    x = te.placeholder((n,), name="x")
    y = topi.nn.relu(x)
    sch = lw.Schedule([x, y], target=cfg.target)
    loop = sch.get_loops(y)[0]
    cfg.define_knob("depth", [1, 2, 3, 4])
    for _ in range(cfg["depth"].val):
        loop = sch.split(y, loop, [None, 2])[0]
    return sch
