"""`fuse` on extents: several loops into one."""

from __future__ import annotations

from ....passes.analysis.nest import fresh_name
from ....passes.schedule.fuse import Fuse
from ..index import Index, name
from ..nest import Loop, Nest, names_around, replace_loop
from ..sizes import Size, product
from ..steps import Sizes


def replay(step: Fuse, nest: Nest, sizes: Sizes) -> None:
    loops = [nest.loop(step.block, n) for n in step.loops]
    fused = fresh_name("_".join(step.loops), names_around(loops[0]) - set(step.loops))
    values: dict[str, Index] = {}
    below: Size = 1
    for loop in reversed(loops):
        whole = name(fused) // below
        values[loop.name] = whole if loop is loops[0] else whole % loop.extent
        below = below * loop.extent
    for stage in loops[-1].stages():
        stage.substitute_loops(values)
    new = Loop(fused, product([x.extent for x in loops]))
    for child in loops[-1].body:
        new.add(child)
    replace_loop(loops[0], new)
