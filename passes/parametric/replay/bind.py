"""`bind` on extents: a mark."""

from __future__ import annotations

from ...schedule.bind import Bind
from ..nest import Nest
from ..steps import Sizes


def replay(step: Bind, nest: Nest, sizes: Sizes) -> None:
    nest.loop(step.block, step.loop).kind = step.thread
