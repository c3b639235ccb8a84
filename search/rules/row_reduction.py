"""Chains of reductions over rows, such as softmax: one pass of all stages over each row while it is in the cache."""

from __future__ import annotations

from ...dialects.target import Target
from ..sketch import Draft


def chain_rows(draft: Draft, target: Target) -> None:
    """Move all stages of a row under one loop over the rows."""
