"""Products on the matrix units of a GPU: tiles of warps or warp groups, with operands in swizzled shared memory.

What a product is, is found in any reduction: rows, columns and steps of k are several axes each, so that a convolution
is one without a matrix of its windows in memory. The intrinsic is a value (`dialects/intrinsics.py`): of a warp, which
loads its factors to registers, or of a warp group, which reads them from shared memory by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from ...dialects.intrinsics import Family, Intrinsic, families, intrinsics
from ...dialects.target import Target
from ...passes.primitive import ScheduleError
from ...passes.schedule.pad import Pad
from ...passes.schedule.transform_layout import TransformLayout
from ..estimates.tensor_model import TensorModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, anchor_of, anchors_in
from ..structure.products import Factor, Product, are_boxes, find_products, paddings, waste, wide_columns, wide_steps
from ._ahead import dimension_names, may_be_packed_ahead
from ._aligned_factors import align_factors, are_boxes_when_aligned, may_be_aligned
from ._gpu_division import parts_in_multiples, plan_division, whole_parts, write_division
from ._gpu_factors import parts_of
from ._gpu_joins import ways_to_join
from ._gpu_tensor import join_tensor, write_result, write_tensor, writes_halves
from ._gpu_tensor_plan import Ways, has_whole_panels, is_narrow, plan_tensor, tensor_model
from ._gpu_tiles import join_parts, plan_join
from ._gpu_walks import Walked, find_walked
from ._structures import tile_anchors

MOST_WASTE = 4.0
"""Products computed over those asked for, at most. A choice: matrix units are some eight times as fast as lanes, of
which half is left for what padding costs beside."""
DOUBTED_WASTE = 1.9
"""The same from which on the structures of lanes are searched, too, and none of warp groups. A choice: 13 rows of 16
are below, 8 of 16 above."""
FEW = 64
"""Rows and columns of a tile: with fewer tiles than multiprocessors, parts of a reduction may go to others. A
choice."""
DEEP = 512
"""Steps of k from which on a reduction may be divided. A choice: 32 steps of instructions of 16, of which a part has
some."""
LARGE = 4
"""Tiles of few rows and columns in a large one, of which reductions as many times as deep may be divided, too."""
SHARED_FLOPS = 5e9
"""Operations from which on blocks of clusters may share their factors. Products of 1000 x 1512 x 2056, whose rows lie
across lines of the cache, take 18.5 us on an H200, and 14.8 with what two blocks share; those of 1024, 2.1e9, take 5.8
and 6.2; 102 x 5824 x 3392, 283 x 6720 x 688 and 576 x 752 x 2560, from 2.2e9 to 4.0e9, 14.6, 10.2 and 10.4, and 16.7,
10.9 and 12.1 (the best of some four candidates each)."""
STEPS_OF_BOXES = (1, 2, 4)
"""Steps of the intrinsic in a box of channels: 128 bytes at most, the widest swizzle."""
MOST_CHANNELS = 1.4
"""Channels once they are padded for wider boxes over those that instructions need, at most. A choice: 48 become 64, of
which a third more is multiplied; fills of a single step take longer than estimated (13.3 us on an H200 for 16 images of
19 x 19 pixels, 16 channels to 512 in windows of 5 x 5, where 8.1 were)."""
GROUP_COLUMNS = 64
"""Columns that products of warp groups are padded to multiples of: fewer read shared memory for longer than they
multiply (64 rows and n columns take (64 + n) / 4 cycles to read, n / 2 to multiply)."""


@dataclass(frozen=True)
class TensorVariant:
    """One structure: intrinsics, one of which a candidate names, and which of them stands for all.

    Factors are copied in `bulk` by the copy engine, or by threads; steps of k may be divided among blocks, whose parts
    are added up by a second kernel, or by these blocks, which are `clustered`. Factors that are `shared` go to all
    blocks of a cluster that want them. Rows that are pixels of images may be `walked` over. Factors whose rows
    begin at no multiples of a vector are `aligned` by a kernel before, which copies them to rows that do.
    """

    family: Family
    intrinsic: Intrinsic
    bulk: bool = False
    split: bool = False
    clustered: bool = False
    shared: bool = False
    walked: Walked | None = None
    channels: int = 0
    aligned: bool = False

    @property
    def has_tail(self) -> bool:
        """True where the last tile of rows ends past the last image."""
        return self.walked is not None and self.walked.images and not self.clustered

    @property
    def name(self) -> str:
        marks = {
            "aligned": self.aligned,
            "bulk": self.bulk,
            "shared": self.shared,
            "split": self.split,
            "clustered": self.clustered,
        }
        ways = "".join(f"_{mark}" for mark, is_so in marks.items() if is_so)
        narrow = self.walked is not None and self.intrinsic.n < GROUP_COLUMNS and self.intrinsic.reads_shared
        sizes = f"_n{self.intrinsic.n}" if narrow else ""
        sizes += f"_c{self.channels}" if self.channels else ""
        return f"tensor_{self.family.name.replace('.', '_')}{ways}{sizes}"


class GpuTensor(SketchRule):
    """Reductions that are products of matrices of types that the target multiplies as such."""

    order: ClassVar[int] = 290

    def when(self, target: Target) -> bool:
        return target.kind == "cuda" and bool(_families(target))

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        started = _with_packed(draft, target)

        def structures(anchor: Anchor) -> list[TensorVariant]:
            return variants(started, anchor, target)

        def write(grown: Draft, anchor: Anchor, variant: TensorVariant) -> Iterator[TensorModel]:
            yield _write(grown, anchor, variant, target)

        found = tile_anchors(started, structures, write, leaves_others=True)
        if found[0] is started:
            return [draft]
        return [*found, draft] if _is_wasteful(started, target) else found


def _families(target: Target) -> list[Family]:
    """The intrinsics whose factors are in shared memory, by family."""
    found = (x for x in intrinsics(target) if x.reads_shared or x.is_loaded_as_matrices)
    return families(found)


def _with_packed(draft: Draft, target: Target) -> Draft:
    """The draft, or a copy with constant factors packed ahead so that threads copy neighbours along k together.

    Matrices of types of other than two bytes cannot be turned on the way to registers: with weights (height, width,
    in, out) of bytes each element is copied by itself. Rows that several dimensions number become one, of which the
    copy engine brings tiles: so the weights of joined products, (3, out, in), lie in memory anyway.
    """
    for anchor in _anchors(draft):
        products = _products(draft, anchor, target)
        for factor in products[0][1].factors if products else ():
            if layout := _packed_layout(products[0][1], factor) or _with_rows_as_one(products[0][1], factor):
                draft = _with_layout(draft, anchor.block, factor.operand.name, layout)
    return draft


def _packed_layout(product: Product, factor: Factor) -> tuple[str, ...]:
    """The axes of a constant factor whose neighbours along k are to be made so: those of a batch, rows, and k."""
    names = tuple(a.name for axes in (product.batch, factor.rows, product.k) for a in axes)
    used = tuple(n for n in names if n in factor.operand.axes)
    is_apart = not factor.turned and not factor.operand.steps_along(product.k[-1].name)
    return used if is_apart and may_be_packed_ahead(factor.operand, used) else ()


def _with_rows_as_one(product: Product, factor: Factor) -> tuple[str, ...]:
    """The dimensions of a constant factor, those of its rows as one; none where they are one, or lie apart.

    Of factors that are rounded, which warp groups take from the copy engine alone: in fp16 an H200 takes as long or
    longer for BERT-base and ViT-B/16 so (0.420 and 0.493 ms for 0.420 and 0.493 by one model's choices, 0.414 and 0.491
    for 0.407 and 0.482 by another's).
    """
    if not product.intrinsic.rounds:
        return ()
    rows, names = tuple(a.name for a in factor.rows), tuple(dimension_names(factor.operand))
    if len(rows) < 2 or not may_be_packed_ahead(factor.operand, rows):
        return ()
    start = names.index(rows[0])
    end = start + len(rows)
    return (*names[:start], "*".join(rows), *names[end:]) if names[start:end] == rows else ()


def _with_layout(draft: Draft, block: str, buffer: str, layout: tuple[str, ...]) -> Draft:
    made = draft.with_steps(lambda grown: grown.do(TransformLayout, block=block, buffer=buffer, layout=layout))
    return made or draft


def _is_wasteful(draft: Draft, target: Target) -> bool:
    """True where a product is padded so much that lanes may be as fast."""
    found = (_products(draft, anchor, target) for anchor in _anchors(draft))
    return any(products and waste(products[0][1]) > DOUBTED_WASTE for products in found)


def _anchors(draft: Draft) -> list[Anchor]:
    return [anchor for anchor in anchors_in(draft.module) if anchor.block not in draft.settled]


def variants(draft: Draft, anchor: Anchor, target: Target) -> list[TensorVariant]:
    """The structures worth searching for an anchor: by warps, and by warp groups where the target has them."""
    found = _products(draft, anchor, target)
    by_warps = [each for each in found if not each[1].intrinsic.reads_shared and waste(each[1]) <= MOST_WASTE][:1]
    by_groups = _of_groups(draft, anchor, found)
    wide = [product for _, product in by_groups if not is_narrow(product)]
    if any(_tiles(product) >= target.cores and find_walked(draft, anchor, product) for product in wide):
        by_warps = []  # their best take 1.6 to 2.5 times as long in nine convolutions of batch 16 and 128 on an H100
    apart = [
        TensorVariant(family, product.intrinsic, bulk, split, clustered, walked=walked, channels=channels)
        for family, product in (*by_warps, *by_groups)
        for split, clustered in ((False, False), *((True, each) for each in ways_to_join(target)))
        if not split or _may_be_divided(anchor, product, target)
        for bulk, walked in [_way_to_copy(draft, anchor, product, split)]
        if waste(product) < DOUBTED_WASTE
        or not product.intrinsic.reads_shared
        or (walked is not None and not clustered)
        if bulk or not (product.intrinsic.rounds and product.intrinsic.reads_shared)  # the copy engine rounds alone
        for channels in (_channels(product) if walked is not None and not split else (0,))
    ]
    apart += _aligned_too(anchor, apart, {family.name: product for family, product in (*by_warps, *by_groups)})
    large = any(2 * p.a.extent * p.b.extent * p.depth > SHARED_FLOPS for _, p in by_groups)
    return [*apart, *(replace(one, shared=True) for one in apart if _may_share(one) and large)]


def _of_groups(draft: Draft, anchor: Anchor, found: Sequence[tuple[Family, Product]]) -> list[tuple[Family, Product]]:
    """The least padded product by warp groups; of narrow instructions where no other fits, and pixels are walked."""
    fit = [each for each in found if each[1].intrinsic.reads_shared and _fits(draft, anchor, each[1])]
    wide = [each for each in fit if not is_narrow(each[1])]
    return (wide or [each for each in fit if find_walked(draft, anchor, each[1])])[:1]


def _channels(product: Product) -> tuple[int, ...]:
    """Extents that channels may be padded to, for boxes of several steps where one divides them; 0 for as they are."""
    extent, step = product.k[-1].extent, product.intrinsic.k
    if len(product.k) == 1 or extent % (2 * step) == 0:
        return (0,)
    found = {-(-extent // (step * n)) * step * n: None for n in STEPS_OF_BOXES}
    fewest = min(found)
    return tuple(0 if n == extent else n for n in found if n <= MOST_CHANNELS * fewest)


def _aligned_too(anchor: Anchor, found: list[TensorVariant], products: dict[str, Product]) -> list[TensorVariant]:
    """The same structures with factors that are copied to whole vectors before, where some are not."""
    return [
        replace(one, aligned=True, bulk=one.intrinsic.reads_shared and are_boxes_when_aligned(product))
        for one in found
        for product in [products[one.family.name]]
        if not one.bulk and not anchor.pads and may_be_aligned(product)
    ]


def _may_share(one: TensorVariant) -> bool:
    """True where boxes are worth sharing in clusters, which wait for each other; pixels that are walked over are not.

    On an H100 the best of 16 candidates that share are slower than the best others in each of 8 convolutions of batch
    16 and 128, by 1 to 87%.
    """
    return one.bulk and not one.split and one.walked is None


def _fits(draft: Draft, anchor: Anchor, product: Product) -> bool:
    """True where warp groups compute little beside what is asked for: rows of several images may end past the last."""
    if waste(product) < DOUBTED_WASTE:
        return True
    walked = find_walked(draft, anchor, product) if waste(product, tail=True) < DOUBTED_WASTE else None
    return walked is not None and walked.images


def _way_to_copy(draft: Draft, anchor: Anchor, product: Product, split: bool) -> tuple[bool, Walked | None]:
    """True where the copy engine brings the factors, and how it walks over pixels if it does.

    It runs ahead, so that there must be several fills. It writes zeros behind the end of an array, and not behind that
    of a part of it: parts must be whole steps.
    """
    x = product.intrinsic
    has_parts = parts_in_multiples(anchor, x.k) or whole_parts(anchor, x.k)
    if not x.reads_shared or product.depth < 2 * x.k or (split and not has_parts):
        return False, None
    if not anchor.pads and are_boxes(product):
        return True, None
    walked = find_walked(draft, anchor, product)
    return walked is not None, walked


def _tiles(product: Product) -> int:
    """Tiles of few rows and columns."""
    return prod(-(-side.extent // FEW) for side in product.factors) * prod(a.extent for a in product.batch)


def _may_be_divided(anchor: Anchor, product: Product, target: Target) -> bool:
    """True where there are too few tiles for a device, and enough steps of k."""
    longest, tiles = max(a.extent for a in anchor.reduce), _tiles(product)
    few = tiles < target.cores or (tiles < LARGE * target.cores and longest >= LARGE * DEEP)
    return few and longest >= DEEP and bool(parts_of(longest, False))


def _products(draft: Draft, anchor: Anchor, target: Target) -> list[tuple[Family, Product]]:
    """The products that an anchor is, with the intrinsics that multiply so, the least padded first."""
    wanted = {member: family for family in _families(target) for member in _standing_for(family)}
    largest = sorted(wanted, key=lambda x: (-x.m * x.n * x.k, x.name))
    found = find_products(anchor, draft.block(anchor.block), largest)
    return [(wanted[x.intrinsic], x) for x in found if has_whole_panels(x, x.intrinsic.n)]


def _standing_for(family: Family) -> list[Intrinsic]:
    """The members that a product may be padded for: of columns to choose from, few."""
    narrow = [x for x in family.members if x.n <= GROUP_COLUMNS]
    return narrow if len(family.members) > 1 and narrow else [family.widest]


def _product(draft: Draft, anchor: Anchor, variant: TensorVariant) -> Product:
    (found,) = find_products(anchor, draft.block(anchor.block), [variant.intrinsic])
    return found


def _write(draft: Draft, anchor: Anchor, variant: TensorVariant, target: Target) -> TensorModel:
    division, ragged = None, _is_ragged(draft, anchor, variant, target)
    if variant.split:
        multiple, whole = variant.intrinsic.k if variant.bulk else 1, whole_parts(anchor, variant.intrinsic.k)
        if whole is not None:
            draft.do(Pad, block=anchor.block, loop=anchor.reduce[0].name, factor=whole.extent)
            anchor, multiple = anchor_of(draft.module, anchor.block), whole.multiple
        division = plan_division(anchor, False, multiple, clustered=variant.clustered)
        anchor = write_division(draft, division)
    out = write_result(draft, anchor, division)
    product = _product(draft, anchor, variant)
    asked = product.a.extent, product.b.extent
    steps = {} if variant.split else wide_steps(product)  # the copy engine writes no zeros behind the end of a part
    rows = {a.name for a in product.a.rows} if variant.has_tail else set()
    if variant.walked is not None and not variant.split and len(product.k) > 1:
        rows |= {a.name for a in product.k}
        steps = {product.k[-1].name: variant.channels} if variant.channels else {}
    wide = {name: n for name, n in (paddings(product) | wide_columns(product)).items() if name not in rows}
    if padded := wide | steps:
        for name, extent in padded.items():
            draft.do(Pad, block=anchor.block, loop=name, factor=extent)
        anchor = anchor_of(draft.module, anchor.block)
        product = _product(draft, anchor, variant)
    pads, copied_bytes = anchor.pads, 0
    if variant.aligned:
        copied_bytes = align_factors(draft, anchor.block, product)
        anchor = anchor_of(draft.module, anchor.block)
        product = _product(draft, anchor, variant)
    in_halves = writes_halves(draft, anchor.block, product, out)
    ways = Ways(variant.bulk, variant.shared, variant.walked is not None, variant.has_tail)
    plan = plan_tensor(anchor.block, product, variant.family, ways, target, division, in_halves)
    write_tensor(draft, plan, pads, out)
    model = replace(tensor_model(plan), copied_bytes=copied_bytes)
    if division is not None and division.clustered:
        model = replace(model, join=join_tensor(draft, plan, division).name)
    elif division is not None:
        join_parts(draft, division, plan_join(draft, anchor.block, division))
    if variant.shared:
        model = replace(model, beyond=_beyond(product, asked))
    draft.sure += model.is_sure or ragged
    draft.limits.append(model.limit)
    return model


def _is_ragged(draft: Draft, anchor: Anchor, variant: TensorVariant, target: Target) -> bool:
    """True for products of which some structures are of factors that are copied before, or of padded parts.

    Their estimates count what the cost model that ships has seen none of. Of 20 such products (an H200), some 24
    candidates each, it picks those of 1.15 times the fastest one's time, the estimates those of 1.10.
    """
    product = _product(draft, anchor, variant)
    divided = _may_be_divided(anchor, product, target) and whole_parts(anchor, variant.intrinsic.k) is not None
    return not anchor.pads and (divided or may_be_aligned(product))


def _beyond(product: Product, asked: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns that padding adds; ScheduleError where tiles within may be of nothing else.

    Each block of a cluster must compute something: one that is left out would not wait for the others.
    """
    a, b = (factor.extent - extent for factor, extent in zip(product.factors, asked, strict=True))
    if any(added and len(f.rows) > 1 for added, f in zip((a, b), product.factors, strict=True)):
        raise ScheduleError(None, "blocks of a cluster may have tiles of what was padded alone")
    return a, b
