"""Weights of attention that a block of its own rounds, as the one that divides them rounds others."""

from __future__ import annotations

from contextlib import suppress

from xdsl.dialects import arith

from ...dialects.loop import BlockOp, LoadOp
from ...passes.analysis.weighted_sum import written_for
from ...passes.primitive import ScheduleError
from ...passes.schedule.compute_inline import ComputeInline
from ..sketch.draft import Draft


def with_rounded_weights(draft: Draft, total: str) -> Draft:
    """A copy of a draft in which what the block `total` reads rounded is computed where it is rounded, if anything is.

    `w = e / s; r = f16(w); c = sum(r * v)` -> `r = f16(e / s); c = sum(r * v)`, as `topi.cast(topi.nn.softmax(x),
    "float16")` is of two blocks.
    """
    block = draft.block(total)
    for load in block.loads:
        rounding = written_for(load.buffer, (block,))
        rounded = _rounded(rounding) if rounding is not None else None
        weights = written_for(rounded.buffer, (rounding,)) if rounding is not None and rounded is not None else None
        if weights is not None and not weights.is_reduction:
            grown = draft.copy()
            with suppress(ScheduleError):
                grown.do(ComputeInline, block=weights.block_name)
                return grown
    return draft


def _rounded(block: BlockOp) -> LoadOp | None:
    """Return the load of a block that only rounds what it loads; None for another block."""
    last = block.yielded[0].owner
    source = last.operands[0].owner if isinstance(last, arith.TruncFOp) and not block.is_reduction else None
    return source if isinstance(source, LoadOp) and not source.conditions else None
