"""Transposed convolutions with a stride as one product whose results overlap, where that is worth it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.multiprocessor import VECTOR
from ...dialects.target import Target
from ...passes.primitive import ScheduleError
from ...passes.schedule.col2im import Col2im
from ..estimates.col2im_model import Col2imModel
from ..estimates.cpu_col2im_model import CpuCol2imModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor
from ..structure.kinds import Kind, contraction_of
from ._other_ways import OtherWay, Verdict, inline_pads, with_other_ways
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
        return with_other_ways(draft, partial(_as_product, target=target))


def _as_product(draft: Draft, anchor: Anchor, target: Target) -> OtherWay | None:
    """A transposed convolution of float32 as a product; None where that is no gain."""
    found = contraction_of(anchor)
    if found is None or found.kind is not Kind.TRANSPOSED or element_bytes(anchor.element) != FLOAT32_BYTES:
        return None
    unpadded = draft.with_steps(partial(inline_pads, anchor=anchor))
    step = Col2im(anchor.block, VECTOR if target.is_gpu else 1)
    try:
        sums = step.check(unpadded.module).sums if unpadded is not None else None
    except ScheduleError:
        sums = None
    size = 0 if sums is None else prod(a.extent for a in sums.axes)
    model = None if sums is None else MODELS[target.kind](target, size, *sums.product)
    if model is None or not model.is_offered or model.moved_bytes > MOST_BYTES:
        return None
    by_rows = not target.is_gpu and model.columns * model.images >= FEWEST_COLUMNS
    write = partial(_write, anchor=anchor, step=replace(step, by_rows=by_rows), model=model, target=target)
    return OtherWay(write, Verdict.ALONE if model.is_alone else Verdict.BEFORE)


def _write(draft: Draft, anchor: Anchor, step: Col2im, model: Col2imModel, target: Target) -> None:
    inline_pads(draft, anchor)
    draft.do(Col2im, block=step.block, multiple=step.multiple, by_rows=step.by_rows)
    if not target.is_gpu and len(draft.block(step.block).loads) > 1:
        spread(draft, step.block, target)  # along rows: results of several phases would gather what is added up
        draft.settled.add(step.block)
    draft.models.append(model)
    draft.names.append("col2im")
