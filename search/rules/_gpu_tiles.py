"""The steps of a reduction tiled over blocks, virtual threads and threads, with its operands in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from ...dialects.buffers import buffer_shape
from ...dialects.target import Target
from ...passes.analysis.copies import copies_of
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.pipeline import Pipeline
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.transform_layout import TransformLayout
from ...passes.schedule.vectorize import Vectorize
from ..estimates.gpu_model import GpuModel
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole
from ..structure.anchor import Anchor, anchor_of, epilogue_of
from ._ahead import dimension_names
from ._gpu_copies import bring, in_registers, into_registers
from ._gpu_division import Division, blocks_of_sum, joining_block, plan_division, sum_up, write_division
from ._gpu_factors import many_parts
from ._gpu_slices import SlicedResult, even_slices, write_slices
from ._gpu_tile_model import gpu_model
from ._gpu_tile_plan import GpuTilePlan, GpuVariant, join_width, packed_row, plan_tiles

JOINING_THREADS = 128
"""Threads of a block of the kernel that adds up the parts of a split reduction. A choice: it only moves memory, which
any number of whole warps does."""


@dataclass(frozen=True)
class _TileLoops:
    """Loops of a tiled reduction, from the outside in.

    `grid` is the one over blocks of threads, `thread` the one over threads, `fill` the innermost one that shared memory
    is filled in, `steps` those over the steps that one fill is for, `inner` those over the results of a thread.
    """

    grid: str
    thread: str
    fill: str
    steps: tuple[str, ...]
    inner: tuple[str, ...]


def write_tiling(draft: Draft, anchor: Anchor, variant: GpuVariant, target: Target) -> Iterator[GpuModel]:
    """Plan an anchor's tiling as a variant has it, with the model of it; then do the steps."""
    anchor = with_packed(draft, anchor, variant)
    parts = None
    if variant.in_both:
        parts = plan_division(anchor, False, in_both=True)
        anchor = write_division(draft, parts)
    division = None
    if variant.split or variant.sliced:
        longest, results = max(a.extent for a in anchor.reduce), prod(a.extent for a in anchor.spatial)
        more = () if variant.sliced else many_parts(longest, results, target)
        division = plan_division(anchor, variant.sliced, more=more, in_both=variant.in_both)
        anchor = write_division(draft, division)
    if division is not None and parts is not None:  # the model's extents are those before any division
        division = replace(division, divided=division.divided._replace(extent=parts.divided.extent))
    plan = plan_tiles(anchor, variant, target, division, parts)
    draft.add(*plan.numbers())
    on_blocks = parts if variant.sliced else division
    joined = plan_join(draft, parts.final if parts is not None else plan.block, on_blocks) if on_blocks else None
    model = gpu_model(plan, plan.slices.width if plan.slices is not None else joined)
    resident = _fitting(draft, plan, model)
    draft.limits += [
        *([even_slices(plan)] if variant.sliced else []),
        *([plan.within_runs] if plan.run is not None else []),
    ]
    draft.limits.append(model.limit)
    draft.sure += bool(plan.image)
    draft.settled |= {plan.block, *anchor.pads, *([anchor.epilogue] if anchor.epilogue else [])}
    draft.settled.update(*(blocks_of_sum(draft, each) for each in (division, parts) if each is not None))
    yield model
    sliced = write_slices(draft, plan) if variant.sliced else None
    _stage(draft, plan)
    loops = _tile(draft, plan, sliced)
    _write_out(draft, plan, loops, sliced.partial if sliced is not None else _result(draft, plan))
    for staged in plan.operands:
        if staged.has_fragment:
            into_registers(draft, staged.fragment, loops.steps[-1])
    for staged in plan.operands:
        # Threads go along contiguous global memory, whatever the layout of the copy.
        turned = bool(staged.copy.layout)
        bring(draft, staged.copy.label, loops.fill, {"threadIdx.x": plan.threads}, staged.vector, last_first=turned)
    _pipeline(draft, plan, loops)
    if on_blocks is not None and joined is not None:
        join_parts(draft, on_blocks, joined)
    if resident is not None:
        draft.do(Pragma, block=plan.block, loop=loops.grid, blocks_per_sm=resident)


def with_packed(draft: Draft, anchor: Anchor, variant: GpuVariant) -> Anchor:
    """The anchor with its constant operands laid out ahead so that none is turned round as it is copied.

    Rows that are read along their terms lie as they should.
    """
    last = anchor.spatial[-1].name
    layouts = [
        (operand.name, (*(name for name in dimension_names(operand) if name != row), row))
        for operand in anchor.operands
        if (row := packed_row(anchor, variant, operand)) and not (variant.along_terms and last not in operand.axes)
    ]
    for buffer, layout in layouts:  # each step replaces the buffer that an operand of the anchor is
        draft.do(TransformLayout, block=anchor.block, buffer=buffer, layout=layout)
    return anchor_of(draft.module, anchor.block)


def _fitting(draft: Draft, plan: GpuTilePlan, model: GpuModel) -> Derived | None:
    """Blocks that fit a multiprocessor by the model, so many that the compiler is asked for no more registers.

    None but of products: where windows are written out, registers are more than the model counts, and would be spilled.
    On an H200 twelve products take 0.965 of their time so (1000x1512x2056 213 us and 187), a convolution in groups 2.4
    times as long.
    """
    if any(axis.step is None for axis in plan.reduce):
        return None
    numbers = [*plan.numbers(), *(each.parts for each in (plan.division, plan.parts) if each is not None)]
    resident = Derived.of(f"{plan.block}_resident", model.fitting_blocks, numbers)
    draft.add(resident)
    return resident


