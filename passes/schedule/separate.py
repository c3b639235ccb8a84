"""Reduce over windows of several axes along one of them first, once for all windows that share it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.attributes import Axis
from ...dialects.index import IndexExpr, axis, constant
from ...dialects.loop import AllocOp, BlockOp, LoadOp, blocks_in, buffer_type, element_of_buffer
from ...dialects.te import YieldOp
from ..analysis.nest import (
    block_names,
    buffer_names,
    find_block,
    fresh_buffer_name,
    function_of,
    functions,
    nest_around,
)
from ..analysis.slides import Slide, slides_of
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._staging import legal_steps
from ._sums_of_products import Made, put_in_place, replay_in_place, require_own_loops
from ._tap_products import linear_index


@dataclass(frozen=True)
class Plan:
    """The block, and where it reads."""

    block: BlockOp
    read: tuple[IndexExpr, ...]


@dataclass(frozen=True)
class Separate(Primitive[Plan]):
    """`for h, w, ry, rx { block y[h, w] max= x[2 * h + ry, 2 * w + rx] }` with `axis=ry` ->

    `for h, w, ry { block y_ry[h, w] max= x[2 * h + ry, w] }`
    `for h, w, rx { block y[h, w] max= y_ry[h, 2 * w + rx] }`

    The first block has a result for each position that a window reaches along the other axes, so that windows which
    share some share what is reduced there: K * K terms become K + K of them. Maxima are the same, sums are added up in
    another order. Axes of a single term are in both blocks.

    Requires: a reduction to one result by a combiner of the language of one load at sums of iterators, without a
    predicate, in loops of its own that are its iterators; windows along `axis` and others, each in an index of its own.
    """

    name = "lw-separate"
    block: str
    axis: str

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        kinds = [op.name for op in block.body.block.ops]
        alone = block.has_init and len(block.outputs) == 1 and block.identity is None
        if not alone or kinds != ["lw_loop.load", "lw_te.yield"]:
            raise self.error(f"block '{self.block}' must reduce what it loads to one result, and no more", at=block)
        require_own_loops(self, block)
        (load,) = block.loads
        if block.conditions or load.conditions or load.positions:
            raise self.error(f"block '{self.block}' must have no predicate", at=block)
        taps = [a.name for a in block.axes if a.reduce and a.extent > 1]
        if self.axis not in taps:
            rule = f"axis must be one that '{self.block}' reduces over ({', '.join(taps)}), got '{self.axis}'"
            raise self.error(rule, at=block)
        read = [linear_index(e) for e in load.indices.data]
        plain = all(e.as_axis() is not None or e.is_constant for e in block.write_indices[0])
        indices = tuple(e for e in read if e is not None)
        if not plain or None in read or not _slides(indices, tuple(block.axes), self.axis):
            rule = f"block '{self.block}' must slide windows along '{self.axis}' and along others"
            raise self.error(f"{rule}, each in an index of its own", at=block)
        return Plan(block, indices)

    def rewrite(self, plan: Plan) -> None:
        block, func = plan.block, function_of(plan.block)
        taken = buffer_names(func) | block_names(func)
        label = fresh_buffer_name(f"{self.block}_{self.axis}", taken)
        ends = block.loads[0].buffer, block.outputs[0]
        made = self._made(label, tuple(block.axes), (plan.read, block.write_indices[0]), ends, block.combiner.data)
        put_in_place(block, made)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        label = fresh_buffer_name(f"{self.block}_{self.axis}", set(nest.buffers) | nest.stage_names)
        found = [[linear_index(e) for e in access.indices] for access in (stage.loads[0], stage.writes[0])]
        read, written = ([e for e in indices if e is not None] for indices in found)
        combiner = stage.combiner

        def made_of(axes: tuple[Axis, ...], data: Sequence[SSAValue], out: SSAValue) -> Made:
            return self._made(label, axes, (read, written), (data[0], out), combiner)

        replay_in_place(nest, stage, made_of)

    def _made(
        self,
        label: str,
        axes: tuple[Axis, ...],
        indices: tuple[Sequence[IndexExpr], Sequence[IndexExpr]],
        ends: tuple[SSAValue, SSAValue],
        combiner: str,
    ) -> Made:
        """The nests of both blocks, the first one called `label`, and the buffer between them."""
        (read, written), (data, out) = indices, ends
        slides = _slides(read, axes, self.axis)
        along, moved = {s.place.name: s for s in slides}, {s.dimension: s for s in slides}
        spatial = [a for a in axes if not a.reduce]
        longer = [Axis(a.name, along[a.name].reached(a.extent)) if a.name in along else a for a in spatial]
        alloc = AllocOp(label, buffer_type(element_of_buffer(out), [a.extent for a in longer], "global"))
        of_one_tap = {a.name: constant(0) for a in axes if a.reduce and a.extent == 1}
        others = [e.substitute(of_one_tap) for e in read]
        positions = [axis(s.place.name) + s.start if (s := moved.get(d)) else e for d, e in enumerate(others)]
        firsts = [*longer, *(a for a in axes if a.reduce and a.name == self.axis)]
        first = _nest(label, firsts, (data, positions), (alloc.buffer, [axis(a.name) for a in spatial]), combiner)
        places = [_place(along[a.name]) if a.name in along else axis(a.name) for a in spatial]
        seconds = [a for a in axes if not (a.reduce and a.name == self.axis)]
        second = _nest(self.block, seconds, (alloc.buffer, places), (out, written), combiner)
        return [first, second], [alloc]

    def describe(self) -> str:
        return f"Reduce {self.block} along {self.axis} first, once for all windows that share it."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Separate, ...]:
        blocks = (b for func in functions(module_op) for b in blocks_in(func) if b.is_reduction)
        steps = [cls(b.block_name, a.name) for b in blocks for a in b.axes if a.reduce and a.extent > 1]
        return legal_steps(steps, module_op)


def _slides(indices: Sequence[IndexExpr], axes: Sequence[Axis], first: str) -> tuple[Slide, ...]:
    """The windows along other iterators than `first`; none where some iterator is in no window alone."""
    found = tuple(s for s in slides_of(indices, axes) if s.tap.name != first)
    used = Counter(name for e in indices for name in e.axes())
    others = [a.name for a in axes if a.reduce and a.extent > 1 and a.name != first]
    alone = all(used[name] == 1 for s in found for name in (s.place.name, s.tap.name))
    forward = all(min(s.stride, s.dilation) >= 1 for s in found)
    return found if len(found) == len(others) and alone and forward else ()


def _place(slide: Slide) -> IndexExpr:
    """The position of a term of a window in what is reduced already."""
    return axis(slide.place.name) * slide.stride + axis(slide.tap.name) * slide.dilation


def _nest(
    label: str,
    axes: Sequence[Axis],
    source: tuple[SSAValue, Sequence[IndexExpr]],
    target: tuple[SSAValue, Sequence[IndexExpr]],
    combiner: str,
) -> Operation:
    load = LoadOp(*source)
    body = Region(Block([load, YieldOp.create(operands=[load.result])]))
    buffer, indices = target
    block = BlockOp(label, axes, [axis(a.name) for a in axes], [buffer], [tuple(indices)], body, combiner)
    return nest_around(block, [(a.name, a.extent) for a in axes])
