"""`prefetch` on extents: a hint, which changes none of them."""

from __future__ import annotations

from ...schedule.prefetch import Prefetch
from ..nest import Nest
from ..steps import Sizes


def replay(step: Prefetch, nest: Nest, sizes: Sizes) -> None:
    """Nothing that a feature counts."""
