"""Copies with another axis as lanes than they read along: a line of a cache at a time, transposed in registers."""

from __future__ import annotations

from math import prod

from ...dialects.loop import ForOp
from ...dialects.target import LINE_BYTES
from ...passes.schedule.split import Split
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Number
from ..structure.strides import WIDEST_STRIDE, accesses, output_bytes
from ._tile_variants import SHORTEST_LINE

TRANSPOSED_BYTES = LINE_BYTES
"""So much of each row of an operand, a line, is laid out at a time, and transposed in registers.

Where rows are powers of two apart they share a few places of the first-level cache, and a vector of lanes would load
all their lines anew for each column (one core of an AMD EPYC, Zen 3; a product of 64 x 1024 with a weight of 1024 rows:
12.8 ms so, 2.5 ms in copies of a line, 1.7 ms in oneDNN). Copies of a line, element by element, took 3.6 ms of the 8.6
of a product of 128 x 768 with 3072 rows on an Emerald Rapids, which transposed takes 5.5 in all, PyTorch 6.3."""


def in_lanes(draft: Draft, panel: str, width: Number | None) -> None:
    """Write what has been laid out in vectors, or line by line."""
    line = _line(draft, panel)
    lanes = draft.loops(panel)[-1]
    draft.do(Split, block=panel, loop=lanes, factors=(0, width))
    if line is not None:
        _copy_lines(draft, panel, *line)
    draft.do(Vectorize, block=panel, loop=f"{lanes}1")


def _line(draft: Draft, panel: str) -> tuple[list[ForOp], int] | None:
    """The loops around a panel's lanes along which its operand is contiguous, for a line of a cache, and its elements.

    None where neighbouring lanes are neighbours in the operand too, or nearly: vectors are loaded there.
    """
    block = draft.block(panel)
    *around, lane = block.enclosing_loops
    reads = [access for access in accesses(block) if not access.is_write]
    across = reads[0].step(lane.loop_name) if len(reads) == 1 else None
    if across is None or abs(across) <= WIDEST_STRIDE:
        return None
    most = TRANSPOSED_BYTES // output_bytes(block)
    steps = {reads[0].step(loop.loop_name): loop for loop in around if loop.size > 1}
    run: list[ForOp] = []
    elements = 1
    while elements < most and elements in steps:
        run.insert(0, steps[elements])
        elements *= steps[elements].size
    return (run, most) if elements >= SHORTEST_LINE else None


def _copy_lines(draft: Draft, panel: str, run: list[ForOp], most: int) -> None:
    """Copy lines of the operand's at a time, one for each lane: the loops that run through them written out."""
    *_, lane, lanes = draft.loops(panel)
    first, *rest = [loop.loop_name for loop in run]
    inner = prod(loop.size for loop in run[1:])
    _, first = draft.split(panel, first, (0, -(-most // inner)))
    draft.order(panel, [lane, first, *rest, lanes])
    for name in (first, *rest):
        draft.do(Unroll, block=panel, loop=name)
