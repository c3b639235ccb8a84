"""Start reductions: what a reduction starts from is written by a nest of its own, before the loops it reduces over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, MemRefType, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from ...dialects.element import is_float, is_unsigned
from ...dialects.interpret.loop import initial_value
from ...dialects.loop import BlockOp, ForOp, blocks_in
from ...dialects.te import YieldOp, unsigned_constant
from ..analysis.matrix_product import TENSORIZE
from ..analysis.nest import block_names, fresh_name, functions_on_loops
from ._block_plan import reduce_loops
from ._starts import STARTS
from ._steps import note_step, require_after
from ._thread_dependence import over_threads
from ._tile_product import tile_intrinsic
from .place_barriers import PlaceBarriers


@dataclass(frozen=True)
class StartReductions(ModulePass):
    """`for k { for j { block c (j, reduce k) writes %c[j] add { v } } }` ->

    `for j { block c$start (j) writes %c[j] { 0 } }
    for k { for j { block c (j, reduce k) writes %c[j] add no_init { v } } }`

    The loops of the start are called like those of the reduction. A reduction over loops of one iteration takes what it
    starts from as it is, and one over the threads of a block holds it in registers: both stay as they are. The nest of
    a matrix instruction stays whole; what one of a CPU starts from is written in vectors, or as one of its tiles.

    Requires: barriers placed (`lw-place-barriers`), which are before a reduction's start as well.
    """

    name = "lw-start-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_after(func, self.name, PlaceBarriers.name)
            start_reductions(func)


def start_reductions(func: FuncOp) -> None:
    """Write out what the reductions of a function start from, in place."""
    taken = block_names(func)
    for block in list(blocks_in(func)):
        reduced = reduce_loops(block)
        if not block.has_init or not reduced or over_threads(reduced):
            continue
        name = fresh_name(f"{block.block_name}$start", taken)
        taken.add(name)
        loops = block.enclosing_loops
        first = next(k for k, loop in enumerate(loops) if loop.loop_name in reduced or TENSORIZE in loop.notes)
        inner = [loop for loop in loops[first:] if loop.loop_name not in reduced]
        parent = loops[first].parent_block()
        assert parent is not None
        parent.insert_op_before(_nest(inner, _start(block, name, reduced), _tile_kinds(inner)), loops[first])
        block.no_init = UnitAttr()
    note_step(func, StartReductions.name)


def _tile_kinds(loops: Sequence[ForOp]) -> dict[ForOp, str]:
    """The kinds of the loops of a CPU's matrix instruction around what it starts from: the innermost one is lanes."""
    first = next((k for k, loop in enumerate(loops) if tile_intrinsic(loop) is not None), len(loops))
    return {loop: "vectorized" if loop is loops[-1] else "unrolled" for loop in loops[first:]}


def _nest(loops: Sequence[ForOp], inside: Operation, kinds: Mapping[ForOp, str]) -> Operation:
    """An operation in loops like those given, some of which are of other kinds."""
    for loop in reversed(loops):
        made = ForOp(loop.loop_name, loop.size, Region(Block([inside])), kinds.get(loop, loop.loop_kind))
        intrinsic = tile_intrinsic(loop)
        if intrinsic is not None and intrinsic.tiles:
            made.annotate(TENSORIZE, StringAttr(intrinsic.name))
        inside = made
    return inside


def _start(block: BlockOp, name: str, reduced: set[str]) -> BlockOp:
    """The block that writes what a reduction starts from, one element in each instance."""
    values = [_constant(block, position) for position in range(len(block.outputs))]
    written = {name for write in block.write_indices for e in write for name in e.axes()}
    kept = [(a, e) for a, e in zip(block.axes, block.bindings.data, strict=True) if a.name in written]
    return BlockOp(
        name,
        [a for a, _ in kept],
        [e for _, e in kept],
        block.outputs,
        block.write_indices,
        Region(Block([*values, YieldOp(operands=[[value.results[0] for value in values]])])),
        where=[c for c in block.conditions if c.axes().isdisjoint(reduced)],
        annotations={STARTS: StringAttr(block.block_name)},
    )


def _constant(block: BlockOp, position: int) -> Operation:
    output = block.outputs[position].type
    assert isinstance(output, MemRefType)
    element, value = output.element_type, initial_value(block, position)
    if is_float(element):
        return arith.ConstantOp(FloatAttr(float(value), element))
    if is_unsigned(element):
        return unsigned_constant(int(value), element)
    return arith.ConstantOp(IntegerAttr(int(value), element))
