"""Convolutions with a stride as products of matrices on a GPU, whose windows are laid out where tiles are copied."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.multiprocessor import VECTOR
from ...dialects.target import Target
from ...passes.schedule.im2col import Im2col
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor
from ..structure.kinds import Kind, contraction_of
from ._gpu_sliced_products import LEAST_TERMS, MOST_RESULTS
from ._other_ways import OtherWay, Verdict, inline_pads, with_other_ways

FEWEST_FILTERS = 32
"""Filters, at least: rows of the smallest tiles of products. 512x5632 to 16, 5/2, takes 19.5 us as a product and 14.2
directly (an H200), 512x11600 to 8, 9/4, 34.4 and 26.7."""
MOST_COPIES = 2.5
"""Taps that read an element of the data, which is copied for each, fewer than so many. Of 23 convolutions with 0.75 to
2.25 taps (an H200) 19 are faster as products, 1.03 to 1.7 times, of four with 2.5 none, of eight with more two."""
MOST_OF_VOLUMES = 3.5
"""The same of volumes with channels last: of six with 3.4 (3x3x3 by 2, an H200) five take 1 / 1.00 to 1 / 1.29 of the
direct time, one 1 / 0.93."""
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
        return with_other_ways(draft, _as_product)


def _as_product(draft: Draft, anchor: Anchor) -> OtherWay | None:
    results, terms = (prod(a.extent for a in axes) for axes in (anchor.spatial, anchor.reduce))
    products = results * terms
    if products < LEAST_PRODUCTS or terms < LEAST_TERMS or not _has_strided_windows(anchor):
        return None
    is_sure = products >= SURE_PRODUCTS and results <= MOST_RESULTS
    return OtherWay(partial(_write, anchor=anchor), Verdict.ALONE if is_sure else Verdict.BEFORE)


def _has_strided_windows(anchor: Anchor) -> bool:
    """True for a strided convolution of float32, of one group, which laid out copies no element much too often."""
    found = contraction_of(anchor)
    if found is None or found.kind is not Kind.CONVOLUTION or element_bytes(anchor.element) != FLOAT32_BYTES:
        return False
    data = found.a if found.a.slides else found.b
    strides, taps = prod(s.stride for s in data.slides), prod(s.tap.extent for s in data.slides)
    of_row = len(data.slides) == 1 and data.slides[0].place == anchor.spatial[-1]
    channels = [axis for axis in found.terms if axis not in {s.tap for s in data.slides}]
    has_vectors = any(data.steps_along(axis.name) and axis.extent % VECTOR == 0 for axis in channels)
    most = MOST_COPIES * strides if of_row or has_vectors else strides + 1
    if has_vectors and len(data.slides) > 2:
        most = MOST_OF_VOLUMES * strides
    has_filters = anchor.kept_results(data) >= FEWEST_FILTERS
    return strides > 1 and taps < most and has_filters and not found.batch and len(found.terms) > 1


def _write(draft: Draft, anchor: Anchor) -> None:
    """Put what pads the data into the block, and have it compute a product."""
    inline_pads(draft, anchor)
    draft.do(Im2col, block=anchor.block)
    draft.names.append("im2col")
