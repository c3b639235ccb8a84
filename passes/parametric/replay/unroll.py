"""`unroll` on extents: a mark."""

from __future__ import annotations

from ...schedule.unroll import Unroll
from ..nest import Nest
from ..steps import Sizes


def replay(step: Unroll, nest: Nest, sizes: Sizes) -> None:
    nest.loop(step.block, step.loop).kind = "unrolled"
