"""Convolutions of 3x3 windows by Winograd's transforms on a GPU, where the multiply-adds they save are worth it."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.element import element_bytes
from ...dialects.minimal_filtering import BY_OUTPUT
from ...dialects.target import Target
from ...passes.analysis.argument_marks import is_constant
from ...passes.primitive import ScheduleError
from ...passes.schedule.winograd import Winograd
from ..estimates.winograd_model import ELEMENT_BYTES, UNTUNED_TILE, WinogradModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import anchors_in

SURE = 2.0
"""Times what transforms cost, from which on what they save leaves no doubt, and the direct way is not searched. Of 18
convolutions on an H200 the ten that save as much take 1 / 1.6 to 1 / 2.3 of the direct time, two between 1 and 2 times
1 / 1.1 and 1 / 1.25."""
MOST_BYTES = 2 << 30
"""Bytes that transforms may move. A choice: what is between the kernels takes half of that."""


class GpuWinograd(SketchRule):
    """Convolutions of float32 by transforms of tiles of 2x2 results, beside the direct way where that is near."""

    order: ClassVar[int] = 60

    def when(self, target: Target) -> bool:
        return target.kind == "cuda"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            step = Winograd(anchor.block, UNTUNED_TILE)
            model = _model(step, draft, target)
            if model is None or not model.gains or model.moved_bytes > MOST_BYTES:
                continue
            grown = [_written(before, step, model) for before in drafts]
            drafts = grown if model.saved_s > SURE * model.transforms_s else [*drafts, *grown]
        return drafts


def _model(step: Winograd, draft: Draft, target: Target) -> WinogradModel | None:
    """The model of a block by transforms; None for one that they do not compute, and for constant filters.

    A network transforms these ahead, where that pays (`graph.chosen_winograd`), and may be asked not to.
    """
    try:
        plan = step.check(draft.module)
    except ScheduleError:
        return None
    window, sizes = plan.window, plan.window.sizes
    if element_bytes(plan.element) != ELEMENT_BYTES or is_constant(plan.kernel):
        return None
    pixels = (sizes[window.pixel[0]], sizes[window.pixel[1]])
    channels, filters = sizes[window.channel], sizes[window.filter]
    return WinogradModel(target, BY_OUTPUT[UNTUNED_TILE], sizes[window.image], pixels, channels, filters)


def _written(draft: Draft, step: Winograd, model: WinogradModel) -> Draft:
    grown = draft.copy()
    grown.do(Winograd, block=step.block, tile_size=step.tile_size)
    grown.models.append(model)
    grown.names.append("winograd")
    return grown
