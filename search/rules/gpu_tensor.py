"""Products on the matrix units of a GPU: tiles of warps, with operands in swizzled shared memory.

What a product is, is found in any reduction: rows, columns and steps of k are several axes each, so that a convolution
is one without a matrix of its windows in memory. The intrinsic is a value (`dialects/intrinsics.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialects.intrinsics import Intrinsic, intrinsics
from ...dialects.target import Target
from ...passes.schedule.pad import Pad
from ..estimates.tensor_model import TensorModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, anchors_in, find_anchor
from ..structure.products import Product, find_products, paddings, waste
from ._gpu_division import plan_division, write_division
from ._gpu_factors import parts_of
from ._gpu_tensor import write_result, write_tensor
from ._gpu_tensor_plan import plan_tensor, tensor_model
from ._gpu_tiles import join_parts
from ._structures import tile_anchors

MOST_WASTE = 4.0
"""Products computed over those asked for, at most. Not measured: matrix units are some eight times as fast as lanes."""
DOUBTED_WASTE = 1.9
"""The same from which on the structures of lanes are searched, too. Not measured."""
FEW = 64
"""Rows and columns of a tile: with fewer tiles than multiprocessors, parts of a reduction may go to others."""
DEEP = 512
"""Steps of k from which on a reduction may be divided. Not measured."""


@dataclass(frozen=True)
class TensorVariant:
    """One structure: an intrinsic, and whether steps of k are divided among blocks."""

    intrinsic: Intrinsic
    split: bool = False

    @property
    def name(self) -> str:
        return f"tensor_{self.intrinsic.name.replace('.', '_')}{'_split' * self.split}"


class GpuTensor(SketchRule):
    """Reductions that are products of matrices of types that the target multiplies as such."""

    order: ClassVar[int] = 290

    def when(self, target: Target) -> bool:
        return target.kind == "cuda" and bool(_of_warps(target))

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        def structures(anchor: Anchor) -> list[TensorVariant]:
            return variants(draft, anchor, target)

        def write(grown: Draft, anchor: Anchor, variant: TensorVariant) -> TensorModel:
            return _write(grown, anchor, variant, target)

        found = tile_anchors(draft, structures, write, leaves_others=True)
        return [*found, draft] if found[0] is not draft and _is_wasteful(draft, target) else found


def _of_warps(target: Target) -> list[Intrinsic]:
    """The intrinsics whose factors a warp loads from shared memory, and does not round, the largest first."""
    found = [x for x in intrinsics(target) if x.is_loaded_as_matrices and not x.rounds]
    return sorted(found, key=lambda x: (-x.m * x.n * x.k, x.name))


def _is_wasteful(draft: Draft, target: Target) -> bool:
    """True where a product is padded so much that lanes may be as fast."""
    found = (_product(draft, anchor, _of_warps(target)) for anchor in _anchors(draft))
    return any(product is not None and waste(product) > DOUBTED_WASTE for product in found)


def _anchors(draft: Draft) -> list[Anchor]:
    return [anchor for anchor in anchors_in(draft.module) if anchor.block not in draft.settled]


def variants(draft: Draft, anchor: Anchor, target: Target) -> list[TensorVariant]:
    """The structures worth searching for an anchor."""
    found = _product(draft, anchor, _of_warps(target))
    if found is None or waste(found) > MOST_WASTE:
        return []
    tiles = prod(-(-side.extent // FEW) for side in found.factors) * prod(a.extent for a in found.batch)
    divided = tiles < target.cores and max(a.extent for a in anchor.reduce) >= DEEP
    plain = TensorVariant(found.intrinsic)
    if not divided or not parts_of(max(a.extent for a in anchor.reduce), False):
        return [plain]
    return [plain, TensorVariant(found.intrinsic, split=True)]


def _product(draft: Draft, anchor: Anchor, wanted: list[Intrinsic]) -> Product | None:
    return next(iter(find_products(anchor, draft.block(anchor.block), wanted)), None)


def _write(draft: Draft, anchor: Anchor, variant: TensorVariant, target: Target) -> TensorModel:
    division = None
    if variant.split:
        division = plan_division(anchor, False)
        anchor = write_division(draft, division)
    out = write_result(draft, anchor, division)
    product = _product(draft, anchor, [variant.intrinsic])
    assert product is not None
    if padded := paddings(product):
        for name, extent in padded.items():
            draft.do(Pad, block=anchor.block, loop=name, factor=extent)
        fresh = find_anchor(draft.module, anchor.block)
        assert fresh is not None
        anchor = fresh
        product = _product(draft, anchor, [variant.intrinsic])
        assert product is not None
    plan = plan_tensor(anchor.block, product, target, division)
    write_tensor(draft, plan, anchor.pads, out)
    if division is not None:
        join_parts(draft, anchor.block, division)
    model = tensor_model(plan)
    draft.limits.append(model.limit)
    return model
