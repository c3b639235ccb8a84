"""Convolutions along one axis with a stride as products of matrices on a GPU, whose windows are laid out as copied."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.target import Target
from ...passes.schedule.im2col import Im2col
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor
from ..structure.kinds import Kind, contraction_of
from ._other_ways import OtherWay, Verdict, inline_pads, with_other_ways

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
    """Windows of float32 with a stride as products; those of few multiply-adds beside tiles of windows as they lie.

    Neighbouring threads read elements a stride apart there, twice as many from a bank. Products read vectors of both
    factors, and divide their terms among the threads of a block. 192x12968 to 512, 3/2, takes 124 us so on an H200, 159
    directly, cuDNN 122; 768x12377 to 160, 9/4, 191, 323 and 307.
    """

    order: ClassVar[int] = 66

    def when(self, target: Target) -> bool:
        return target.kind == "cuda"

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        return with_other_ways(draft, _as_product)


def _as_product(draft: Draft, anchor: Anchor) -> OtherWay | None:
    products = prod(a.extent for a in (*anchor.spatial, *anchor.reduce))
    if products < LEAST_PRODUCTS or not _is_strided_row(anchor):
        return None
    return OtherWay(partial(_write, anchor=anchor), Verdict.ALONE if products >= SURE_PRODUCTS else Verdict.BEFORE)


def _is_strided_row(anchor: Anchor) -> bool:
    """True for a convolution of float32 along one axis, of one group, of whose elements each is read by few taps."""
    found = contraction_of(anchor)
    if found is None or found.kind is not Kind.CONVOLUTION or element_bytes(anchor.element) != FLOAT32_BYTES:
        return False
    slide = found.slides[0]
    if len(found.slides) != 1 or len(found.terms) != 2 or found.batch or slide.place != anchor.spatial[-1]:
        return False
    filters = anchor.kept_results(found.a if found.a.slides else found.b)
    return slide.stride > 1 and slide.tap.extent < MOST_COPIES * slide.stride and filters >= FEWEST_FILTERS


def _write(draft: Draft, anchor: Anchor) -> None:
    """Put what pads the data into the block, and have it compute a product."""
    inline_pads(draft, anchor)
    draft.do(Im2col, block=anchor.block)
    draft.names.append("im2col")
