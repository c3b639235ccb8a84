"""Attention on the matrix units of a GPU as one kernel: scores, softmax and weighted sums stay in registers.

A block of threads has a tile of queries, and goes over blocks of keys with a running maximum (Dao et al. 2022). What a
thread holds of the scores is what it needs of the weights, as the two products hold them alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import ClassVar

from ...dialects.intrinsics import Intrinsic, intrinsics
from ...dialects.loop import BlockOp, blocks_in, element_of_buffer
from ...dialects.target import WARP, Target
from ...passes.analysis.joined import MOST_IN_CLUSTER
from ...passes.analysis.matrix_product import holds_as_sums
from ..estimates.attention_model import AttentionModel, GroupAttentionModel
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import find_anchor
from ..structure.attention import AttentionBlocks, find_attention
from ..structure.products import Product, find_products, is_box
from ._choices import dividing
from ._gpu_attention import PANEL, AttentionPlan, write_attention
from ._gpu_joins import ways_to_join
from ._rounded_weights import with_rounded_weights


@dataclass(frozen=True)
class Choices:
    """Keys of a block, warps of a block of threads, and matrices of 16 queries that a warp has.

    With two matrices, each key and value that a warp loads is used twice.
    """

    terms: tuple[int, ...]
    warps: tuple[int, ...]
    tiles: tuple[int, ...]
    usual_warps: int


SINGLE = Choices(terms=(16, 32, 64, 128), warps=(1, 2, 4, 8), tiles=(1, 2), usual_warps=4)
GROUPS = Choices(terms=(64, 128), warps=(4, 8, 12), tiles=(1,), usual_warps=8)
"""Fewer keys would not be worth a wait for their products; registers have no room for more."""
STAGES = (1, 2, 3)
"""Blocks of keys that are there or under way."""
MOST_PARTS = 64
"""Parts of the keys that are loaded one behind the other without a loop, at most."""
BLOCKS_OF_PARTS = 3
"""Blocks of threads for each multiprocessor that keys are divided for without a search. A choice: more hide more
latency, and leave more parts to join."""
USUAL_TERMS = 64
"""Keys of a block without a search."""
RESIDENT = (1, 2, 3, 4)
"""Blocks that registers are to let fit a multiprocessor. Where nothing is said, the assembler of CUDA 13 takes 128 for
4 warps and spills 4 bytes; told of one it takes 151 and none."""


class GpuAttention(SketchRule):
    """Two products of half precision with a softmax between them, where steps divide the elements of keys and values.

    Queries and keys that tiles do not divide are extended to whole ones. Keys of few queries may be divided among
    blocks of threads, whose parts a second kernel joins, or these blocks, which are a cluster.
    """

    order: ClassVar[int] = 55

    def when(self, target: Target) -> bool:
        return target.kind == "cuda" and bool(_intrinsics(target))

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        """By instructions of warps, and by those of warp groups where the target has them."""
        drafts = [draft]
        for name in [block.block_name for block in blocks_in(draft.module) if block.is_reduction]:
            drafts = [grown for each in drafts for grown in _ways(each, name, target)]
        return drafts


def _ways(draft: Draft, name: str, target: Target) -> list[Draft]:
    """The drafts of the attention whose last block is named; the one given where there is none."""
    started = with_rounded_weights(draft, name)
    forms = ((False, False, False), (True, False, False), *((False, True, way) for way in ways_to_join(target)))
    plans = [plan_attention(started, started.block(name), target, *form) for form in forms]
    made = [
        started.with_legal_steps(partial(_write, plan=plan), by_estimate=True) for plan in plans if plan is not None
    ]
    return [grown for grown in made if grown is not None] or [draft]


def _intrinsics(target: Target, in_groups: bool = False) -> list[Intrinsic]:
    """The instructions of warps, or groups, whose results are held as their first factors are, the widest first."""
    found = [x for x in intrinsics(target) if holds_as_sums(x)]
    found = [x for x in found if (x.reads_shared if in_groups else x.is_loaded_as_matrices)]
    return sorted(found, key=lambda x: (-x.n, x.name))


@dataclass(frozen=True)
class _Products:
    """The products of attention: queries with keys, and weights with values."""

    scores: Product
    values: Product

    @property
    def sizes(self) -> tuple[int, int]:
        """Elements of a key, and of a value."""
        return self.scores.depth, self.values.b.extent


def plan_attention(
    draft: Draft,
    block: BlockOp,
    target: Target,
    in_groups: bool = False,
    divided: bool = False,
    clustered: bool = False,
) -> AttentionPlan | None:
    """Plan the attention whose last block is given; None for another block, or where no tiles fit it.

    By instructions of warps, or `in_groups` by those of warp groups, where whole blocks of these divide the keys: to
    extend ragged ones to blocks of 64 or more would cost more than to leave them to warps. Keys may be `divided` where
    queries are one matrix, and its parts be joined by these blocks, `clustered`.
    """
    parts = find_attention(block)
    found = _products(draft, parts, target, in_groups) if parts is not None else None
    if parts is None or found is None:
        return None
    x, name = found.scores.intrinsic, block.block_name
    choices, unit = (GROUPS, PANEL) if in_groups else (SINGLE, x.n)
    bulk = in_groups and is_box(found.scores, found.scores.b) and is_box(found.values, found.values.b)
    terms = _terms(choices.terms, parts.key_extent, unit)
    if not terms or any(n % unit for n in found.sizes):
        return None
    ragged_rows, ragged_keys = bool(parts.row_extent % x.m), bool(parts.key_extent % unit)
    if in_groups and (ragged_keys or parts.row_extent < x.m):
        return None
    shares = _shares(parts, found, target, terms, clustered) if divided else None
    if divided and shares is None:
        return None
    rows_of_warp = x.m * WARP // x.threads
    few = choices.warps if ragged_rows else dividing(choices.warps, parts.row_extent // rows_of_warp)
    warps = Hole.near(f"{name}_warps", few, choices.usual_warps, "threads", name)
    tiles = Hole.near(f"{name}_tiles", choices.tiles, 1, "tile", name)
    of_keys = Hole.near(f"{name}_terms", terms, USUAL_TERMS if shares is None else shares.terms)
    of_parts = None if shares is None else Hole.near(f"{name}_parts", shares.choices, shares.parts, "parts")
    blocks = -(-parts.key_extent // of_keys.default) // (1 if of_parts is None else of_parts.default)
    fills = STAGES[1:] if bulk else STAGES
    stages = Hole.near(f"{name}_stages", fills, min(2, blocks), "stages")
    numbers = warps, tiles
    return AttentionPlan(
        target=target,
        parts=parts,
        scores=found.scores,
        values=found.values,
        warps=warps,
        tiles=tiles,
        terms=of_keys,
        stages=stages,
        resident=Hole(f"{name}_resident", RESIDENT, 1, "threads"),
        rows=Derived.of(f"{name}_rows", lambda c: np.asarray(rows_of_warp * c[warps.name] * c[tiles.name]), numbers),
        bulk=bulk,
        ragged_rows=ragged_rows,
        ragged_keys=ragged_keys,
        divided=of_parts,
        clustered=clustered,
    )


def attention_model(plan: AttentionPlan) -> AttentionModel:
    """Return the model of a plan's candidates."""
    parts, divided = plan.parts, plan.divided
    return (GroupAttentionModel if plan.in_groups else AttentionModel)(
        plan.target,
        plan.scores.intrinsic,
        batch=prod(a.extent for a in plan.scores.batch),
        queries=parts.row_extent,
        keys=parts.key_extent,
        sizes=_Products(plan.scores, plan.values).sizes,
        names=(plan.warps.name, plan.tiles.name, plan.terms.name, plan.stages.name),
        resident=plan.resident.name,
        ragged=(plan.ragged_rows, plan.ragged_keys),
        ends_early=parts.ends_early,
        divided="" if divided is None else divided.name,
        clustered=plan.clustered,
    )


