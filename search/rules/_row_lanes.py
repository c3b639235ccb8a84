"""Rows of a product as lanes on a CPU: of factors that are both contiguous along their terms, the shorter is packed."""

from __future__ import annotations

from ...dialects.attributes import Axis
from ...dialects.target import Target
from ..structure.anchor import Anchor
from ..structure.kinds import contraction_of
from ._ahead import may_be_packed_ahead
from ._lanes import lanes_of

FEWEST_TERMS = 9
"""Terms, at least: fewer are unrolled (a choice)."""
FEWEST_ROWS = 11
"""Rows, at least: fewer are dot products. Of 1280 terms to 1000 columns dot products and rows as lanes take 447 and 600
us of 9 rows, 438 and 336 of 11, 535 and 370 of 13, 559 and 342 of 16, 766 and 609 of 24, 863 and 626 of 32 (one core of
an Emerald Rapids that others use)."""
FULL = 0.65
"""Part of the lanes of all vectors that rows fill, at least: the same of 17 rows 610 and 690 us, of 20 571 and 580."""


def rows_as_lanes(anchor: Anchor, target: Target) -> Axis | None:
    """The axis of the rows, of which lanes may be; None where they are not fewer than columns, or fill few vectors.

    Rows are laid out anew, and columns, such as those of weights, are read where they are, once, in lines that follow
    each other. With lanes along columns these are packed: of 64 x 832 with 1216 rows of weights 1352 us, PyTorch 1418,
    so 932; of 128 x 768 with 3072 and gelu 8.0, 9.4 and 5.2 ms (one core of an Emerald Rapids that others use).
    """
    found = contraction_of(anchor)
    if found is None or len(found.terms) != 1 or anchor.pads or found.a.buffer is found.b.buffer:
        return None
    if len(found.rows) != 1 or found.columns != anchor.spatial[-1:]:
        return None
    (rows,), (columns,), (terms,) = found.rows, found.columns, found.terms
    if terms.extent < FEWEST_TERMS or not all(o.is_next_along(terms.name) for o in anchor.operands):
        return None
    extent, lanes = rows.extent, lanes_of(anchor, target)
    if not FEWEST_ROWS <= extent <= columns.extent or extent < FULL * lanes * -(-extent // lanes):
        return None
    return None if may_be_packed_ahead(found.b, (columns.name,)) else rows
