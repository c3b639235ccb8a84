"""Windows of one channel in the registers of a thread: it loads what its results read, each element once.

Nothing of them is reused but by the results beside, in the same thread or in caches: no barrier is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import Float32Type

from ...dialects.target import Target
from ...passes.analysis.slides import Slide
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.unroll import Unroll
from ..estimates.register_window_model import RegisterWindows, WindowAxis
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..structure.anchor import Anchor
from ._gpu_copies import in_registers, into_registers
from ._gpu_factors import INNER, block_threads, factors_of
from .always_inline import COSTLY

THREADS = (32, 64, 128, 256)
"""Threads of a block: any do, as they share nothing but a cache."""
USUAL_THREADS = 128
"""The same without a search. A choice."""
MOST_TAPS = 49
"""Places of a window, at most: as many registers of each thread are its weights. A choice: windows of 7x7."""
MOST_INNER = 8
"""Results of a thread along an axis, at most. A choice: rows of 7x7 windows are 14 elements then."""


@dataclass(frozen=True)
class RegisterWindow:
    """The structure, as one of an anchor's."""

    @property
    def name(self) -> str:
        return "in_registers"


def register_windows(anchor: Anchor, target: Target) -> list[RegisterWindow]:
    """The structure where windows of one channel move along axes of images; else none."""
    return [RegisterWindow()] if target.kind == "cuda" and _slides(anchor) else []


def _slides(anchor: Anchor) -> tuple[Slide, ...]:
    """The dimensions that windows of one channel move along, all of a reduction; none of others.

    Nor of a channel that several filters read, for which tiles of filters have it in shared memory.
    """
    found = [operand for operand in anchor.operands if operand.slides]
    if len(anchor.operands) != 2 or len(found) != 1 or not isinstance(anchor.element, Float32Type):
        return ()
    if anchor.kept_results(found[0]) > 1:
        return ()
    slides = found[0].slides
    alone = {slide.tap.name for slide in slides} == {axis.name for axis in anchor.reduce}
    plain = all(slide.dilation > 0 and slide.stride > 0 and slide.place.extent > 1 for slide in slides)
    small = prod(slide.tap.extent for slide in slides) <= MOST_TAPS
    return slides if alone and plain and small else ()


def write_register_windows(draft: Draft, anchor: Anchor, target: Target) -> Iterator[RegisterWindows]:
    """Plan to give each thread a few neighbouring results of an anchor, and what these read; then do the steps."""
    block, slides = anchor.block, _slides(anchor)
    threads = Hole.near(f"{block}_window_threads", block_threads(target, THREADS), USUAL_THREADS, "threads")
    inner = {slide.place.name: _inner(block, slide) for slide in slides}
    draft.add(*reversed(inner.values()), threads)
    out = anchor.epilogue
    costly = out is not None and any(op.name in COSTLY for op in draft.block(out).body.block.ops)
    model = _model(anchor, target, inner, threads, costly)
    draft.limits.append(model.limit)
    draft.sure, draft.unseen = draft.sure + 1, draft.unseen + 1
    draft.settled |= {block, *anchor.pads, *([out] if out is not None else [])}
    yield model
    copies = {operand.name: f"{operand.name}_local" for operand in anchor.operands}
    for buffer, copy in copies.items():
        draft.do(CacheRead, block=block, buffer=buffer, scope="local", label=copy)
    for pad in anchor.pads:
        draft.do(ComputeInline, block=pad)
    thread, held = _tile(draft, anchor, inner, threads)
    if out is None:
        out = f"{anchor.output}_tile"
        draft.do(CacheWrite, block=block, buffer=anchor.output, scope="local", label=out)
    else:
        draft.do(SetScope, block=block, scope="local")
    draft.do(ReverseComputeAt, block=out, loop=thread)
    in_registers(draft, out, held)
    for copy in copies.values():
        into_registers(draft, copy, thread)
    draft.settled.add(out)


def _inner(block: str, slide: Slide) -> Hole:
    """Results of a thread along an axis."""
    choices = factors_of(slide.place.extent, INNER, MOST_INNER)
    return Hole.near(f"{block}_{slide.place.name}_held", choices, 1, axis=f"{block}_{slide.place.name}")


def _tile(draft: Draft, anchor: Anchor, inner: dict[str, Hole], threads: Hole) -> tuple[str, Sequence[str]]:
    """Split the axes, write out what a thread does, and bind the rest: the loop over threads, and those within."""
    block, around, held = anchor.block, list[str](), list[str]()
    spatial = {axis.name for axis in anchor.spatial}
    for name in [loop for loop in draft.loops(block) if loop in spatial]:
        if name in inner:
            draft.do(Split, block=block, loop=name, factors=(0, inner[name]))
            around.append(f"{name}0")
            held.append(f"{name}1")
        else:
            around.append(name)
    taps = [axis.name for axis in anchor.reduce]
    kept = [loop for loop in draft.loops(block) if loop not in {*around, *taps, *held}]
    draft.order(block, [*kept, *around, *taps, *held])
    grid, thread = draft.split(block, draft.fuse(block, around), (0, threads))
    draft.do(Bind, block=block, loop=grid, thread="blockIdx.x")
    draft.do(Bind, block=block, loop=thread, thread="threadIdx.x")
    for tap in taps:
        draft.do(Unroll, block=block, loop=tap)
    in_registers(draft, block, held)
    return thread, held


def _model(anchor: Anchor, target: Target, inner: dict[str, Hole], threads: Hole, costly: bool) -> RegisterWindows:
    slides = _slides(anchor)
    return RegisterWindows(
        target,
        prod(axis.extent for axis in anchor.spatial if axis.name not in inner),
        tuple(WindowAxis(s.place.extent, s.tap.extent, s.stride, s.dilation, inner[s.place.name].name) for s in slides),
        threads.name,
        anchor.spatial[-1].name not in inner,
        bool(anchor.pads),
        costly,
    )
