"""Staging, shared by primitives that put a buffer between two blocks: the copy, and where it and its buffer stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, TypeVar

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.attributes import Axis, IndicesAttr
from ...dialects.index import IndexExpr, axis
from ...dialects.loop import SCOPES, AllocOp, BlockOp, LoadOp
from ...dialects.te import YieldOp
from ..analysis.layout import AxisLayout
from ..analysis.nest import block_names, buffer_name, buffer_names, fresh_buffer_name, fresh_name, nest_around
from ..primitive import Primitive, ScheduleError

StepT = TypeVar("StepT", bound=Primitive[Any])


def copy_nest(
    label: str,
    axes: Sequence[Axis],
    source: tuple[SSAValue, Sequence[IndexExpr], Sequence[IndexExpr]],
    target: tuple[SSAValue, Sequence[IndexExpr]],
    notes: dict[str, Attribute] | None = None,
) -> Operation:
    """`for axes { block label { target[...] = source[...] where ... } }`; all over `axes`, which are loops as well."""
    load = LoadOp(*source)
    body = Region(Block([load, YieldOp.create(operands=[load.result])]))
    buffer, indices = target
    block = BlockOp(label, axes, [axis(a.name) for a in axes], [buffer], [tuple(indices)], body, annotations=notes)
    return nest_around(block, [(a.name, a.extent) for a in axes])


def dimension_names(layout: AxisLayout) -> list[str]:
    """Return a different name for each dimension of a layout."""
    names: list[str] = []
    for item in layout.items:
        names.append(fresh_name(item.identifier, names))
    return names


def top_level(op: Operation) -> Operation:
    """Return the operation around `op` (or itself) that stands directly in the function."""
    while not isinstance(parent := op.parent_op(), FuncOp):
        assert parent is not None
        op = parent
    return op


def insert_alloc(func: FuncOp, alloc: AllocOp) -> None:
    """Put an allocation behind those at the start of the function."""
    body = func.body.block
    op = body.first_op
    while isinstance(op, AllocOp):
        op = op.next_op
    assert op is not None
    body.insert_op_before(alloc, op)


def check_scope(step: object, scope: str, at: Operation) -> None:
    """Refuse a scope that does not exist."""
    if scope not in SCOPES:
        raise ScheduleError(step, f"scope must be one of {', '.join(SCOPES)}, got '{scope}'", at=at)


def scope_in_words(scope: str) -> str:
    """Describe a memory scope in the machine's terms."""
    return {"shared": "memory shared by a block", "local": "registers", "global": "memory"}.get(scope, scope)


def new_buffer_name(step: object, func: FuncOp, wanted: str, default: str, at: BlockOp) -> str:
    """Return a name free for a buffer and for the block that copies it: `wanted`, else one after `default`."""
    taken = buffer_names(func) | block_names(func)
    if not wanted:
        return fresh_buffer_name(default, taken)
    if not wanted.isidentifier():
        raise ScheduleError(step, f"label must be an identifier, got '{wanted}'", at=at)
    if wanted in taken:
        raise ScheduleError(step, f"label must be new, '{wanted}' is a buffer or block already", at=at)
    return wanted


def output_index(step: object, block: BlockOp, name: str) -> int:
    """Find the output of `block` that is the buffer `name`; where it writes one only, the name may be empty."""
    names = [buffer_name(output) for output in block.outputs]
    if not name and len(names) == 1:
        return 0
    if name in names:
        return names.index(name)
    rule = f"buffer must be one that block '{block.block_name}' writes ({', '.join(names)})"
    raise ScheduleError(step, f"{rule}, got '{name}'", at=block)


def values_taken(block: BlockOp, names: Iterable[str]) -> int:
    """Count the values that some iterators of a block take together, at most.

    They are fewer than the product of extents after `pad` of a fused loop, which ends in a part of the outermost
    iterator's last value, and of a stage of `pipeline`, which follows from another iterator.
    """
    used = set(names)
    moving = set[str]().union(*(block.bound[name].axes() for name in used))
    extents = prod(a.extent for a in block.axes if a.name in used)
    return min(extents, prod(loop.size for loop in block.enclosing_loops if loop.loop_name in moving))


def redirect_load(load: LoadOp, buffer: SSAValue, indices: Sequence[IndexExpr], where: Sequence[IndexExpr]) -> None:
    """Let a load read another buffer of the same element type."""
    load.operands[0] = buffer
    load.indices = IndicesAttr(tuple(indices))
    load.where = IndicesAttr(tuple(where)) if where else None


def redirect_write(block: BlockOp, position: int, buffer: SSAValue, indices: Sequence[IndexExpr]) -> None:
    """Let a block write one of its outputs elsewhere."""
    block.operands[position] = buffer
    writes = list(block.writes.data)
    writes[position] = IndicesAttr(tuple(indices))
    block.writes = ArrayAttr(writes)


def legal_steps(steps: Iterable[StepT], module: ModuleOp) -> tuple[StepT, ...]:
    """Return those of `steps` that are legal on `module`."""
    legal: dict[StepT, None] = {}
    for step in steps:
        try:
            step.check(module)
        except ScheduleError:
            continue
        legal[step] = None
    return tuple(legal)
