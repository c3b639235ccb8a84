"""Convolutions of 3x3 windows by Winograd's transforms on a CPU, where the multiply-adds they save are worth it."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.target import Target
from ...passes.schedule.winograd import Winograd
from ..estimates.cpu_winograd_model import CpuWinogradModel
from ..estimates.winograd_model import UNTUNED_TILE
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import anchors_in
from ._winograd import by_transforms, layer_of


class CpuWinograd(SketchRule):
    """Convolutions of float32 by transforms of tiles of 2x2 results, where that gains: the direct way has no sketch."""

    order: ClassVar[int] = 60

    def when(self, target: Target) -> bool:
        return target.kind == "llvm"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for anchor in anchors_in(draft.module):
            step = Winograd(anchor.block, UNTUNED_TILE)
            layer = layer_of(step, draft, target, CpuWinogradModel)
            if layer is not None and layer.gains:
                draft = by_transforms(draft, step, layer)
        return [draft]
