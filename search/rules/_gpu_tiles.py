"""The steps of a reduction tiled over blocks, virtual threads and threads, with its operands in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ...dialects.attributes import Axis
from ...dialects.combiner import element_bytes
from ...dialects.target import Target
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
from ..estimates.gpu_model import BANKS, PADDING, GpuAxis, GpuModel, GpuOperand, GpuReduce, Span
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole, Kind
from ..structure.anchor import Anchor, Operand, epilogue_of, find_anchor
from ._gpu_factors import INNER, LONG, STEPS, THREADS, factors_of, odd_divisors, parts_of, up_to

SMALL = 8
"""A reduce axis up to this extent, such as a filter's, is in shared memory as a whole."""
VIRTUAL = (1, 2, 4)
MOST_PARTS = 64
"""Parts of a split reduction that are loaded one after the other without a loop."""
STAGES = (1, 2, 3, 4)
UNROLLED = (0, 32, 128, 512)
"""Statements that the loops of a reduction step may become when they are unrolled."""


@dataclass(frozen=True)
class GpuVariant:
    """One structure: the last axes taken as one, and among what the reduction is divided.

    `split`: among blocks, and a second kernel adds up. `sliced`: among the threads of a block, which add up in shared
    memory.
    """

    fused: tuple[Axis, ...]
    split: bool = False
    sliced: bool = False

    @property
    def name(self) -> str:
        return f"{'_'.join(a.name for a in self.fused)}{'_split' * self.split}{'_sliced' * self.sliced}"


