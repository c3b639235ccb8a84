"""`cache_write` on extents: a stage writes a buffer of its own, and a copy of that the real one."""

from __future__ import annotations

from ...analysis.nest import fresh_buffer_name
from ...schedule.cache_write import CacheWrite
from ..index import Index, name
from ..layout import SizedLayout
from ..nest import Access, Axis, Buffer, Nest, Stage
from ..sizes import Size, is_one
from ..steps import Sizes, add_copy, output_of


def replay(step: CacheWrite, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    write = output_of(stage, step.buffer)
    real, target = write.buffer, write.indices
    owners = nest.writers(real)
    used = {n for e in target for n in e.names}
    axes = [a for a in stage.iterators if a.name in used]
    shape, source = _laid_out(step, stage, used, write, sizes)
    taken = {*nest.buffers, *(s.name for s in nest.root.stages())}
    label = step.label or fresh_buffer_name(f"{real.name}_{step.scope}", taken)
    buffer = Buffer(label, shape, real.element_bytes, step.scope, False)
    for owner in owners:
        for access in owner.writes:
            if access.buffer is real:
                access.indices = _redirected(target, access.indices, source)
                access.buffer = buffer
    copied = [Axis(a.name, a.extent, False, name(a.name)) for a in axes]
    copy = Stage(label, copied, [Access(real, list(target))], [Access(buffer, list(source))], {}, "none", {})
    add_copy(nest, copy, nest.root.body.index(nest.top_level(owners[-1])) + 1)


def _laid_out(
    step: CacheWrite, stage: Stage, used: set[str], write: Access, sizes: Sizes
) -> tuple[list[Size], list[Index]]:
    """The shape of the new buffer and where the stage writes it."""
    if not step.layout:
        return list(write.buffer.shape), list(write.indices)
    extents = {a.name: a.extent for a in stage.iterators if a.name in used or is_one(a.extent)}
    layout = SizedLayout(step.layout, extents, sizes)
    return layout.shape, layout.forward()


def _redirected(target: list[Index], own: list[Index], source: list[Index]) -> list[Index]:
    """The new indices of a stage whose iterators may have other names than those of the stage of the step."""
    values = {n: e for t, e in zip(target, own, strict=True) if (n := t.as_name) is not None}
    return [e.substitute(values) for e in source]
