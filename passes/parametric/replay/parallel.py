"""`parallel` on extents: a mark."""

from __future__ import annotations

from ...schedule.parallel import Parallel
from ..nest import Nest
from ..steps import Sizes


def replay(step: Parallel, nest: Nest, sizes: Sizes) -> None:
    nest.loop(step.block, step.loop).kind = "parallel"
