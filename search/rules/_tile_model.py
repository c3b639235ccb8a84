"""The model of a reduction tiled on a CPU, of its plan: which holes are of which axis, and what tiles touch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import prod

from ...dialects.buffers import buffer_shape
from ...dialects.element import element_bytes
from ...dialects.strides import row_major
from ..estimates import cache_traffic as traffic
from ..estimates.product_model import ProductModel
from ..estimates.tile_model import ACROSS_PACK_CYCLES, APART_PACK_CYCLES, PACK_CYCLES, TileModel
from ..estimates.tile_shape import ReduceAxis, TiledAxis
from ..structure.anchor import Operand
from ..structure.strides import WIDEST_STRIDE
from ._row_panel import row_operand
from ._tile_plan import TilePlan
from ._tile_variants import SHORTEST_LINE, elements_in_a_row, is_product

_ONE_PLACE: tuple[tuple[tuple[str, int], ...], ...] = ((),)
"""The dimensions of an operand of rank 0: one, along which no axis moves."""


def tile_model(plan: TilePlan, copied: float = 0.0) -> TileModel:
    """Return the model of a plan's candidates, before whose tiles copies take so many cycles of one core."""
    vector = plan.variant.vector
    extents = {a.name: a.extent for a in (*plan.anchor.spatial, *plan.anchor.reduce)}
    panels = [*plan.in_panels, *([plan.still] if plan.still is not None else [])]
    packed = sum(prod(extents[n] for n in o.axes) for o in panels) if plan.variant.panel == "root" else 0
    in_vectors = all(
        operand.steps_along(vector[-1].name)
        or elements_in_a_row(operand, plan.anchor.reduce) >= SHORTEST_LINE
        or _is_shuffled(plan, operand)
        for operand in plan.in_panels
    )
    is_of_product = is_product(plan.anchor, plan.target)
    of_product = partial(ProductModel, at_once=plan.variant.at_once)
    kind = of_product if is_of_product else TileModel
    return kind(
        target=plan.target,
        outer=tuple((a.name, a.extent) for a in plan.outer),
        rows=tuple(TiledAxis(t.axis.name, t.axis.extent, t.middle.name, t.inner.name) for t in plan.rows),
        vector=TiledAxis(vector[-1].name, prod(a.extent for a in vector), plan.vector_middle.name, plan.vectors.name),
        lanes=plan.lanes.name,
        fewest_lanes=min(plan.lanes.choices),
        reduce=tuple(
            ReduceAxis(t.axis.name, t.axis.extent, t.block.name if t.block is not None else "", t.unroll.name)
            for t in plan.reduce
        ),
        element_bytes=element_bytes(plan.anchor.element),
        panel=plan.variant.panel,
        operands=tuple(_touched(plan, operand) for operand in plan.anchor.operands),
        result=_touched_together(plan, [a.name for a in plan.anchor.spatial]),
        padded_inline=plan.variant.inline_pads,
        pack_cycles=_pack_cycles(plan) if in_vectors else _pack_cycles_apart(plan),
        packed=packed,
        turning=plan.turning,
        copied=copied,
        panels=tuple(place for place, o in enumerate(plan.anchor.operands) if o in _packed_in_tiles(plan)),
        pixels=next((n for n, o in enumerate(plan.anchor.operands) if o is plan.pixels), None),
        whole=frozenset(plan.padded),
        asks_sets=row_operand(plan.anchor, vector) is not None,
        windows=plan.variant.parted,
        sure=plan.is_sure or plan.variant.turns_pixels,
        turned=plan.stored_lanes is not None,
        asked=plan.ahead is not None,
        streamed=plan.is_streamed,
        vector_first=plan.filters_first and (plan.variant.panels_asked or is_of_product),
        panels_asked=plan.variant.panels_asked,
        blocks_asked=tuple(n for n, o in enumerate(plan.anchor.operands) if plan.asks_blocks and o in plan.moving),
    )


def _pack_cycles(plan: TilePlan) -> float:
    """Cycles to lay out an element of what is packed in vectors, whose lanes may go on in the next row of pixels."""
    across = len(plan.variant.vector) > 1 and not all(_is_one_line(plan, operand) for operand in plan.in_panels)
    return ACROSS_PACK_CYCLES if across else PACK_CYCLES


