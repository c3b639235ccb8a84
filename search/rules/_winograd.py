"""A convolution as Winograd's transforms would compute it, and the step that has it computed so."""

from __future__ import annotations

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.target import Target
from ...passes.analysis.argument_marks import is_constant
from ...passes.primitive import ScheduleError
from ...passes.schedule.winograd import Winograd
from ..estimates.winograd_model import WinogradModel
from ..sketch.draft import Draft

MOST_BYTES = 2 << 30
"""Bytes that transforms may move. A choice: what is between their stages takes half of that."""


def layer_of(step: Winograd, draft: Draft, target: Target, model: type[WinogradModel]) -> WinogradModel | None:
    """The model of a block by transforms; None where they do not compute it, round much more, or move too much.

    None also for constant filters. A network transforms those of 3x3 ahead, where that pays (`graph.chosen_winograd`),
    and may be asked for none.
    """
    try:
        plan = step.check(draft.module)
    except ScheduleError:
        return None
    window, sizes = plan.window, plan.window.sizes
    if element_bytes(plan.element) != FLOAT32_BYTES or is_constant(plan.kernel):
        return None
    pixels = (sizes[window.pixel[0]], sizes[window.pixel[1]])
    channels, filters = sizes[window.channel], sizes[window.filter]
    layer = model(target, plan.matrices, sizes[window.image], pixels, channels, filters, window=window.extent)
    return layer if layer.precise and layer.moved_bytes <= MOST_BYTES else None


def by_transforms(draft: Draft, step: Winograd, layer: WinogradModel) -> Draft:
    """A copy of a draft with a block computed by transforms, whose model counts among its estimates."""
    grown = draft.copy()
    grown.do(Winograd, block=step.block, tile_size=step.tile_size)
    grown.models.append(layer)
    grown.names.append("winograd")
    return grown
