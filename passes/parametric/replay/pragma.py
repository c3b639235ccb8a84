"""`pragma` on extents: notes on a loop."""

from __future__ import annotations

from ...schedule.pragma import Pragma
from ..nest import Nest
from ..steps import Sizes


def replay(step: Pragma, nest: Nest, sizes: Sizes) -> None:
    notes = nest.loop(step.block, step.loop).notes
    if step.auto_unroll_max_step is not None:
        notes["auto_unroll_max_step"] = sizes.of(step.auto_unroll_max_step)
    if step.unroll_explicit is not None:
        notes["unroll_explicit"] = sizes.of(step.unroll_explicit)
