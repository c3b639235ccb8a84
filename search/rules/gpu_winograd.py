"""Convolutions of square windows by Winograd's transforms on a GPU, where the multiply-adds saved are worth it."""

from __future__ import annotations

from typing import ClassVar

from ...dialects.element import element_bytes
from ...dialects.minimal_filtering import OUTPUTS
from ...dialects.target import Target
from ...passes.analysis.argument_marks import is_constant
from ...passes.primitive import ScheduleError
from ...passes.schedule.winograd import Winograd
from ..estimates.winograd_model import ELEMENT_BYTES, WinogradModel
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
    """Convolutions of float32 by transforms that round little more than sums; the direct way stays where it is near."""

    order: ClassVar[int] = 60

    def when(self, target: Target) -> bool:
        return target.kind == "cuda"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            ways = [way for size in OUTPUTS if (way := _way(Winograd(anchor.block, size), draft, target)) is not None]
            if not ways:
                continue
            step, model = max(ways, key=lambda way: way[1].saved_s - way[1].transforms_s)
            grown = [_written(before, step, model) for before in drafts]
            drafts = grown if model.saved_s > SURE * model.transforms_s else [*drafts, *grown]
        return drafts


def _way(step: Winograd, draft: Draft, target: Target) -> tuple[Winograd, WinogradModel] | None:
    """A block by transforms, and its model; None where they do not compute it, round much more, or gain nothing.

    None also for constant filters. A network transforms those of 3x3 ahead, where that pays (`graph.chosen_winograd`),
    and may be asked for none.
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
    images, extent = sizes[window.image], window.extent
    model = WinogradModel(target, plan.matrices, images, pixels, channels, filters, window=extent)
    return (step, model) if model.precise and model.gains and model.moved_bytes <= MOST_BYTES else None


def _written(draft: Draft, step: Winograd, model: WinogradModel) -> Draft:
    grown = draft.copy()
    grown.do(Winograd, block=step.block, tile_size=step.tile_size)
    grown.models.append(model)
    grown.names.append("winograd")
    return grown
