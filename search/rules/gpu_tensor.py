"""Products on the matrix units of a GPU: tiles of warps, with operands in swizzled shared memory.

What a product is, is found in any reduction: rows, columns and steps of k are several axes each, so that a convolution
is one without a matrix of its windows in memory. The intrinsic is a value (`dialects/intrinsics.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialects.intrinsics import Intrinsic, intrinsics
from ...dialects.target import Target
from ..estimates.tensor_model import TensorModel
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor
from ..structure.products import Product, find_products
from ._gpu_division import plan_division, write_division
from ._gpu_tensor import write_tensor
from ._gpu_tensor_plan import plan_tensor, tensor_model
from ._structures import tile_anchors


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

        return tile_anchors(draft, structures, write, leaves_others=True)


def _of_warps(target: Target) -> list[Intrinsic]:
    """The intrinsics whose factors are loaded from shared memory by a warp, the largest first."""
    found = [x for x in intrinsics(target) if x.is_loaded_as_matrices]
    return sorted(found, key=lambda x: (-x.m * x.n * x.k, x.name))


def variants(draft: Draft, anchor: Anchor, target: Target) -> list[TensorVariant]:
    """The structures worth searching for an anchor."""
    found = _product(draft, anchor, _of_warps(target))
    return [] if found is None else [TensorVariant(found.intrinsic)]


def _product(draft: Draft, anchor: Anchor, wanted: list[Intrinsic]) -> Product | None:
    return next(iter(find_products(anchor, draft.block(anchor.block), wanted)), None)


def _write(draft: Draft, anchor: Anchor, variant: TensorVariant, target: Target) -> TensorModel:
    division = None
    if variant.split:
        division = plan_division(anchor, False)
        anchor = write_division(draft, division)
    product = _product(draft, anchor, [variant.intrinsic])
    assert product is not None
    plan = plan_tensor(anchor.block, product, target, division)
    write_tensor(draft, plan, anchor)
    model = tensor_model(plan)
    draft.limits.append(model.limit)
    return model
