"""The operand of a tile's rows in panels, as the one of its columns is: each as wide as a register tile has rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy.typing as npt

from ...dialects.attributes import Axis
from ...dialects.buffers import buffer_shape
from ...dialects.element import element_bytes
from ..sketch import arrays as np
from ..sketch.hole import Columns, Derived, Hole, Limit
from ..structure.anchor import Anchor, Operand
from ..structure.kinds import contraction_of
from ._choices import up_to
from ._reduce_steps import divides_badly

FEWEST_PRODUCTS = 1 << 22
"""Multiply-adds from which on both operands may be packed. A choice: below, rows are in the first-level cache, and each
sketch more is one that a search divides its trials among."""
SHARED_BYTES = 8192
"""Rows that are multiples of so many bytes apart share so few sets of the caches that they are packed: one core of an
Emerald Rapids takes 140 to 180 ms for 2048 cubed so, 194 to 212 with one operand packed. Where rows are 4 to 12 KiB
apart the choices for five products took 0.87 to 1.06 times as long as without such candidates, in the mean as long."""
PANEL_ROWS = (1, 2, 4, 8, 12, 16)
"""Rows of a register tile whose operand is packed: so many lines are transposed in registers, by fours or eights."""
MOST_TURNED = 8
"""Rows whose lines are transposed together: vectors of 32 bytes are shuffled on two ports of current x86 cores, those
of 64 on one (Intel Optimization Reference Manual)."""
WHOLE_STEPS = 64
"""Terms up to which a reduction that few steps divide is not padded for it. A choice: its tail is short either way."""
BLOCKS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Steps of a block, each of which may be several that are written out, along a reduce axis that is padded. A choice."""


def row_operand(anchor: Anchor, vector: Sequence[Axis]) -> Operand | None:
    """The operand that does not move along the lanes, where it may pay to be packed too: of products of matrices
    whose rows share sets of the caches, or whose terms divide badly, which panels extend with zeros.

    None where places are those of windows that overlap, which a panel would hold several times. Filters in panels
    beside pixels in others were no faster: 3x3 of 8x512x7x7 24.6 ms for 24.9, of 256x50x50 36 for 38 (Emerald Rapids).
    """
    found = contraction_of(anchor)
    still = [o for o in anchor.operands if not any(a.name in o.axes for a in vector)]
    if found is None or len(still) != 1 or found.a.buffer is found.b.buffer:
        return None
    (operand,) = still
    products = prod(a.extent for a in (*anchor.spatial, *anchor.reduce))
    if not found.reads_plain or not anchor.moved_alone(operand) or anchor.pads or products < FEWEST_PRODUCTS:
        return None
    badly = any(divides_badly(a.extent) for a in anchor.reduce if a.extent > WHOLE_STEPS)
    return operand if badly or _row_bytes(anchor, operand) % SHARED_BYTES == 0 else None


def _row_bytes(anchor: Anchor, operand: Operand) -> int:
    """Bytes from one row of an operand to the next, along its last dimension but one."""
    return buffer_shape(operand.buffer)[-1] * element_bytes(anchor.element)


def panel_rows(extent: int) -> tuple[int, ...]:
    """Choices of the rows of a register tile along an axis of the operand."""
    return up_to(PANEL_ROWS, -(-extent // 4) * 4)


def padded_blocks(extent: int) -> tuple[int, ...]:
    """Choices of the steps of a block, along a reduce axis that is padded to whole steps."""
    return up_to((*BLOCKS, extent), extent)


def covers_padded(extent: int, block: Hole, unroll: Hole) -> Limit:
    """Blocks are no longer than the axis, but for less than one step that is written out."""

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        return np.asarray((c[block.name] - 1) * c[unroll.name] < extent)

    return limit


def turned_rows(name: str, rows: Hole) -> Derived:
    """The rows whose lines are transposed together, which divide those of a panel."""
    return Derived.of(name, lambda c: np.gcd(c[rows.name], MOST_TURNED), (rows,))
