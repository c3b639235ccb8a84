"""A convolution as Winograd's transforms would compute it, and the step that has it computed so."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.target import Target
from ...passes.analysis.argument_marks import is_constant
from ...passes.primitive import ScheduleError
from ...passes.schedule.winograd import Winograd
from ..estimates.winograd_model import WinogradModel
from ..sketch.draft import Draft
from ..structure.anchor import Anchor
from ..structure.kinds import Kind, contraction_of

MOST_BYTES = 2 << 30
"""Bytes that transforms may move. A choice: what is between their stages takes half of that."""


def transforms_of(
    draft: Draft, anchor: Anchor, sizes: Sequence[int], target: Target, model: type[WinogradModel]
) -> tuple[Winograd, WinogradModel] | None:
    """The step of the tiles that gain most of some sizes, and the model of an anchor by it; None where none gains."""
    found = contraction_of(anchor)
    if found is None or found.kind is not Kind.CONVOLUTION:
        return None
    steps = [Winograd(anchor.block, size) for size in sizes]
    ways = [(step, layer) for step in steps if (layer := _layer_of(step, draft, target, model)) is not None]
    gaining = [way for way in ways if way[1].gains]
    return max(gaining, key=lambda way: way[1].saved_s - way[1].transforms_s, default=None)


def _layer_of(step: Winograd, draft: Draft, target: Target, model: type[WinogradModel]) -> WinogradModel | None:
    """The model of a block by transforms; None where they do not compute it, round much more, or move too much.

    None also for constant filters. A network transforms those of 3x3 ahead, where that pays (`graph.chosen_winograd`),
    and may be asked for none. And for dilated windows on CPUs, where nobody has measured them.
    """
    try:
        plan = step.check(draft.module)
    except ScheduleError:
        return None
    window, sizes = plan.window, plan.window.sizes
    if element_bytes(plan.element) != FLOAT32_BYTES or is_constant(plan.kernel):
        return None
    if set(window.apart) != {1} and target.kind != "cuda":
        return None
    pixels = (sizes[window.pixel[0]], sizes[window.pixel[1]])
    channels, filters = sizes[window.channel], sizes[window.filter]
    layer = model(
        target,
        plan.matrices,
        sizes[window.image],
        pixels,
        channels,
        filters,
        window=window.extent,
        dilation=window.dilation,
        planes=sizes.get(window.planes, 1),
        depth=window.depth,
    )
    return layer if layer.precise and layer.moved_bytes <= MOST_BYTES else None


def write_transforms(draft: Draft, step: Winograd, layer: WinogradModel) -> None:
    """Compute a block by transforms, whose model counts among the draft's estimates."""
    draft.do(Winograd, block=step.block, tile_size=step.tile_size)
    draft.models.append(layer)
    draft.names.append("winograd")
