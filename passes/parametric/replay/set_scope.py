"""`set_scope` on extents: a buffer's memory."""

from __future__ import annotations

from ...schedule.set_scope import SetScope
from ..nest import Nest
from ..steps import Sizes, output_of


def replay(step: SetScope, nest: Nest, sizes: Sizes) -> None:
    output_of(nest.stage(step.block), step.buffer).buffer.scope = step.scope
