"""`decompose_reduction` on extents: a stage that writes the start values, in copies of the spatial loops."""

from __future__ import annotations

from ...analysis.nest import fresh_name
from ...schedule.decompose_reduction import DecomposeReduction
from ..nest import Access, Axis, Loop, Nest, Stage
from ..steps import Sizes


def replay(step: DecomposeReduction, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    loop = nest.loop(step.block, step.loop)
    loops = stage.loops
    spatial = stage.loop_names(reduce=False)
    init = Stage(
        fresh_name(f"{stage.name}_init", {s.name for s in nest.root.stages()}),
        [Axis(a.name, a.extent, False, a.bound) for a in stage.iterators if not a.is_reduce],
        [Access(w.buffer, list(w.indices)) for w in stage.writes],
        [],
        {},
        "none",
        {},
    )
    inner: Loop | Stage = init
    for outer in reversed([x for x in loops[loops.index(loop) :] if x.name in spatial]):
        copy = Loop(outer.name, outer.extent, outer.kind)
        copy.add(inner)
        inner = copy
    place = loop.parent
    assert place is not None
    place.add(inner, place.body.index(loop))
