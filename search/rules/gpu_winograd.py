"""Convolutions of 3x3 windows by Winograd's transforms on a GPU, where the multiply-adds they save are worth it."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.target import Target
from ...passes.schedule.winograd import Winograd
from ..estimates.winograd_model import UNTUNED_TILE, WinogradModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import anchors_in
from ._winograd import by_transforms, layer_of

SURE = 2.0
"""Times what transforms cost, from which on what they save leaves no doubt, and the direct way is not searched. Of 18
convolutions on an H200 the ten that save as much take 1 / 1.6 to 1 / 2.3 of the direct time, two between 1 and 2 times
1 / 1.1 and 1 / 1.25."""


class GpuWinograd(SketchRule):
    """Convolutions of float32 by transforms of tiles of 2x2 results, beside the direct way where that is near."""

    order: ClassVar[int] = 60

    def when(self, target: Target) -> bool:
        return target.kind == "cuda"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            step = Winograd(anchor.block, UNTUNED_TILE)
            model = layer_of(step, draft, target, WinogradModel)
            if model is None or not model.gains:
                continue
            grown = [by_transforms(before, step, model) for before in drafts]
            drafts = grown if model.saved_s > SURE * model.transforms_s else [*drafts, *grown]
        return drafts