def _shares(
    parts: AttentionBlocks, found: _Products, target: Target, terms: tuple[int, ...], clustered: bool
) -> _Parts | None:
    """The parts that keys may be divided into: for one matrix of queries, all of whose keys are read."""
    if parts.row_extent > found.scores.intrinsic.m or parts.ends_early:
        return None
    usual = _usual_parts(target, terms, parts.key_extent, prod(a.extent for a in found.scores.batch))
    if usual is None:
        return None
    choices = tuple(n for n in usual.choices if not clustered or n <= MOST_IN_CLUSTER)
    return replace(usual, choices=choices) if choices else None


@dataclass(frozen=True)
class _Parts:
    """The numbers of parts that keys may be divided into, and without a search: so many, in blocks of so many keys."""

    choices: tuple[int, ...]
    parts: int
    terms: int


def _usual_parts(target: Target, terms: tuple[int, ...], keys: int, batch: int) -> _Parts | None:
    """Parts of whole blocks of keys, and the usual ones: enough for all multiprocessors; None where there are none."""
    counts = {n: -(-keys // n) for n in terms}
    found = [(p, n) for n, count in counts.items() for p in range(2, MOST_PARTS + 1) if count % p == 0]
    if not found:
        return None
    wanted = max(2, BLOCKS_OF_PARTS * target.cores // batch)
    parts, usual = min(found, key=lambda x: (max(x[0] / wanted, wanted / x[0]), abs(x[1] - USUAL_TERMS)))
    return _Parts(tuple(sorted({p for p, _ in found})), parts, usual)


def _terms(choices: tuple[int, ...], keys: int, columns: int) -> tuple[int, ...]:
    """Keys of a block, whole columns of the instruction: parts of them all, or a little more than that where ragged."""
    if keys % columns == 0:
        return dividing(choices, keys)
    parts = (-(-keys // n) for n in range(1, keys // columns + 2))
    return tuple(sorted({n for part in parts if (n := -(-part // columns) * columns) <= max(choices)}))


def _products(draft: Draft, parts: AttentionBlocks, target: Target, in_groups: bool) -> _Products | None:
    """The two products as one intrinsic multiplies them; None where there is none that does both.

    One of warp groups has as many columns as a value, all of whose elements are neighbours, as those of a key are.
    """
    for x in _intrinsics(target, in_groups):
        scores, values = (_product(draft, name, parts.rows[name], x) for name in (parts.scores, parts.total))
        if scores is None or values is None or scores.a.operand.name != parts.queries:
            continue
        if in_groups and (values.b.extent != x.n or scores.a.turned or scores.b.turned or not values.b.turned):
            continue
        plain = all(len(axes) == 1 for side in (*scores.factors, *values.factors) for axes in (side.rows,))
        kinds = [element_of_buffer(draft.block(n).outputs[0]) for n in (parts.exponential, parts.total)]
        if plain and len(scores.k) == len(values.k) == 1 and kinds == [x.c.type] * 2:
            return _Products(scores, values)
    return None


def _product(draft: Draft, name: str, row: str, intrinsic: Intrinsic) -> Product | None:
    anchor = find_anchor(draft.module, name, row)
    found = find_products(anchor, draft.block(name), [intrinsic]) if anchor is not None else []
    return found[0] if found else None


def _write(draft: Draft, plan: AttentionPlan) -> None:
    model = attention_model(plan)
    draft.limits.append(model.limit)
    write_attention(draft, plan)
    ways = f"{'_split' * (plan.divided is not None)}{'_clustered' * plan.clustered}"
    draft.names.append(f"attention_{plan.scores.name}{ways}")
    draft.models.append(model)
