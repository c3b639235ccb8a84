"""Multi-level tiling on a GPU: S S S R R S R S over blocks, virtual threads and threads, operands in shared memory.

The threads of a block fill the shared buffers together, a few neighbouring elements each; accumulators are registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from ...dialects.attributes import Axis
from ...dialects.combiner import element_bytes
from ...dialects.target import Target
from ...passes.analysis.nest import find_block
from ...passes.schedule._stages import copies_of
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.compute_inline import ComputeInline
from ...passes.schedule.fuse import Fuse
from ...passes.schedule.pipeline import Pipeline
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.reorder import Reorder
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.rfactor import Rfactor
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.storage_align import StorageAlign
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..anchor import Anchor, Operand, epilogue_of, find_anchor
from ..gpu_model import BANKS, PADDING, GpuAxis, GpuModel, GpuOperand, GpuReduce, Span
from ..holes import Derived, Hole, Kind
from ..sketch import Draft
from ..sketch_rules import SketchRule
from ._structures import tile_anchors

SMALL = 8
"""A reduce axis up to this extent, such as a filter's, is in shared memory as a whole."""
VIRTUAL = (1, 2, 4)
THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
INNER = (1, 2, 4, 7, 8)
PARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
MOST_PARTS = 64
"""Parts of a split reduction that are loaded one after the other without a loop."""
STAGES = (1, 2, 3, 4)
UNROLLED = (0, 32, 128, 512)
"""Statements that the loops of a reduction step may become when they are unrolled."""


class GpuTiling(SketchRule):
    """Reductions with data reuse, on a GPU."""

    order: ClassVar[int] = 300

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        def write(grown: Draft, anchor: Anchor, variant: GpuVariant, number: int) -> GpuModel:
            return Tiling(grown, anchor, variant, target, number).write()

        return tile_anchors(draft, lambda anchor: list(gpu_variants(anchor)), write)


@dataclass(frozen=True)
class GpuVariant:
    """One structure: the last axes taken as one, and whether the reduction is split over blocks."""

    fused: tuple[Axis, ...]
    split: bool

    @property
    def name(self) -> str:
        return f"{'_'.join(a.name for a in self.fused)}{'_split' if self.split else ''}"


def gpu_variants(anchor: Anchor) -> Iterator[GpuVariant]:
    """The structures worth searching for an anchor."""
    last = anchor.spatial[-1]
    groups: list[tuple[Axis, ...]] = [(last,)]
    if anchor.shared_by_all(last.name):
        return  # nothing is reused along what neighbouring threads compute: shared memory would not pay
    if len(anchor.spatial) > 1:
        before = anchor.spatial[-2]
        together = [o for o in anchor.operands if last.name in o.axes]
        if before.extent * last.extent <= 4096 and all(before.name in o.axes for o in together):
            groups.insert(0, (before, last))
    outputs = prod(a.extent for a in anchor.spatial)
    deepest = max((a.extent for a in anchor.reduce), default=1)
    deep, divides = deepest >= 64, any(deepest % n == 0 for n in PARTS)
    for group in groups:
        yield GpuVariant(group, False)
        if deep and divides and outputs <= 1 << 20:
            yield GpuVariant(group, True)


