"""What `pipeline` and `double_buffer` do to extents."""

from __future__ import annotations

from .index import name
from .nest import Axis, Loop, Nest, Stage
from .sizes import Size, is_one

NOTE = "pipeline_stages"


def is_copy(stage: Stage) -> bool:
    """True for a stage that stores what it loads."""
    plain = not stage.is_reduction and not stage.arithmetic
    return plain and len(stage.writes) == 1 and len(stage.loads) == 1


def add_stages(nest: Nest, loop: Loop, copies: list[Stage], stages: Size) -> None:
    """Give each copy's buffer one place per stage, used in turn."""
    if is_one(stages):
        return
    loop.notes[NOTE] = stages
    for copy in copies:
        copy.notes[NOTE] = stages
        buffer = copy.writes[0].buffer
        for stage in nest.root.stages():
            uses = [a for a in stage.accesses if a.buffer is buffer]
            if uses:
                iterator = _iterator(stage, loop, stages)
                for access in uses:
                    access.indices = [name(iterator), *access.indices]
        if buffer.align is not None:
            dimension, factor, offset = buffer.align
            buffer.align = (dimension + 1, factor, offset)
        buffer.shape = [stages, *buffer.shape]


def _iterator(stage: Stage, loop: Loop, stages: Size) -> str:
    """The iterator of `stage` that is the place, new unless another buffer has brought it."""
    wanted = stage_iterator(loop)
    if all(a.name != wanted for a in stage.iterators):
        reducing = loop.name in stage.loop_names(reduce=True)
        stage.iterators.append(Axis(wanted, stages, reducing, name(loop.name) % stages))
    return wanted


def stage_iterator(loop: Loop) -> str:
    """What the iterator is called that says which place of a pipelined loop's buffers is in use."""
    return f"{loop.name}_stage"
