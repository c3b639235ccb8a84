"""Convolutions of square windows by Winograd's transforms on a GPU, where the multiply-adds saved are worth it."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.minimal_filtering import OUTPUTS
from ...dialects.target import Target
from ...passes.schedule.winograd import Winograd
from ..estimates.winograd_model import WinogradModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import anchors_in
from ._winograd import by_transforms, layer_of

SURE = 2.0
"""Times what transforms cost, from which on what they save leaves no doubt, and the direct way is not searched. Of 18
convolutions on an H200 the ten that save as much take 1 / 1.6 to 1 / 2.3 of the direct time, two between 1 and 2 times
1 / 1.1 and 1 / 1.25."""


class GpuWinograd(SketchRule):
    """Convolutions of float32 by transforms that round little more than sums; the direct way stays where it is near."""

    order: ClassVar[int] = 60

    def when(self, target: Target) -> bool:
        return target.kind == "cuda"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            steps = [Winograd(anchor.block, size) for size in OUTPUTS]
            ways = [(step, layer_of(step, draft, target, WinogradModel)) for step in steps]
            gaining = [(step, layer) for step, layer in ways if layer is not None and layer.gains]
            if not gaining:
                continue
            step, layer = max(gaining, key=lambda way: way[1].saved_s - way[1].transforms_s)
            grown = [by_transforms(before, step, layer) for before in drafts]
            drafts = grown if layer.saved_s > SURE * layer.transforms_s else [*drafts, *grown]
        return drafts
