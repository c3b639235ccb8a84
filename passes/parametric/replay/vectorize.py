"""`vectorize` on extents: a mark."""

from __future__ import annotations

from ...schedule.vectorize import Vectorize
from ..nest import Nest
from ..steps import Sizes


def replay(step: Vectorize, nest: Nest, sizes: Sizes) -> None:
    nest.loop(step.block, step.loop).kind = "vectorized"
