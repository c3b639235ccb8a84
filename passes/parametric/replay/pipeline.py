"""`pipeline` on extents: the buffers of a loop's copies get a place for each stage."""

from __future__ import annotations

from ...schedule.pipeline import Pipeline
from ..nest import Loop, Nest, Stage
from ..stages import add_stages, is_copy
from ..steps import Sizes, owner_of


def replay(step: Pipeline, nest: Nest, sizes: Sizes) -> None:
    loop = nest.loop(step.block, step.loop)
    add_stages(nest, loop, _copies(nest, loop), sizes.of(step.stages))


def _copies(nest: Nest, loop: Loop) -> list[Stage]:
    """The stages in `loop` that fill a buffer of which each iteration has its own, from one that is there before."""
    below = list(loop.stages())
    found = []
    for stage in below:
        if not is_copy(stage) or owner_of(nest, stage.writes[0].buffer) is not loop:
            continue
        if len(nest.writers(stage.writes[0].buffer)) > 1 or any(
            w in below for w in nest.writers(stage.loads[0].buffer)
        ):
            continue
        found.append(stage)
    return found