class Tiling:
    """One variant, written into a draft step by step."""

    def __init__(self, draft: Draft, anchor: Anchor, variant: GpuVariant, target: Target) -> None:
        self.draft = draft
        self.variant = variant
        self.target = target
        self.block = anchor.block
        self.split: Hole | None = None
        self.divided: Axis | None = None
        self.part = ""
        self.block_loop = ""
        self.width: Hole | None = None
        self.final: str | None = None
        if variant.split or variant.sliced:
            anchor = self._divide(anchor)
        self.anchor = anchor
        names = {a.name for a in variant.fused}
        spatial = [a for a in anchor.spatial if not (variant.sliced and a.name == self.part)]
        self.outer = [a for a in spatial if a.name not in names and anchor.shared_by_all(a.name)]
        self.axes = [(a.name, a.extent) for a in spatial if a.name not in names and a not in self.outer]
        if len(self.axes) > 3:
            self.outer += [a for a in spatial if a.name in {n for n, _ in self.axes[:-3]}]
            self.axes = self.axes[-3:]
        self.axes.append(("_".join(a.name for a in variant.fused), prod(a.extent for a in variant.fused)))

    def hole(self, name: str, choices: tuple[int, ...], default: int, kind: Kind = "tile", axis: str = "") -> Hole:
        return self.draft.hole(f"{self.block}_{name}", choices, default, kind, axis and f"{self.block}_{axis}")

    def write(self) -> GpuModel:
        """Apply all steps; returns the model of what came out."""
        self._holes()
        self._place()
        self._stage()
        self._tile()
        self._finish()
        self._join()
        return self._model()

    def _place(self) -> None:
        """Move the reduction to where it is tiled: it is there, but for a sliced one."""

    # -- dividing the reduction ----------------------------------------------------------------------------------------

    def _divide(self, anchor: Anchor) -> Anchor:
        """The partial sums as the anchor; what joins them waits in `final`."""
        deepest = max(anchor.reduce, key=lambda a: a.extent)
        parts = parts_of(deepest.extent, self.variant.sliced)
        name, default = ("slices", 2) if self.variant.sliced else ("parts", 8)
        self.split = self.hole(name, parts, default, "parts")
        # Slices take turns, so that what a block fetches at a time is contiguous; blocks take what is contiguous.
        factors, (part, rest) = ((0, self.split), (1, 0)) if self.variant.sliced else ((self.split, 0), (0, 1))
        self.draft.do(Split, block=self.block, loop=deepest.name, factors=factors)
        loops = self.draft.loops(self.block)
        self.part = f"{deepest.name}{part}"
        self.divided = Axis(f"{deepest.name}{rest}", deepest.extent, True)
        self.draft.do(Reorder, block=self.block, loops=(self.part, *[n for n in loops if n != self.part]))
        self.draft.do(Rfactor, block=self.block, loop=self.part)
        self.final = self.block
        self.block = f"{self.block}_rf"
        found = find_anchor(self.draft.module, self.block)
        assert found is not None
        return found

    def _join(self) -> None:
        """Add up the partial results, with the epilogue, a few results in each thread."""
        if self.final is None:
            return
        do = self.draft.do
        out = self._joining()
        around = self.draft.block(out).enclosing_loops
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
        self._sum_up(out, f"{fused}1")

    def _joining(self) -> str:
        """The block that writes what the parts add up to."""
        assert self.final is not None
        out = epilogue_of(self.draft.block(self.final))
        if out is None:
            out = f"{self.final}_sum"
            self.draft.do(CacheWrite, block=self.final, scope="local", label=out)
        return out

    def _sum_up(self, out: str, thread: str) -> None:
        """Add up the parts where `out` needs the sum, in registers of each thread."""
        do = self.draft.do
        assert self.final is not None
        do(ComputeAt, block=self.final, loop=thread, unit_loops=True)
        do(SetScope, block=self.final, scope="local")
        loops = self.draft.loops(self.final)
        *spatial, part = loops[loops.index(thread) + 1 :]
        do(Reorder, block=self.final, loops=(part, *spatial))
        do(Pragma, block=self.final, loop=part, auto_unroll_max_step=MOST_PARTS)
        do(Vectorize, block=self.final, loop=spatial[-1])
        self.draft.settled |= {self.final, out}

    # -- holes --------------------------------------------------------------------------------------------------------

    def _holes(self) -> None:
        budget = 128 if self.variant.sliced else 256
        self.levels: dict[str, tuple[Hole, Hole, Hole]] = {}
        for name, extent in reversed(self.axes):
            inner = self.hole(f"{name}_inner", self._factors(extent, INNER, 16), min(4, extent), axis=name)
            even = up_to(THREADS, max(1, extent))
            default = max(t for t in even if t <= max(1, min(budget, 16, extent // inner.default)))
            budget //= default
            choices = self._factors(extent, THREADS, max(THREADS) if extent >= LONG else 1)
            thread = self.hole(f"{name}_threads", choices, default, "threads", name)
            virtual = self.hole(f"{name}_virtual", up_to(VIRTUAL, extent), 1, axis=name)
            self.levels[name] = (virtual, thread, inner)
        self.steps: dict[str, Hole] = {}
        iterations = 1
        for axis in self.anchor.reduce:
            divided = self._whole(axis) is self.divided
            if axis.extent > SMALL or divided:
                most = self._whole(axis).extent // 2 if divided else axis.extent
                even = tuple(n for n in STEPS if n <= most)
                fitting = [n for n in even if n <= 8 and 2 * n <= axis.extent]
                exact = () if self.variant.sliced else odd_divisors(self._whole(axis).extent, min(max(STEPS), most))
                choices = tuple(sorted({*even, *exact}))
                self.steps[axis.name] = self.hole(f"{axis.name}_step", choices, max(fitting, default=even[0]))
                iterations = -(-axis.extent // self.steps[axis.name].default)
        self.vectors = {o.name: self.hole(f"{o.name}_vector", (1, 2, 4), 1, "vector") for o in self._distinct()}
        stages = tuple(n for n in STAGES if self.steps or n == 1)
        self.stages = self.hole("stages", stages, min(2, iterations), "stages")
        self.registers = self.hole("registers", (0, 1) if self.steps else (0,), 0)
        self.unrolled = self.hole("unroll", UNROLLED, UNROLLED[-1], "unroll")
        names = [levels[1].name for levels in self.levels.values()]
        if self.variant.sliced and self.split is not None:
            names.append(self.split.name)
        self.threads: Derived = self.draft.derive(
            f"{self.block}_all_threads", lambda c: np.prod([c[n] for n in names], axis=0)
        )

    def _factors(self, extent: int, listed: tuple[int, ...], most: int) -> tuple[int, ...]:
        """What an axis may be divided by; tiles of slices go evenly to all threads, which only powers of two do."""
        return up_to(listed, extent) if self.variant.sliced else factors_of(extent, listed, most)

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
        """The operands of which tiles are copied, each once; a single number is read where it is."""
        return list({o.name: o for o in self.anchor.operands if o.indices}.values())

    def _tile(self) -> None:
        do, block = self.draft.do, self.block
        fused = tuple(a.name for a in self.variant.fused)
        if len(fused) > 1:
            do(Fuse, block=block, loops=fused)
        blocks, virtual, threads, inner = self._split_axes()
        outer, middle = [], []
        for axis in self.anchor.reduce:
            if axis.name in self.steps:
                do(Split, block=block, loop=axis.name, factors=(0, self.steps[axis.name]))
                outer.append(f"{axis.name}0")
                middle.append(f"{axis.name}1")
            else:
                middle.append(axis.name)
        order = [*blocks, *virtual, *threads, *outer, *middle, *inner]
        around = self.draft.loops(block)
        around = around[around.index(self.block_loop) + 1 :] if self.block_loop else around
        order = [n for n in around if n not in order] + order
        if order != around:
            do(Reorder, block=block, loops=tuple(order))
        for name in virtual:
            do(Bind, block=block, loop=name, thread="vthread")
        for group, thread in ((blocks, "blockIdx.x"), (threads, "threadIdx.x")):
            self.draft.fuse(block, group)
            if group:
                do(Bind, block=block, loop="_".join(group), thread=thread)
        self.thread_loop = "_".join(threads)
        self.reduce_loop = outer[-1] if outer else self.thread_loop
        self.inner = inner
        for name in inner[:-1]:
            do(Unroll, block=block, loop=name)
        do(Vectorize, block=block, loop=inner[-1])
        do(Pragma, block=block, loop=middle[0], auto_unroll_max_step=self.unrolled)
        self.middle = middle

    def _split_axes(self) -> tuple[list[str], list[str], list[str], list[str]]:
        """Split the spatial axes; the loops of blocks, virtual threads, threads, and within a thread."""
        names = [n for n, _ in self.axes]
        for name in names:
            self.draft.do(Split, block=self.block, loop=name, factors=(0, *self.levels[name]))
        blocks = [*(a.name for a in self.outer), *(f"{n}0" for n in names)]
        return blocks, [f"{n}1" for n in names], [f"{n}2" for n in names], [f"{n}3" for n in names]

    def _result(self) -> str:
        """The block that takes a tile from the registers."""
        out = self.anchor.epilogue if self.final is None else None
        if out is None:
            out = f"{self.anchor.output}_tile"
            self.draft.do(CacheWrite, block=self.block, buffer=self.anchor.output, scope="local", label=out)
        else:
            self.draft.do(SetScope, block=self.block, scope="local")
        return out

    def _finish(self) -> None:
        do, block = self.draft.do, self.block
        out = self._result()
        do(ReverseComputeAt, block=out, loop=self.thread_loop)
        for name in self.inner[:-1]:
            do(Unroll, block=out, loop=name)
        do(Vectorize, block=out, loop=self.inner[-1])
        for fragment in self.fragments:
            around = len(self.draft.block(block).enclosing_loops) - len(self.inner)
            do(ComputeAt, block=fragment, loop=self.middle[-1], unit_loops=True)
            loops = self.draft.loops(fragment)[around:]
            for name in loops[:-1]:
                do(Unroll, block=fragment, loop=name)
            do(Vectorize, block=fragment, loop=loops[-1])
        for copy, operand in zip(self.copies, self._distinct(), strict=True):
            do(ComputeAt, block=copy, loop=self.reduce_loop, unit_loops=True)
            shared = len(self.draft.block(block).enclosing_loops) - len(self.middle) - len(self.inner)
            loops = self.draft.loops(copy)[shared:]
            if copy in self.turned:
                # Threads go along contiguous global memory, whatever the layout of the copy.
                loops = [loops[-1], *loops[:-1]]
                do(Reorder, block=copy, loops=tuple(loops))
            self.draft.fuse(copy, loops)
            fused = "_".join(loops)
            do(Split, block=copy, loop=fused, factors=(0, self.threads, self.vectors[operand.name]))
            do(Bind, block=copy, loop=f"{fused}1", thread="threadIdx.x")
            do(Vectorize, block=copy, loop=f"{fused}2")
        if self.steps and copies_of(self.draft.block(block).enclosing_loops[self._reduce_depth()]):
            do(Pipeline, block=block, loop=self.reduce_loop, stages=self.stages, registers=self.registers)
        self.draft.settled |= {block, out, *self.copies, *self.fragments}

    def _reduce_depth(self) -> int:
        loops = self.draft.loops(self.block)
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
            stages=self.stages.name,
            registers=self.registers.name,
            unroll=self.unrolled.name,
            split=self.split.name if self.split is not None else "",
            join=self.width.name if self.width is not None else "",
            divided=self.divided.name if self.divided is not None else "",
            sliced=self.variant.sliced,
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
            terms = [(a, abs(c)) for a, c in expr.terms if isinstance(a, str)]
            if self.variant.sliced and self.divided is not None:  # all slices of a step lie side by side
                rest = self.divided.name
                terms = [(rest if a == self.part else a, c) for a, c in terms if a != rest]
            moved = tuple((a, c) for a, c in terms if a in known)
            spans.append(Span(moved))
        return tuple(s for s in spans if s.strides)
