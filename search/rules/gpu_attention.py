"""Attention on the matrix units of a GPU as one kernel: scores, softmax and weighted sums stay in registers.

A block of threads has a tile of queries, and goes over blocks of keys with a running maximum (Dao et al. 2022). What a
thread holds of the scores is what it needs of the weights, as the two products hold them alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from ...dialects.intrinsics import Intrinsic, intrinsics
from ...dialects.loop import BlockOp, blocks_in
from ...dialects.target import Target
from ...passes.analysis.matrix_product import element_of_buffer, holds_as_sums
from ...passes.primitive import ScheduleError
from ..estimates.attention_model import AttentionModel
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import find_anchor
from ..structure.attention import AttentionBlocks, find_attention
from ..structure.products import Product, find_products
from ._gpu_attention import AttentionPlan, write_attention
from ._gpu_factors import dividing
from ._rounded_weights import with_rounded_weights

TERMS = (16, 32, 64, 128)
"""Keys of a block; all of them where they are few."""
WARPS = (1, 2, 4, 8)
"""Warps of a block of threads, each with queries of its own."""
TILES = (1, 2)
"""Matrices of 16 queries that a warp has: with two, each key and value that it loads is used twice."""
STAGES = (1, 2, 3)
"""Blocks of keys that are there or under way."""
RESIDENT = (1, 2, 3, 4)
"""Blocks that registers are to let fit a multiprocessor. Where nothing is said, the assembler of CUDA 13 takes 128 for
4 warps and spills 4 bytes; told of one it takes 151 and none."""


class GpuAttention(SketchRule):
    """Two products of half precision with a softmax between them, where steps divide the elements of keys and values.

    Queries and keys that tiles do not divide are extended to whole ones. Those of few queries are left to the rules of
    their parts.
    """

    order: ClassVar[int] = 55

    def when(self, target: Target) -> bool:
        return target.kind == "cuda" and bool(_intrinsics(target))

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for name in [block.block_name for block in blocks_in(draft.module) if block.is_reduction]:
            started = with_rounded_weights(draft, name)
            if (plan := plan_attention(started, started.block(name), target)) is not None:
                draft = _written(started, plan) or draft
        return [draft]


def _intrinsics(target: Target) -> list[Intrinsic]:
    """The instructions of warps whose results are held as their first factors are, the widest first."""
    found = [x for x in intrinsics(target) if x.is_loaded_as_matrices and holds_as_sums(x)]
    return sorted(found, key=lambda x: (-x.n, x.name))


@dataclass(frozen=True)
class _Products:
    """The products of attention: queries with keys, and weights with values."""

    scores: Product
    values: Product


def plan_attention(draft: Draft, block: BlockOp, target: Target) -> AttentionPlan | None:
    """Plan the attention whose last block is given; None for another block, or where no tiles fit it."""
    parts = find_attention(block)
    found = _products(draft, parts, target) if parts is not None else None
    if parts is None or found is None:
        return None
    x, name = found.scores.intrinsic, block.block_name
    size = (found.scores.depth, found.values.b.extent)
    terms = _terms(parts.key_extent, x.n)
    if any(n % x.n for n in size) or parts.row_extent < x.m or not terms:
        return None
    ragged_rows, ragged_keys = bool(parts.row_extent % x.m), bool(parts.key_extent % x.n)
    warps_of = WARPS if ragged_rows else dividing(WARPS, parts.row_extent // x.m)
    warps = Hole.near(f"{name}_warps", warps_of, 4, "threads", name)
    tiles = Hole.near(f"{name}_tiles", TILES, 1, "tile", name)
    of_keys = Hole.near(f"{name}_terms", terms, 64)
    stages = Hole.near(f"{name}_stages", STAGES, min(2, -(-parts.key_extent // of_keys.default)), "stages")
    resident = Hole(f"{name}_resident", RESIDENT, 1, "threads")
    model = AttentionModel(
        target,
        x,
        batch=prod(a.extent for a in found.scores.batch),
        queries=parts.row_extent,
        keys=parts.key_extent,
        sizes=size,
        names=(warps.name, tiles.name, of_keys.name, stages.name),
        resident=resident.name,
        ragged=(ragged_rows, ragged_keys),
    )
    rows = Derived.of(f"{name}_rows", lambda c: np.asarray(x.m * c[warps.name] * c[tiles.name]), (warps, tiles))
    return AttentionPlan(
        parts,
        found.scores,
        found.values,
        warps,
        tiles,
        of_keys,
        stages,
        resident,
        rows,
        model,
        ragged_rows,
        ragged_keys,
    )


def _terms(keys: int, columns: int) -> tuple[int, ...]:
    """Keys of a block, whole columns of the instruction: parts of them all, or a little more than that where ragged."""
    if keys % columns == 0:
        return dividing(TERMS, keys)
    parts = (-(-keys // n) for n in range(1, keys // columns + 2))
    return tuple(sorted({n for part in parts if (n := -(-part // columns) * columns) <= max(TERMS)}))


def _products(draft: Draft, parts: AttentionBlocks, target: Target) -> _Products | None:
    """The two products as one intrinsic multiplies them; None where there is none that does both."""
    for x in _intrinsics(target):
        scores, values = (_product(draft, name, x) for name in (parts.scores, parts.total))
        if scores is None or values is None or scores.a.operand.name != parts.queries:
            continue
        plain = all(len(axes) == 1 for side in (*scores.factors, *values.factors) for axes in (side.rows,))
        kinds = [element_of_buffer(draft.block(n).outputs[0]) for n in (parts.exponential, parts.total)]
        if plain and len(scores.k) == len(values.k) == 1 and kinds == [x.c.type] * 2:
            return _Products(scores, values)
    return None


def _product(draft: Draft, name: str, intrinsic: Intrinsic) -> Product | None:
    anchor = find_anchor(draft.module, name)
    found = find_products(anchor, draft.block(name), [intrinsic]) if anchor is not None else []
    return found[0] if found else None


def _written(draft: Draft, plan: AttentionPlan) -> Draft | None:
    """A copy of the draft with the steps of a plan; None where a primitive refuses one, or no candidate is legal."""
    grown = draft.copy()
    try:
        write_attention(grown, plan)
    except ScheduleError:
        return None
    grown.names.append(f"attention_{plan.scores.name}")
    grown.models.append(plan.model)
    return grown if grown.choose_defaults() else None
