"""Sums of products of two loads, which steps compute another way: what they ask of them, and nests in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp, f16, f32, f64, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.attributes import Axis
from ...dialects.loop import AllocOp, BlockOp, buffer_type, element_of_buffer
from ..analysis.nest import find_block, function_of, only_child
from ..parametric.nest import Nest, Stage
from ..parametric.read import read_nests
from ..parametric.sizes import known_number
from ..primitive import Primitive
from ._staging import insert_alloc, top_level

_ELEMENTS = {4: f32, 8: f64}
"""Types that such sums are exact enough in when terms are added up in another order, by their bytes."""
_OF_BYTES = {1: i8, 2: f16, **_ELEMENTS}
"""A type of so many bytes."""

Made = tuple[Sequence[Operation], Sequence[AllocOp]]
"""Nests, and what they allocate."""


def require_sum_of_products(step: Primitive[Any], module: ModuleOp, name: str, masked: bool = False) -> BlockOp:
    """Return the block called so; ScheduleError where it is no sum of products in fp32 or fp64 in loops of its own.

    Its loads may have conditions where `masked`.
    """
    block = find_block(step, module, name)
    kinds = [op.name for op in block.body.block.ops]
    if not block.has_init or kinds != ["lw_loop.load", "lw_loop.load", "arith.mulf", "lw_te.yield"]:
        raise step.error(f"block '{name}' must be a sum of products of two loads", at=block)
    if element_of_buffer(block.outputs[0]) not in _ELEMENTS.values() or block.combiner.data != "add":
        raise step.error(f"block '{name}' must be a sum of fp32 or fp64", at=block)
    require_own_loops(step, block)
    conditions = any(load.conditions for load in block.loads) and not masked
    if block.conditions or conditions or any(load.positions for load in block.loads):
        raise step.error(f"block '{name}' must have no predicate", at=block)
    return block


def require_own_loops(step: Primitive[Any], block: BlockOp) -> None:
    """Refuse a block that is not in loops of its own that are its iterators."""
    loops = [loop.loop_name for loop in block.enclosing_loops]
    if sorted(loops) != sorted(str(e.as_axis()) for e in block.bindings.data) or _holds_others(block):
        rule = f"block '{block.block_name}' must be in loops of its own, one for each iterator: this step comes first"
        raise step.error(rule, at=block)


def _holds_others(block: BlockOp) -> bool:
    """True where a loop around a block holds more than the next one, or is marked."""
    return any(only_child(loop) is None or loop.loop_kind != "serial" or loop.notes for loop in block.enclosing_loops)


def put_in_place(block: BlockOp, made: Made) -> None:
    """Put nests in the place of the one that a block is in."""
    func, nest = function_of(block), top_level(block)
    nests, allocs = made
    for alloc in allocs:
        insert_alloc(func, alloc)
    place = nest.parent_block()
    assert place is not None
    for op in nests:
        place.insert_op_before(op, nest)
    place.erase_op(nest)


def replay_in_place(
    nest: Nest, stage: Stage, make: Callable[[tuple[Axis, ...], Sequence[SSAValue], SSAValue], Made]
) -> None:
    """The same in a parametric nest: `make` has the iterators, what the loads of the stage read, and what it writes."""
    axes = tuple(Axis(a.name, known_number(a.extent), a.is_reduce) for a in stage.iterators)
    buffers = [*(load.buffer for load in stage.loads), stage.writes[0].buffer]
    types: list[Attribute] = [
        buffer_type(_OF_BYTES[b.element_bytes], [known_number(n) for n in b.shape], b.scope) for b in buffers
    ]
    *read, out = arguments = Block(arg_types=types).args
    nests, allocs = make(axes, read, out)
    position = nest.root.body.index(nest.top_level(stage))
    stage.take_out()
    read_nests(nest, position, nests, allocs, dict(zip(arguments, buffers, strict=True)))
