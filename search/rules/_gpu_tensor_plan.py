"""Plan of a product on matrix units: the numbers of its tiles, and what is copied how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ...dialects.target import Target
from ..estimates.tensor_model import TensorModel
from ..sketch.hole import Derived, Hole
from ..structure.products import Factor, Product
from ._gpu_division import Division

WARPS = (1, 2, 4, 8)
"""Warps of a block along an axis."""
TILES = (1, 2, 3, 4, 5, 6, 7, 8)
"""Matrices of the intrinsic that a warp computes along an axis; images of networks are often multiples of 7."""
FILLS = (1, 2, 4, 8)
"""Steps of the intrinsic between two fills of shared memory: 32 bytes of k each."""
STAGES = (1, 2, 3, 4, 5, 6)
"""Fills of shared memory that are there or under way; 1 is no pipeline."""
GROUPS = (1, 2, 4, 8)
"""Rows of tiles that neighbouring blocks of threads take together: they read the same columns from the cache."""

USUAL_WARPS = 2
USUAL_TILES = 4
USUAL_STEPS = 4
USUAL_STAGES = 3
"""Without a search: 128 x 128 x 128 bytes, the best of six tiles for products of 4096 on an H200."""


@dataclass(frozen=True)
class SidePlan:
    """A side of the product: its factor, the rows of which are so many warps of so many matrices."""

    factor: Factor
    fused: str
    warps: Hole
    tiles: Hole

    @property
    def copy(self) -> str:
        """The block that copies, and its buffer."""
        return f"{self.factor.operand.name}_shared"

    def layout(self, product: Product) -> tuple[str, ...]:
        """The axes of the copy: those of a batch, then rows and steps of k, the contiguous one last."""
        rows, steps = ("*".join(a.name for a in axes) for axes in (self.factor.rows, product.k))
        batch = [a.name for a in product.batch]
        return (*batch, *((steps, rows) if self.factor.turned else (rows, steps)))


@dataclass(frozen=True)
class TensorPlan:
    """A product in tiles of warps: `sides` are those of `a` and of `b`, `warps` all of a block."""

    block: str
    product: Product
    target: Target
    division: Division | None
    sides: tuple[SidePlan, SidePlan]
    steps: Hole
    stages: Hole
    group: Hole
    warps: Derived

    def numbers(self) -> Iterator[Hole | Derived]:
        """Return the holes and derived numbers in the order they have in a sketch."""
        for side in reversed(self.sides):
            yield from (side.tiles, side.warps)
        yield from (self.steps, self.stages, self.group, self.warps)


def plan_tensor(block: str, product: Product, target: Target, division: Division | None) -> TensorPlan:
    """Plan the tiles of a product of matrices."""
    x = product.intrinsic
    sides = (_side(block, "i", product.a, x.m), _side(block, "j", product.b, x.n))
    steps = Hole.near(f"{block}_k_steps", _dividing(FILLS, product.depth // x.k), USUAL_STEPS, "tile", f"{block}_k")
    fills = product.depth // (x.k * steps.default)
    stages = Hole.near(f"{block}_stages", STAGES, min(USUAL_STAGES, fills), "stages")
    group = Hole.near(f"{block}_group", GROUPS, 1, "tile")
    holes = [side.warps for side in sides]
    warps = Derived.of(f"{block}_warps", lambda c: np.asarray(prod(c[h.name] for h in holes)), holes)
    return TensorPlan(block, product, target, division, sides, steps, stages, group, warps)


def _side(block: str, axis: str, factor: Factor, extent: int) -> SidePlan:
    count, label = factor.extent // extent, f"{block}_{axis}"
    tiles = Hole.near(f"{label}_tiles", _dividing(TILES, count), USUAL_TILES, "tile", label)
    warps = Hole.near(f"{label}_warps", _dividing(WARPS, count // tiles.default), USUAL_WARPS, "threads", label)
    return SidePlan(factor, "_".join(a.name for a in factor.rows), _all(warps, count), tiles)


def _all(warps: Hole, count: int) -> Hole:
    """The hole with all choices that divide a number, at the default it has."""
    return Hole(warps.name, _dividing(WARPS, count), warps.default, warps.kind, warps.axis)


def _dividing(choices: tuple[int, ...], count: int) -> tuple[int, ...]:
    return tuple(n for n in choices if count % n == 0)


def tensor_model(plan: TensorPlan) -> TensorModel:
    """Return the model of a plan's candidates."""
    (a, b), product = plan.sides, plan.product
    part = plan.division.part if plan.division is not None else ""
    return TensorModel(
        target=plan.target,
        intrinsic=product.intrinsic,
        batch=prod(x.extent for x in product.batch if x.name != part),
        rows=(product.a.extent, product.b.extent),
        depth=product.depth,
        vectors=(product.a.vector, product.b.vector),
        warps=(a.warps.name, b.warps.name),
        tiles=(a.tiles.name, b.tiles.name),
        steps=plan.steps.name,
        stages=plan.stages.name,
        group=plan.group.name,
        split=plan.division.parts.name if plan.division is not None else "",
    )
