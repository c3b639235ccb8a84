"""`reorder` on extents: the named loops are permuted among the places they hold."""

from __future__ import annotations

import itertools

from ...schedule.reorder import Reorder
from ..nest import Loop, Nest, replace_loop
from ..steps import Sizes


def replay(step: Reorder, nest: Nest, sizes: Sizes) -> None:
    around = nest.stage(step.block).loops
    named = [nest.loop(step.block, n) for n in step.loops]
    places = sorted(around.index(loop) for loop in named)
    old = around[places[0] : places[-1] + 1]
    order = iter(named)
    new = [next(order) if loop in named else loop for loop in old]
    copies = [Loop(x.name, x.extent, x.kind, x.notes) for x in new]
    for child in old[-1].body:
        copies[-1].add(child)
    for outer, inner in itertools.pairwise(copies):
        outer.add(inner)
    replace_loop(old[0], copies[0])
