"""`split` on extents: one loop into several, the inferred factor rounded up."""

from __future__ import annotations

from ...analysis.nest import fresh_name
from ...schedule.split import Split
from ..index import Cap, constant, name
from ..nest import Loop, Nest, names_around, replace_loop
from ..sizes import Size, ceil_div, product
from ..steps import Sizes


def replay(step: Split, nest: Nest, sizes: Sizes) -> None:
    loop = nest.loop(step.block, step.loop)
    extents = _extents(loop, [sizes.of(f) for f in step.factors])
    taken = names_around(loop) - {loop.name}
    names: list[str] = []
    for position in range(len(extents)):
        wanted = f"{loop.name}{position}"
        names.append(fresh_name(wanted if wanted not in taken else loop.name, {*taken, *names}))
    value = constant(0)
    for child, extent in zip(names, extents, strict=True):
        value = value * extent + name(child)
    has_tail = _has_tail(loop.extent, product(extents))
    for stage in loop.stages():
        stage.substitute_loops({loop.name: value})
        if has_tail:
            stage.caps.append(Cap.of(value, loop.extent - 1))
    inner = Loop(names[-1], extents[-1])
    for part in loop.body:
        inner.add(part)
    for child, extent in list(zip(names, extents, strict=True))[-2::-1]:
        outer = Loop(child, extent)
        outer.add(inner)
        inner = outer
    replace_loop(loop, inner)


def _has_tail(extent: Size, iterations: Size) -> bool:
    """True where there may be more iterations than before."""
    return not (isinstance(extent, int) and isinstance(iterations, int)) or iterations > extent


def _extents(loop: Loop, factors: list[Size]) -> list[Size]:
    inferred = [isinstance(f, int) and f == 0 for f in factors]
    known = product([f for f, unknown in zip(factors, inferred, strict=True) if not unknown])
    return [ceil_div(loop.extent, known) if unknown else f for f, unknown in zip(factors, inferred, strict=True)]
