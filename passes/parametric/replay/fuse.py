"""`fuse` on extents: several loops into one."""

from __future__ import annotations

from ...analysis.nest import fresh_name
from ...schedule.fuse import Fuse
from ..index import Index, name
from ..nest import Loop, Nest, names_around, replace_loop
from ..sizes import Size, equal, less, negated, product
from ..steps import Sizes


def replay(step: Fuse, nest: Nest, sizes: Sizes) -> None:
    loops = [nest.loop(step.block, n) for n in step.loops]
    fused = fresh_name("_".join(step.loops), names_around(loops[0]) - set(step.loops))
    values: dict[str, Index] = {}
    below: Size = 1
    total = product([x.extent for x in loops])
    runs = less(1, total)  # a single iteration stays at 0, also where later steps give the loop more of them
    for position in range(len(loops) - 1, -1, -1):
        loop = loops[position]
        outermost = equal(product([x.extent for x in loops[:position]]), 1)
        values[loop.name] = _digit(name(fused) // below, loop.extent, outermost).times_where(runs)
        below = below * loop.extent
    for stage in loops[-1].stages():
        stage.substitute_loops(values)
    new = Loop(fused, total)
    for child in loops[-1].body:
        new.add(child)
    replace_loop(loops[0], new)


def _digit(value: Index, extent: Size, outermost: Size) -> Index:
    """The value of a loop; that of the outermost one with more than one iteration goes on beyond its extent."""
    if isinstance(outermost, int | float):
        return value if outermost else value % extent
    return value.times_where(outermost) + (value % extent).times_where(negated(outermost))
