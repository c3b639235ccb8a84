"""Copies side by side whose lanes go across the rows that they read: rows are transposed in registers for them."""

from __future__ import annotations

from collections.abc import Iterable

from ...dialects.loop import BlockOp, ForOp
from ..analysis.copies import is_copy


def turns_rows(loops: Iterable[ForOp], blocks: Iterable[BlockOp]) -> bool:
    """True for one block that copies, in lanes that are not neighbours in what it reads, as copies side by side are.

    The loops are of lanes and copies alone. What transposes rows has to know which lanes are on when it is written, as
    else each is loaded for itself.
    """
    longer = [loop for loop in loops if loop.size > 1]
    if any(loop.loop_kind not in ("vectorized", "unrolled") for loop in longer):
        return False
    kinds = {loop.loop_name: loop.loop_kind for loop in longer if loop.written is None}
    lanes = {name for name, kind in kinds.items() if kind == "vectorized"}
    copies = {name for name, kind in kinds.items() if kind == "unrolled"}
    found = [*blocks]
    if not lanes or not copies or len(found) != 1 or not is_copy(found[0]):
        return False
    (load,) = found[0].loads
    along = load.indices.data[-1].substitute(found[0].bound).axes()
    return lanes.isdisjoint(along) and not copies.isdisjoint(along)
