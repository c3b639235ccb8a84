"""Transposed convolutions with a stride as one product whose results overlap, where that is worth it."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.multiprocessor import VECTOR
from ...dialects.target import Target
from ...passes.primitive import ScheduleError
from ...passes.schedule.col2im import Col2im
from ...passes.schedule.compute_inline import ComputeInline
from ..estimates.col2im_model import Col2imModel
from ..estimates.cpu_col2im_model import CpuCol2imModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, anchors_in
from ._winograd import MOST_BYTES
from .injective import spread

MODELS: dict[str, type[Col2imModel]] = {"cuda": Col2imModel, "llvm": CpuCol2imModel}
"""The model of both ways by the kind of target."""

FEWEST_COLUMNS = 256
"""Places of the data from which on a CPU's terms of a row of the kernel are laid out side by side: else each step reads
a line of another page. 160 channels of 64x64 to 64, 4x4/2, take 5.5 ms so and 8.1, of 13x13 as long either way, and
384 of 5x5 to 768 0.9 ms for 0.4 (one core of a Zen 5)."""


class TapProducts(SketchRule):
    """Phases of float32 by one product of all places; each by itself beside it where that is near.

    A phase has zeros for what its window lacks of the largest, and tiles of few filters and pixels. 768 channels of
    75x75 to 96, 3x3 with a stride of 2, take 184 us as a product on an H200, 547 phase by phase, cuDNN 252; 384 of
    56x56 to 24, 4x4/2, 4.3 and 10.9 ms on a core of a Zen 5, oneDNN 5.3.
    """

    order: ClassVar[int] = 65

    def when(self, target: Target) -> bool:
        return target.kind in MODELS

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            grown = [_by_product(before, anchor, target) for before in drafts]
            found = [each for each in grown if each is not None]
            if found:
                drafts = [each for each, _ in found] + ([] if found[0][1].is_alone else drafts)
        return drafts


def _by_product(draft: Draft, anchor: Anchor, target: Target) -> tuple[Draft, Col2imModel] | None:
    """A copy of a draft with an anchor as a product, and the model of both; None where that is no gain."""
    if element_bytes(anchor.element) != FLOAT32_BYTES or len(anchor.spatial) < 3:
        return None
    grown = draft.copy()
    try:
        for pad in anchor.pads:
            grown.do(ComputeInline, block=pad)
        step = Col2im(anchor.block, VECTOR if target.is_gpu else 1)
        sums = step.check(grown.module).sums
    except ScheduleError:
        return None
    results = {axis.name for axis in anchor.spatial}
    phased = any(e.as_axis() is None and not results.isdisjoint(e.axes()) for e in sums.kernel.indices)
    rows, columns, terms, images = sums.product
    model = MODELS[target.kind](target, prod(a.extent for a in sums.axes), rows, columns, terms, images)
    if not phased or not model.is_offered or model.moved_bytes > MOST_BYTES:
        return None  # a kernel that is read at axes of the results alone has no phases: a product as it is
    by_rows = not target.is_gpu and columns * images >= FEWEST_COLUMNS
    grown.do(Col2im, block=step.block, multiple=step.multiple, by_rows=by_rows)
    if not target.is_gpu and len(grown.block(step.block).loads) > 1:
        spread(grown, step.block, target)  # along rows: results of several phases would gather what is added up
        grown.settled.add(step.block)
    grown.models.append(model)
    grown.names.append("col2im")
    return grown, model
