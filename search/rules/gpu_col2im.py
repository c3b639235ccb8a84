"""Transposed convolutions with a stride as one product on a GPU, where what overlaps is worth it."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.multiprocessor import VECTOR
from ...dialects.target import Target
from ...passes.primitive import ScheduleError
from ...passes.schedule.col2im import Col2im
from ..estimates.col2im_model import Col2imModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor
from ..structure.kinds import Kind, contraction_of
from ._other_ways import OtherWay, Verdict, inline_pads, with_other_ways
from ._winograd import MOST_BYTES


class GpuCol2im(SketchRule):
    """Phases of float32 by one product of all places; each by itself beside it where that is near.

    A phase has zeros for what its window lacks of the largest, and tiles of few filters and pixels. 768 channels of
    75x75 to 96, 3x3 with a stride of 2, take 184 us as a product on an H200, 547 phase by phase, cuDNN 252.
    """

    order: ClassVar[int] = 65

    def when(self, target: Target) -> bool:
        return target.kind == "cuda"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        return with_other_ways(draft, partial(_as_product, target=target))


def _as_product(draft: Draft, anchor: Anchor, target: Target) -> OtherWay | None:
    """A transposed convolution of float32 as a product; None where that is no gain."""
    found = contraction_of(anchor)
    if found is None or found.kind is not Kind.TRANSPOSED or element_bytes(anchor.element) != FLOAT32_BYTES:
        return None
    step, unpadded = Col2im(anchor.block, VECTOR), draft.with_steps(partial(inline_pads, anchor=anchor))
    try:
        sums = step.check(unpadded.module).sums if unpadded is not None else None
    except ScheduleError:
        sums = None
    model = None if sums is None else Col2imModel(target, prod(a.extent for a in sums.axes), *sums.product)
    if model is None or not model.is_offered or model.moved_bytes > MOST_BYTES:
        return None
    write = partial(_write, anchor=anchor, step=step, model=model)
    return OtherWay(write, Verdict.ALONE if model.is_alone else Verdict.BEFORE)


def _write(draft: Draft, anchor: Anchor, step: Col2im, model: Col2imModel) -> None:
    inline_pads(draft, anchor)
    draft.do(Col2im, block=step.block, multiple=step.multiple)
    draft.models.append(model)
    draft.names.append("col2im")
