"""`double_buffer` on extents: one copy's buffer gets a second half."""

from __future__ import annotations

from ...schedule.double_buffer import DoubleBuffer
from ..nest import Nest
from ..stages import add_stages
from ..steps import Sizes, owner_of


def replay(step: DoubleBuffer, nest: Nest, sizes: Sizes) -> None:
    stage = nest.stage(step.block)
    loop = owner_of(nest, stage.writes[0].buffer)
    assert loop is not None
    add_stages(nest, loop, [stage], 2)
