"""`cache_read` on extents: a copy of what a stage reads, whole or as a panel in the order in which it is read."""

from __future__ import annotations

from ...analysis.layout import layout_names
from ...analysis.nest import fresh_buffer_name
from ...schedule.cache_read import CacheRead
from ..index import Index, name
from ..layout import SizedLayout
from ..nest import Access, Axis, Buffer, Nest, Stage
from ..sizes import Size, is_one
from ..steps import Sizes, add_copy


def replay(step: CacheRead, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    loads = [a for a in stage.loads if a.buffer.name == step.buffer]
    source = loads[0].buffer
    label = step.label or _default_label(step, nest)
    dimensions, shape, read, panel = _copied(step, stage, loads[0], sizes)
    buffer = Buffer(label, shape, source.element_bytes, step.scope, False)
    axes = [Axis(n, e, False, name(n)) for n, e in zip(dimensions, shape, strict=True)]
    copy = Stage(label, axes, [Access(buffer, [name(n) for n in dimensions])], [Access(source, read)], {}, "none", {})
    top = nest.top_level(stage)
    add_copy(nest, copy, nest.root.body.index(top))
    for load in loads:
        load.buffer = buffer
        if panel is not None:
            load.indices = panel


def _copied(
    step: CacheRead, stage: Stage, load: Access, sizes: Sizes
) -> tuple[list[str], list[Size], list[Index], list[Index] | None]:
    """The names and extents of the copy's dimensions, where it reads, and where the stage reads it."""
    if not step.layout:
        names = [f"ax{d}" for d in range(len(load.buffer.shape))]
        return names, list(load.buffer.shape), [name(n) for n in names], None
    used = {n for e in load.indices for n in e.names} | layout_names(step.layout)  # masks may use more than indices
    extents = {a.name: a.extent for a in stage.iterators if a.name in used or is_one(a.extent)}
    layout = SizedLayout(step.layout, extents, sizes)
    values = layout.inverse()
    return layout.dimensions, layout.shape, [e.substitute(values) for e in load.indices], layout.forward()


def _default_label(step: CacheRead, nest: Nest) -> str:
    taken = {*nest.buffers, *(s.name for s in nest.root.stages())}
    return fresh_buffer_name(f"{step.buffer}_{'packed' if step.layout else step.scope}", taken)
