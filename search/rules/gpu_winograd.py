"""Convolutions of square windows by Winograd's transforms on a GPU, where the multiply-adds saved are worth it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from ...dialects.minimal_filtering import OUTPUTS
from ...dialects.target import Target
from ..estimates.winograd_model import WinogradModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor
from ._other_ways import OtherWay, Verdict, with_other_ways
from ._winograd import transforms_of, write_transforms

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
        def find(draft: Draft, anchor: Anchor) -> OtherWay | None:
            found = transforms_of(draft, anchor, OUTPUTS, target, WinogradModel)
            if found is None:
                return None
            step, layer = found
            verdict = Verdict.ALONE if layer.saved_s > SURE * layer.transforms_s else Verdict.BEHIND
            return OtherWay(partial(write_transforms, step=step, layer=layer), verdict)

        return with_other_ways(draft, find)