class Tiling:
    """One variant, written into a draft step by step."""

    def __init__(self, draft: Draft, anchor: Anchor, variant: GpuVariant, target: Target, number: int) -> None:
        self.draft = draft
        self.variant = variant
        self.target = target
        self.number = number
        self.block = anchor.block
        self.split: Hole | None = None
        self.divided: Axis | None = None
        self.part = ""
        self.width: Hole | None = None
        self.final: str | None = None
        if variant.split:
            anchor = self._split_reduction(anchor)
        self.anchor = anchor
        names = {a.name for a in variant.fused}
        self.outer = [a for a in anchor.spatial if a.name not in names and anchor.shared_by_all(a.name)]
        self.axes = [(a.name, a.extent) for a in anchor.spatial if a.name not in names and a not in self.outer]
        if len(self.axes) > 3:
            self.outer += [a for a in anchor.spatial if a.name in {n for n, _ in self.axes[:-3]}]
            self.axes = self.axes[-3:]
        self.axes.append(("_".join(a.name for a in variant.fused), prod(a.extent for a in variant.fused)))

    def hole(self, name: str, choices: tuple[int, ...], default: int, kind: Kind = "tile", axis: str = "") -> Hole:
        return self.draft.hole(f"{self.block}_{name}", choices, default, kind, axis and f"{self.block}_{axis}")

    def write(self) -> GpuModel:
        """Apply all steps; returns the model of what came out."""
        self._holes()
        self._stage()
        self._tile()
        self._finish()
        if self.final is not None:
            self._join()
        return self._model()

    # -- splitting the reduction over blocks --------------------------------------------------------------------------

    def _split_reduction(self, anchor: Anchor) -> Anchor:
        """The partial sums as the anchor; what joins them waits in `final`."""
        deepest = max(anchor.reduce, key=lambda a: a.extent)
        self.split = self.hole(
            "parts", tuple(n for n in PARTS if 4 * n <= deepest.extent and deepest.extent % n == 0), 8, "parts"
        )
        self.draft.do(Split, block=self.block, loop=deepest.name, factors=(self.split, 0))
        loops = [x.loop_name for x in find_block(None, self.draft.module, self.block).enclosing_loops]
        part = f"{deepest.name}0"
        self.divided = Axis(f"{deepest.name}1", deepest.extent, True)
        self.part = part
        self.draft.do(Reorder, block=self.block, loops=(part, *[n for n in loops if n != part]))
        self.draft.do(Rfactor, block=self.block, loop=part)
        self.final = self.block
        self.block = f"{self.block}_rf"
        found = find_anchor(self.draft.module, self.block)
        assert found is not None
        return found

    def _join(self) -> None:
        """Add up the partial results, with the epilogue, one thread for each result."""
        do = self.draft.do
        assert self.final is not None
        whole = find_anchor(self.draft.module, self.final)
        out = self._epilogue_of(self.final)
        if out is None:
            name = find_block(None, self.draft.module, self.final).block_name
            out = f"{name}_sum"
            do(CacheWrite, block=self.final, scope="local", label=out)
        around = find_block(None, self.draft.module, out).enclosing_loops
        loops = tuple(x.loop_name for x in around)
        fused = "_".join(loops)
        if len(loops) > 1:
            do(Fuse, block=out, loops=loops)
        self.width = width = self.hole(
            "join_vector", tuple(n for n in (1, 2, 4) if around[-1].size % n == 0), 1, "vector"
        )
        do(Split, block=out, loop=fused, factors=(0, 128, width))
        do(Bind, block=out, loop=f"{fused}0", thread="blockIdx.x")
        do(Bind, block=out, loop=f"{fused}1", thread="threadIdx.x")
        do(Vectorize, block=out, loop=f"{fused}2")
        do(ComputeAt, block=self.final, loop=f"{fused}1", unit_loops=True)
        do(SetScope, block=self.final, scope="local")
        *spatial, part = [x.loop_name for x in find_block(None, self.draft.module, self.final).enclosing_loops][2:]
        do(Reorder, block=self.final, loops=(part, *spatial))
        do(Pragma, block=self.final, loop=part, auto_unroll_max_step=MOST_PARTS)
        do(Vectorize, block=self.final, loop=spatial[-1])
        self.draft.settled |= {self.final, out}
        assert whole is None or whole.block == self.final

    def _epilogue_of(self, block: str) -> str | None:
        return epilogue_of(find_block(None, self.draft.module, block))

    # -- holes --------------------------------------------------------------------------------------------------------

    def _holes(self) -> None:
        budget = 256
        self.levels: dict[str, tuple[Hole, Hole, Hole]] = {}
        for name, extent in reversed(self.axes):
            inner = self.hole(f"{name}_inner", _upto(INNER, extent), min(4, extent), axis=name)
            threads = _upto(THREADS, max(1, extent))
            default = max(t for t in threads if t <= max(1, min(budget, 16, extent // inner.default)))
            budget //= default
            thread = self.hole(f"{name}_threads", threads, default, "threads", name)
            virtual = self.hole(f"{name}_virtual", _upto(VIRTUAL, extent), 1, axis=name)
            self.levels[name] = (virtual, thread, inner)
        self.steps: dict[str, Hole] = {}
        iterations = 1
        for axis in self.anchor.reduce:
            divided = self._whole(axis) is self.divided
            if axis.extent > SMALL or divided:
                most = self._whole(axis).extent // 2 if divided else axis.extent
                choices = tuple(n for n in (2, 4, 8, 16, 32, 64) if n <= most)
                fitting = [n for n in choices if n <= 8 and 2 * n <= axis.extent]
                self.steps[axis.name] = self.hole(f"{axis.name}_step", choices, max(fitting, default=choices[0]))
                iterations = -(-axis.extent // self.steps[axis.name].default)
        self.vectors = {o.name: self.hole(f"{o.name}_vector", (1, 2, 4), 1, "vector") for o in self._distinct()}
        stages = tuple(n for n in STAGES if self.steps or n == 1)
        self.stages = self.hole("stages", stages, min(2, iterations), "stages")
        self.registers = self.hole("registers", (0, 1) if self.steps else (0,), 0)
        self.unrolled = self.hole("unroll", UNROLLED, UNROLLED[-1], "unroll")
        names = [levels[1].name for levels in self.levels.values()]
        self.threads: Derived = self.draft.derive(
            f"{self.block}_all_threads", lambda c: np.prod([c[n] for n in names], axis=0)
        )

    # -- steps --------------------------------------------------------------------------------------------------------

    def _stage(self) -> None:
        self.copies: list[str] = []
        self.turned: dict[str, tuple[str, ...]] = {}
        self.fragments: list[str] = []
        for operand in self._distinct():
            label = f"{operand.name}_shared"
            layout = self._turned(operand)
            do = self.draft.do
            do(CacheRead, block=self.block, buffer=operand.name, scope="shared", layout=layout, label=label)
            if layout:
                # Vectors stay aligned, and neighbouring rows start in other banks.
                do(StorageAlign, block=label, axis=len(layout) - 2, factor=BANKS, offset=PADDING)
                self.turned[label] = layout
            self.copies.append(label)
            if self._is_box(operand):
                self.fragments.append(f"{label}_local")
                do(CacheRead, block=self.block, buffer=label, scope="local", label=self.fragments[-1])
        for pad in self.anchor.pads:
            self.draft.do(ComputeInline, block=pad)

    def _turned(self, operand: Operand) -> tuple[str, ...]:
        """The layout that puts neighbours along a row axis side by side, for an operand contiguous in another one."""
        rows = [n for n, _ in self.axes[:-1] if n in operand.axes]
        lanes = {a.name for a in self.variant.fused}
        if len(rows) != 1 or lanes & set(operand.axes) or operand.steps_along(rows[0]):
            return ()
        padded = any(operand.name == pad for pad in self.anchor.pads)
        once = sum(o.name == operand.name for o in self.anchor.operands) == 1
        return () if padded or not once else (*(n for n in operand.axes if n != rows[0]), rows[0])

    def _is_box(self, operand: Operand) -> bool:
        """True where the elements that a thread reads in one reduction step are just a box of its tile's sizes."""
        spatial = {n for n, _ in self.axes} | {a.name for a in self.outer}
        fused = {a.name for a in self.variant.fused} if len(self.variant.fused) > 1 else set()
        moved = [(n, c) for e in operand.indices for n, c in e.terms if not isinstance(n, str) or n in spatial | fused]
        once = len({n for n, _ in moved}) == len(moved)
        return once and all(isinstance(n, str) and n in spatial and c == 1 for n, c in moved)

    def _distinct(self) -> list[Operand]:
        return list({o.name: o for o in self.anchor.operands}.values())

    def _tile(self) -> None:
        do, block = self.draft.do, self.block
        fused = tuple(a.name for a in self.variant.fused)
        if len(fused) > 1:
            do(Fuse, block=block, loops=fused)
        for name, _ in self.axes:
            do(Split, block=block, loop=name, factors=(0, *self.levels[name]))
        outer, middle = [], []
        for axis in self.anchor.reduce:
            if axis.name in self.steps:
                do(Split, block=block, loop=axis.name, factors=(0, self.steps[axis.name]))
                outer.append(f"{axis.name}0")
                middle.append(f"{axis.name}1")
            else:
                middle.append(axis.name)
        names = [n for n, _ in self.axes]
        blocks = [*(a.name for a in self.outer), *(f"{n}0" for n in names)]
        virtual, threads = [f"{n}1" for n in names], [f"{n}2" for n in names]
        inner = [f"{n}3" for n in names]
        order = [*blocks, *virtual, *threads, *outer, *middle, *inner]
        around = [x.loop_name for x in find_block(None, self.draft.module, block).enclosing_loops]
        order = [n for n in around if n not in order] + order
        if order != around:
            do(Reorder, block=block, loops=tuple(order))
        for name in virtual:
            do(Bind, block=block, loop=name, thread="vthread")
        for group, thread in ((blocks, "blockIdx.x"), (threads, "threadIdx.x")):
            if len(group) > 1:
                do(Fuse, block=block, loops=tuple(group))
            do(Bind, block=block, loop="_".join(group), thread=thread)
        self.thread_loop = "_".join(threads)
        self.reduce_loop = outer[-1] if outer else self.thread_loop
        self.inner = inner
        for name in inner[:-1]:
            do(Unroll, block=block, loop=name)
        do(Vectorize, block=block, loop=inner[-1])
        do(Pragma, block=block, loop=middle[0], auto_unroll_max_step=self.unrolled)
        self.middle = middle

    def _finish(self) -> None:
        do, block = self.draft.do, self.block
        out = self.anchor.epilogue if self.final is None else None
        if out is None:
            out = f"{self.anchor.output}_tile"
            do(CacheWrite, block=block, buffer=self.anchor.output, scope="local", label=out)
        else:
            do(SetScope, block=block, scope="local")
        do(ReverseComputeAt, block=out, loop=self.thread_loop)
        for name in self.inner[:-1]:
            do(Unroll, block=out, loop=name)
        do(Vectorize, block=out, loop=self.inner[-1])
        for fragment in self.fragments:
            around = len(find_block(None, self.draft.module, block).enclosing_loops) - len(self.inner)
            do(ComputeAt, block=fragment, loop=self.middle[-1], unit_loops=True)
            loops = [x.loop_name for x in find_block(None, self.draft.module, fragment).enclosing_loops][around:]
            for name in loops[:-1]:
                do(Unroll, block=fragment, loop=name)
            do(Vectorize, block=fragment, loop=loops[-1])
        for copy, operand in zip(self.copies, self._distinct(), strict=True):
            do(ComputeAt, block=copy, loop=self.reduce_loop, unit_loops=True)
            shared = (
                len(find_block(None, self.draft.module, block).enclosing_loops) - len(self.middle) - len(self.inner)
            )
            loops = [x.loop_name for x in find_block(None, self.draft.module, copy).enclosing_loops][shared:]
            if copy in self.turned:
                # Threads go along contiguous global memory, whatever the layout of the copy.
                loops = [loops[-1], *loops[:-1]]
                do(Reorder, block=copy, loops=tuple(loops))
            if len(loops) > 1:
                do(Fuse, block=copy, loops=tuple(loops))
            fused = "_".join(loops)
            do(Split, block=copy, loop=fused, factors=(0, self.threads, self.vectors[operand.name]))
            do(Bind, block=copy, loop=f"{fused}1", thread="threadIdx.x")
            do(Vectorize, block=copy, loop=f"{fused}2")
        if self.steps and copies_of(find_block(None, self.draft.module, block).enclosing_loops[self._reduce_depth()]):
            do(Pipeline, block=block, loop=self.reduce_loop, stages=self.stages, registers=self.registers)
        self.draft.settled |= {block, out, *self.copies, *self.fragments}

    def _reduce_depth(self) -> int:
        loops = [x.loop_name for x in find_block(None, self.draft.module, self.block).enclosing_loops]
        return loops.index(self.reduce_loop)

    # -- the model ----------------------------------------------------------------------------------------------------

    def _model(self) -> GpuModel:
        pair = tuple((a.name, a.extent) for a in self.variant.fused)
        model = GpuModel(
            target=self.target,
            outer=prod(a.extent for a in self.outer if a.name != self.part),
            axes=tuple(GpuAxis(n, extent, *(h.name for h in self.levels[n])) for n, extent in self.axes),
            reduce=tuple(
                GpuReduce(a.name, self._whole(a).extent, self.steps[a.name].name if a.name in self.steps else "")
                for a in self.anchor.reduce
            ),
            operands=tuple(self._operand(o) for o in self._distinct()),
            element_bytes=element_bytes(self.anchor.element),
            variant=self.number,
            stages=self.stages.name,
            registers=self.registers.name,
            unroll=self.unrolled.name,
            split=self.split.name if self.split is not None else "",
            join=self.width.name if self.width is not None else "",
            divided=self.divided.name if self.divided is not None else "",
            pair=(pair[0], pair[1]) if len(pair) == 2 else None,
        )
        self.draft.limits.append(model.limit)
        return model

    def _whole(self, axis: Axis) -> Axis:
        """A reduce axis, or what it was before it was divided among blocks."""
        return self.divided if self.divided is not None and self.divided.name == axis.name else axis

    def _operand(self, operand: Operand) -> GpuOperand:
        last = self.variant.fused[-1].name if len(self.variant.fused) == 1 else ""
        layout = self.turned.get(f"{operand.name}_shared", ())
        row = layout[-1] if layout else last if last and operand.steps_along(last) else ""
        return GpuOperand(self._spans(operand), self.vectors[operand.name].name, row, bool(layout))

    def _spans(self, operand: Operand) -> tuple[Span, ...]:
        known = {n for n, _ in self.axes} | {a.name for a in (*self.anchor.reduce, *self.variant.fused)}
        spans = []
        for expr in operand.indices:
            moved = tuple((a, abs(c)) for a, c in expr.terms if isinstance(a, str) and a in known)
            spans.append(Span(moved))
        return tuple(s for s in spans if s.strides)


def _upto(choices: tuple[int, ...], extent: int) -> tuple[int, ...]:
    return tuple(c for c in choices if c <= extent) or (1,)
