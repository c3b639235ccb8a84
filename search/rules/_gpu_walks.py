"""Factors that the copy engine brings as pixels along the positions of a window: known by a copy, made on trial."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.attributes import Axis
from ...dialects.element import element_bytes
from ...dialects.index import axis
from ...dialects.kernel import walk_problem
from ...dialects.loop import BlockOp, buffer_shape, element_of_buffer, scope_of
from ...passes.analysis.access import is_argument
from ...passes.analysis.walks import find_walk
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.compute_inline import ComputeInline
from ..sketch.draft import Draft
from ..structure.anchor import Anchor
from ..structure.products import Product, is_box, paddings

SOME_PIXELS, SOME_CHANNELS = 64, 8
"""Pixels and channels of a box that is asked about: 16 bytes of halves. Tiles have more of both, within what a box may
have."""

FEWEST_PIXELS = 256
"""Pixels from which on those of a single image may end past it, in whole tiles. A choice: fewer are less than four
tiles of warp groups, and those of 14 x 14 and 7 x 7 pixels by warps take cuDNN's time over 1.26 and 2.5 on an H200."""


@dataclass(frozen=True)
class Walked:
    """A factor that the copy engine brings pixel by pixel; past the last of its `images` it finds zeros."""

    images: bool


def find_walked(draft: Draft, anchor: Anchor, product: Product) -> Walked | None:
    """Say how the copy engine brings `a` as pixels in order, padded or not, and `b` as boxes; None where it does not.

    Pixels that are no multiple of an instruction's rows end past the last image.
    """
    factor, other = product.factors
    in_boxes = is_box(product, factor) and is_argument(factor.operand.buffer)
    if in_boxes or factor.turned or not is_box(product, other) or not is_argument(other.operand.buffer):
        return None
    copy = f"{factor.operand.name}_walked"
    layout = (*(a.name for a in product.batch), _joined(factor.rows), _joined(product.k))

    def write(grown: Draft) -> None:
        grown.do(CacheRead, block=anchor.block, buffer=factor.operand.name, scope="shared", layout=layout, label=copy)
        for pad in anchor.pads:
            grown.do(ComputeInline, block=pad)

    made = draft.with_steps(write)
    found = _walked(made.block(copy), product) if made is not None else None
    is_ragged = bool(paddings(product).keys() & {a.name for a in factor.rows})
    return None if found is None or (is_ragged and not found.images) else found


def _joined(axes: tuple[Axis, ...]) -> str:
    return "*".join(a.name for a in axes)


def _walked(copy: BlockOp, product: Product) -> Walked | None:
    """Say how a copy to `[batch, pixel, step]` walks over an array, whose ends alone it tests; None if it does not."""
    if len(copy.loads) != 1 or copy.conditions:
        return None
    (load,), (*_, pixel, step) = copy.loads, (e.as_axis() for e in copy.write_indices[0])
    found = find_walk(copy, pixel) if pixel is not None and step is not None else None
    if found is None or step is None or scope_of(load.buffer) != "global":
        return None
    shape, size = buffer_shape(load.buffer), element_bytes(element_of_buffer(load.buffer))
    ends = {within for e, n in zip(load.indices.data, shape, strict=True) for within in (e, n - 1 - e)}
    *_, channel = found.place
    run = product.k[-1].extent if len(product.k) > 1 else 0
    if not set(load.conditions) <= ends.union(found.ends) or channel != (axis(step) % run if run else axis(step)):
        return None
    if walk_problem(found.walk, shape, (SOME_PIXELS, SOME_CHANNELS), size, 0) is not None:
        return None
    several = len(product.a.rows) > 1 and pixel in found.place[0].axes()
    alone = shape[0] == 1 and found.place[0].is_constant and product.a.extent >= FEWEST_PIXELS
    return Walked(several or alone)