def _stage(draft: Draft, plan: GpuTilePlan) -> None:
    """Copies of the operands, for shared memory and for registers; what is padded is padded as it is copied."""
    for staged in plan.operands:
        staged.copy.read_by(draft, plan.block)
        staged.copy.keep_apart(draft)
        if staged.has_fragment:
            draft.do(CacheRead, block=plan.block, buffer=staged.copy.label, scope="local", label=staged.fragment)
    for pad in plan.anchor.pads:
        draft.do(ComputeInline, block=pad)


def _tile(draft: Draft, plan: GpuTilePlan, sliced: SlicedResult | None) -> _TileLoops:
    """Split all axes, put their parts in order, and bind them."""
    block = plan.block
    draft.fuse(block, [a.name for a in plan.variant.fused])
    blocks, virtual, threads, inner = _split_axes(draft, plan)
    fills, steps = [], []
    for axis in plan.reduce:
        if axis.step is not None:
            draft.do(Split, block=block, loop=axis.name, factors=(0, axis.step))
            fills.append(f"{axis.name}0")
        steps.append(axis.name if axis.step is None else f"{axis.name}1")
    order = [*blocks, *virtual, *threads, *fills, *steps, *inner]
    around = draft.loops(block, sliced.block_loop if sliced is not None else "")
    draft.order(block, [*[n for n in around if n not in order], *order])
    for name in virtual:
        draft.do(Bind, block=block, loop=name, thread="vthread")
    grid = sliced.block_loop if sliced is not None else ""
    if blocks:
        grid = draft.fuse(block, blocks)
        draft.do(Bind, block=block, loop=grid, thread="blockIdx.x")
    thread = draft.fuse(block, threads)
    draft.do(Bind, block=block, loop=thread, thread="threadIdx.x")
    in_registers(draft, block, inner)
    draft.do(Pragma, block=block, loop=steps[0], auto_unroll_max_step=plan.unroll)
    return _TileLoops(grid, thread, fills[-1] if fills else thread, tuple(steps), tuple(inner))


def _split_axes(draft: Draft, plan: GpuTilePlan) -> tuple[list[str], list[str], list[str], list[str]]:
    """Split the spatial axes; the loops of blocks, virtual threads, threads, and within a thread.

    Slices are in a block of threads already, and each has threads of its own.
    """
    sliced = plan.division is not None and plan.variant.sliced
    parts: list[list[str]] = []
    for tile in plan.axes:
        factors = tile.factors if sliced else (0, *tile.factors)
        draft.do(Split, block=plan.block, loop=tile.name, factors=factors)
        parts.append([f"{tile.name}{n}" for n in range(len(factors))])
    levels = [list(level) for level in zip(*parts, strict=True)]
    if sliced and plan.division is not None:
        virtual, threads, inner = levels
        return [], virtual, [plan.division.part, *threads], inner
    blocks, virtual, threads, inner = levels
    return [*(a.name for a in plan.outer), *blocks], virtual, threads, inner


def _result(draft: Draft, plan: GpuTilePlan) -> str:
    """The block that takes a tile from the registers: the epilogue, or a copy."""
    out = plan.anchor.epilogue if plan.division is None else None
    if out is None:
        out = f"{plan.anchor.output}_tile"
        draft.do(CacheWrite, block=plan.block, buffer=plan.anchor.output, scope="local", label=out)
    else:
        draft.do(SetScope, block=plan.block, scope="local")
    return out


def _write_out(draft: Draft, plan: GpuTilePlan, loops: _TileLoops, out: str) -> None:
    """Write a tile out of the registers, in each thread."""
    draft.do(ReverseComputeAt, block=out, loop=loops.thread)
    in_registers(draft, out, loops.inner)
    draft.settled |= {plan.block, out}


def _pipeline(draft: Draft, plan: GpuTilePlan, loops: _TileLoops) -> None:
    """Let fills of shared memory run ahead of their use, where there are several."""
    around = {loop.loop_name: loop for loop in draft.block(plan.block).enclosing_loops}
    if plan.steps and copies_of(around[loops.fill]):
        draft.do(Pipeline, block=plan.block, loop=loops.fill, stages=plan.stages, registers=plan.registers)


def plan_join(draft: Draft, block: str, division: Division) -> Hole:
    """The results that a thread adds up parts for, in a kernel of its own; the hole is called after a block."""
    out = epilogue_of(draft.block(division.final))
    row = list(draft.sizes(out).values()) if out is not None else buffer_shape(draft.block(division.final).outputs[0])
    width = join_width(block, row[-1])
    draft.add(width)
    return width


def join_parts(draft: Draft, division: Division, width: Hole) -> None:
    """Add up the parts in a kernel of its own, with the epilogue, a few results in each thread."""
    out = joining_block(draft, division)
    fused = draft.fuse(out, list(draft.sizes(out)))
    grid, thread, vector = draft.split(out, fused, (0, JOINING_THREADS, width))
    draft.do(Bind, block=out, loop=grid, thread="blockIdx.x")
    draft.do(Bind, block=out, loop=thread, thread="threadIdx.x")
    draft.do(Vectorize, block=out, loop=vector)
    sum_up(draft, division, out, thread)
