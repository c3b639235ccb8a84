"""Convolutions with a stride as products of matrices on a GPU, whose windows are laid out where tiles are copied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.multiprocessor import VECTOR
from ...dialects.target import Target
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.im2col import Im2col
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, anchors_in
from ._gpu_sliced_products import LEAST_TERMS, MOST_RESULTS

FEWEST_FILTERS = 32
"""Filters, at least: rows of the smallest tiles of products. 512x5632 to 16, 5/2, takes 19.5 us as a product and 14.2
directly (an H200), 512x11600 to 8, 9/4, 34.4 and 26.7."""
MOST_COPIES = 2.5
"""Taps that read an element of the data, which is copied for each, fewer than so many. Of 23 convolutions with 0.75 to
2.25 taps (an H200) 19 are faster as products, 1.03 to 1.7 times, of four with 2.5 none, of eight with more two."""
LEAST_PRODUCTS, SURE_PRODUCTS = 10_000_000, 100_000_000
"""Multiply-adds from which on products are offered, as in slices, and from which on they stand alone: 15 of those 23
have more, of which 12 are faster. Two others had vectors of elements apart copied, as none have since."""


class GpuIm2col(SketchRule):
    """Windows of float32 as products; those of few multiply-adds beside tiles of windows as they lie.

    Along one axis neighbouring threads read elements a stride apart otherwise, twice as many from a bank. Products read
    vectors of both factors, and divide their terms among the threads of a block. 192x12968 to 512, 3/2, takes 124 us so
    on an H200, 159 directly, cuDNN 122; 768x12377 to 160, 9/4, 191, 323 and 307. Of images these are windows with
    channels last, whose channels are copied as vectors, and patches, which share no element: 22 drawn ones of the
    former (3x3 and 2x2 with a stride of 2) take 1 / 1.25 of the time in geometric mean, four of them 1.07 to 1.3 times
    as long (40 to 112 filters), seven of the latter with channels first 1 / 1.5. Of twelve others of 3x3 with a stride
    of 2, whose elements are copied one by one, nine took 1.01 to 1.3 times as long by the least estimate.
    """

    order: ClassVar[int] = 66

    def when(self, target: Target) -> bool:
        return target.kind == "cuda"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            results, terms = (prod(a.extent for a in axes) for axes in (anchor.spatial, anchor.reduce))
            products = results * terms
            windows = _windows_of(anchor) if products >= LEAST_PRODUCTS and terms >= LEAST_TERMS else None
            if windows is None or not windows.are_products:
                continue
            grown = [before.with_steps(partial(_write, anchor=anchor)) for before in drafts]
            found = [each for each in grown if each is not None]
            alone = found and products >= SURE_PRODUCTS and results <= MOST_RESULTS
            drafts = found + ([] if alone else drafts)
        return drafts


@dataclass(frozen=True)
class _Windows:
    """Windows by their taps and the elements that they move by, multiplied over all axes that they slide along.

    `last` says that channels lie side by side, in whole vectors.
    """

    taps: int
    strides: int
    filters: int
    last: bool
    of_row: bool

    @property
    def are_products(self) -> bool:
        """True where laying windows out copies no element much too often."""
        copies = MOST_COPIES * self.strides if self.last or self.of_row else self.strides + 1
        return self.strides > 1 and self.taps < copies and self.filters >= FEWEST_FILTERS


def _windows_of(anchor: Anchor) -> _Windows | None:
    """The windows of a convolution of float32, of one group; None for other reductions."""
    if element_bytes(anchor.element) != FLOAT32_BYTES or len(anchor.operands) != 2 or len(anchor.reduce) < 2:
        return None
    reduced = {a.name: a.extent for a in anchor.reduce}
    slid = [
        (o, e) for o in anchor.operands for e in o.indices if reduced.keys() & e.axes() and e.axes() - reduced.keys()
    ]
    if len({operand.name for operand, _ in slid}) != 1:
        return None
    data, taps, strides = slid[0][0], 1, 1
    for _, index in slid:
        moving = index.axes() & {a.name for a in anchor.spatial}
        if len(moving) != 1 or not all(map(index.is_linear_in, moving)):
            return None
        strides *= index.coefficient(*moving)
        taps *= prod(extent for name, extent in reduced.items() if name in index.axes())
    of_row = len(slid) == 1 and anchor.spatial[-1].name in slid[0][1].axes()
    channels = reduced.keys() - set().union(*(e.axes() for _, e in slid))
    last = any(data.steps_along(name) and reduced[name] % VECTOR == 0 for name in channels)
    return _Windows(taps, strides, anchor.kept_results(data), last, of_row)


def _write(draft: Draft, anchor: Anchor) -> None:
    """Put what pads the data into the block, and have it compute a product."""
    for pad in anchor.pads:
        draft.do(ComputeInline, block=pad)
    draft.do(Im2col, block=anchor.block)
    draft.names.append("im2col")
