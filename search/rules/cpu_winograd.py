"""Convolutions of 3x3 windows by Winograd's transforms on a CPU, where the multiply-adds they save are worth it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from ...dialects.target import Target
from ..estimates.cpu_winograd_model import CpuWinogradModel
from ..estimates.winograd_model import UNTUNED_TILE
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor
from ._other_ways import OtherWay, Verdict, with_other_ways
from ._winograd import transforms_of, write_transforms


class CpuWinograd(SketchRule):
    """Convolutions of float32 by transforms of tiles of 2x2 results, where that gains: the direct way has no sketch."""

    order: ClassVar[int] = 60

    def when(self, target: Target) -> bool:
        return target.kind == "llvm"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        def find(draft: Draft, anchor: Anchor) -> OtherWay | None:
            found = transforms_of(draft, anchor, (UNTUNED_TILE,), target, CpuWinogradModel)
            if found is None:
                return None
            step, layer = found
            return OtherWay(partial(write_transforms, step=step, layer=layer), Verdict.ALONE)

        return with_other_ways(draft, find)