def _pack_cycles_apart(plan: TilePlan) -> float:
    """The same where neither neighbouring lanes nor terms are neighbours: more where lanes go on in the next row, too.

    On one core lanes a few elements apart in one row are taken for single elements, too (see `_is_shuffled`), and take
    0.7 cycles each; those that go on in the next row are, and take 5.3 (96x16x21x21 to 8, 3x1x1/2, a core of a Zen 5),
    so that they were chosen where both were estimated alike. With this eight of all strided ones of 16 drawn lists are
    scheduled otherwise, and take 1 / 1.50 of the time in the mean, 1 / 0.87 to 1 / 2.53.
    """
    across = len(plan.variant.vector) > 1 and plan.target.cores == 1
    return APART_PACK_CYCLES + ACROSS_PACK_CYCLES * across


def _is_one_line(plan: TilePlan, operand: Operand) -> bool:
    """True where the rows that become lanes together lie one after the other, with nothing between them."""
    shape, axes = buffer_shape(operand.buffer), plan.variant.vector
    sized = {axis.name for axis in (*plan.anchor.spatial, *plan.anchor.reduce)}
    last = list(zip(shape, operand.indices, strict=True))[-len(axes) :]
    plain = all(
        e.axes() & sized == {a.name} and e.coefficient(a.name) == 1 for a, (_, e) in zip(axes, last, strict=True)
    )
    return plain and all(axis.extent == size for axis, (size, _) in zip(axes[1:], last[1:], strict=True))


def _is_shuffled(plan: TilePlan, operand: Operand) -> bool:
    """True where lanes are a few elements apart, as strided pixels are: vectors are loaded and shuffled.

    The model that ships, for one core, was trained on estimates that take them for single elements, and corrects these.
    On several threads there is none. With this 7 of 90 convolutions are scheduled otherwise for two threads, and take
    1 / 2.2 of the time in the mean, run on one (an Emerald Rapids): depthwise 672x14x14 5x5/2 0.45 ms for 3.5,
    96x112x112 3x3/2 1.7 for 8.1, the stem of YOLO 1.2 for 3.8; that of Inception 1.07 for 1.0, wav2vec 23.6 for 22.4.
    """
    lane = plan.variant.vector[-1].name
    near = 1 < operand.indices[-1].coefficient(lane) <= WIDEST_STRIDE and len(plan.variant.vector) == 1
    return near and plan.target.cores > 1


def _packed_in_tiles(plan: TilePlan) -> tuple[Operand, ...]:
    """The operands that each tile packs for itself."""
    inner = plan.in_panels if plan.variant.panel == "inner" else ()
    return (*inner, plan.still) if plan.still is not None and plan.variant.panel != "root" else inner


def _touched(plan: TilePlan, operand: Operand) -> traffic.Operand:
    """Return what the tiles touch of an operand; as it is packed, an element for each point of its axes."""
    lanes = set(plan.variant.axes)
    linear = all(e.is_linear_in(n) for e in operand.indices for n in e.axes())
    is_packed = (operand.name in plan.packed and plan.variant.panel != "direct") or operand is plan.still
    if operand is plan.pixels:
        return _touched_in_place(plan, operand, is_packed=True)
    if is_packed or not linear or (len(lanes) > 1 and lanes & set(operand.axes)):
        return _touched_together(plan, operand.axes)
    return _touched_in_place(plan, operand)


def _touched_in_place(plan: TilePlan, operand: Operand, is_packed: bool = False) -> traffic.Operand:
    """Return what the tiles touch of the dimensions of an operand, which may lie in the order it is touched in."""
    terms = tuple(tuple((n, e.coefficient(n)) for n in operand.axes if n in e.axes()) for e in operand.indices)
    size = element_bytes(plan.anchor.element)
    if is_packed:
        return traffic.Operand(terms or _ONE_PLACE, size, is_packed=True)
    strides = tuple(size * n for n in row_major(buffer_shape(operand.buffer))) or (size,)
    return traffic.Operand(terms or _ONE_PLACE, size, strides=strides, skips=plan.is_sure)


def _touched_together(plan: TilePlan, axes: Iterable[str]) -> traffic.Operand:
    """Return what lies in memory in the order it is touched in, along axes of which those of the lanes are one."""
    axes, lanes = list(axes), set(plan.variant.axes)
    names = [n for n in axes if n not in lanes] + [plan.variant.axes[-1]] * any(n in lanes for n in axes)
    terms = tuple(((n, 1),) for n in names)
    return traffic.Operand(terms or _ONE_PLACE, element_bytes(plan.anchor.element), is_packed=True)
