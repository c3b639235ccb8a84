"""What tiling rules share: each anchor of a draft gets one of its structures, every combination a draft of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ...passes.schedule.compute_inline import ComputeInline
from ..anchor import Anchor, anchors_in, find_anchor
from ..sketch import CostEstimate, Draft


class Structure(Protocol):
    """One way to tile an anchor."""

    @property
    def name(self) -> str:
        """Part of the sketch's name."""


StructureT = TypeVar("StructureT", bound=Structure)


def tile_anchors(
    draft: Draft,
    structures: Callable[[Anchor], Sequence[StructureT]],
    write: Callable[[Draft, Anchor, StructureT, int], CostEstimate],
) -> list[Draft]:
    """Tile the anchors of a draft that no rule has settled; several keep one structure each, or they would multiply."""
    drafts = [draft]
    for anchor in anchors_in(draft.module):
        if anchor.block not in draft.settled:
            drafts = [grown for one in drafts for grown in _tiled(one, anchor, structures, write)]
    return drafts


def _tiled(
    draft: Draft,
    anchor: Anchor,
    structures: Callable[[Anchor], Sequence[StructureT]],
    write: Callable[[Draft, Anchor, StructureT, int], CostEstimate],
) -> list[Draft]:
    """The draft with each structure of one anchor, or as it is with its padding inlined where there is none."""
    found = []
    for number, structure in enumerate(structures(anchor)):
        if draft.models and number:
            break
        grown = draft.copy()
        fresh = find_anchor(grown.module, anchor.block)
        if fresh is None:
            continue
        grown.models.append(write(grown, fresh, structure, number))
        grown.names.append(structure.name)
        found.append(grown)
    if not found:
        for pad in anchor.pads:
            draft.do(ComputeInline, block=pad)
    return found or [draft]
