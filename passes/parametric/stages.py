"""Effect of `pipeline` and `double_buffer` on extents: copies into buffers with a place for each stage."""

from __future__ import annotations

from ...dialects.loop_notes import PIPELINE_STAGES
from .index import Index
from .nest import Loop, Nest, SizedAxis, Stage
from .sizes import Size, is_one


def _is_copy(stage: Stage) -> bool:
    """True for a stage that stores what it loads."""
    plain = not stage.is_reduction and not stage.arithmetic
    return plain and len(stage.writes) == 1 and len(stage.loads) == 1


def copies_ahead(nest: Nest, loop: Loop) -> list[Stage]:
    """The stages in `loop` that fill a buffer of which each iteration has its own, from one that is there before."""
    below = list(loop.stages())
    found = []
    for stage in below:
        if not _is_copy(stage) or nest.owner_of(stage.writes[0].buffer) is not loop:
            continue
        writers, sources = (nest.writers(a.buffer) for a in (stage.writes[0], stage.loads[0]))
        if len(writers) == 1 and not any(source in below for source in sources):
            found.append(stage)
    return found


def add_places(nest: Nest, loop: Loop, copies: list[Stage], stages: Size) -> None:
    """Give each copy's buffer one place per stage, used in turn."""
    if is_one(stages):
        return
    loop.notes[PIPELINE_STAGES] = stages
    for copy in copies:
        copy.notes[PIPELINE_STAGES] = stages
        buffer = copy.writes[0].buffer
        for stage in nest.root.stages():
            uses = [a for a in stage.accesses if a.buffer is buffer]
            if uses:
                iterator = _iterator(stage, loop, stages)
                for access in uses:
                    access.indices = [Index.axis(iterator), *access.indices]
        if buffer.align is not None:
            dimension, factor, offset = buffer.align
            buffer.align = (dimension + 1, factor, offset)
        buffer.shape = [stages, *buffer.shape]


def _iterator(stage: Stage, loop: Loop, stages: Size) -> str:
    """The iterator of `stage` that is the place, new unless another buffer has brought it."""
    wanted = stage_iterator(loop)
    if all(a.name != wanted for a in stage.iterators):
        reducing = loop.name in stage.loop_names(reduce=True)
        stage.iterators.append(SizedAxis(wanted, stages, reducing, Index.axis(loop.name) % stages))
    return wanted


def stage_iterator(loop: Loop) -> str:
    """Return the name of the iterator that says which place of a pipelined loop's buffers is in use."""
    return f"{loop.name}_stage"
