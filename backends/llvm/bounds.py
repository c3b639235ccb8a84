"""Bounds checks of every access of a kernel, as LLVM text: one outside of its buffer is recorded, and ends the kernel.

Before each access a branch tests the elements that it is about to touch, of masked ones those of active lanes. The
access itself is printed as ever, so the code that runs without the tests is what is tested. The first access that fails
its test writes its number and the element into a global record; its thread returns from the kernel, or from its chunk
of a parallel loop, and the kernel ends behind the loop.
"""

from __future__ import annotations

from math import prod
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ...dialects import kernel
from ..function_arguments import arguments_of
from .function import Function
from .outside import CheckedAccess
from .symbols import TRAP_SYMBOL
from .types import lanes_of, splat_text, vector_text

_TRAP = f"""@{TRAP_SYMBOL} = global [2 x i64] zeroinitializer, align 8
define internal void @lw.outside(i64 %access, i64 %index) #1 {{
entry:
  %swap = cmpxchg ptr @{TRAP_SYMBOL}, i64 0, i64 %access monotonic monotonic, align 8
  %first = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %first, label %record, label %done
record:
  %place = getelementptr i64, ptr @{TRAP_SYMBOL}, i64 1
  store i64 %index, ptr %place, align 8
  br label %done
done:
  ret void
}}"""

_KINDS: dict[type[Operation], str] = {
    kernel.LoadOp: "load",
    kernel.StoreOp: "store",
    kernel.GatherOp: "gather",
    kernel.ScatterOp: "scatter",
    kernel.TileLoadOp: "load",
    kernel.TileProductOp: "product",
    kernel.TileStartOp: "store",
}


def check_access(f: Function, op: Operation) -> None:
    """Print the bounds check before an operation that loads or stores; nothing before others."""
    if isinstance(op, kernel.LoadOp | kernel.StoreOp):
        lanes, stride = lanes_of(op.value.type) or 1, op.stride.data
        place, offset = f.names[op.index], op.offset.data
        mask = None if op.mask is None else f.names[op.mask]
        if lanes == 1:
            _test_scalar(f, op, op.buffer, _added(f, place, offset), mask)
            return
        steps = [offset + lane * stride for lane in range(lanes)]
        if mask is None and place[0] != "%" and _inside(op.buffer, int(place) + steps[0], int(place) + steps[-1]):
            return
        first = f.put(f"insertelement <{lanes} x i64> poison, i64 {place}, i32 0")
        zeros = "zeroinitializer"
        base = f.put(f"shufflevector <{lanes} x i64> {first}, <{lanes} x i64> poison, <{lanes} x i32> {zeros}")
        indices = f.put(f"add <{lanes} x i64> {base}, {vector_text(list(map(str, steps)), 'i64')}")
        _test_lanes(f, op, op.buffer, indices, lanes, mask)
    elif isinstance(op, kernel.GatherOp | kernel.ScatterOp):
        lanes = lanes_of(op.indices.type) or 1
        _test_lanes(f, op, op.buffer, f.names[op.indices], lanes, f.names[op.mask])
    elif isinstance(op, kernel.TileLoadOp):
        _test_rows(f, op, op.buffer, op.index, op.meaning().elements(op.operand.data))
    elif isinstance(op, kernel.TileProductOp | kernel.TileStartOp):
        _test_rows(f, op, op.sums, op.index, op.meaning().elements("c"))


def leave_where_trapped(f: Function) -> None:
    """Print the return of a function where a parallel loop in it recorded an access outside of a buffer."""
    number = f.put(f"load i64, ptr @{TRAP_SYMBOL}, align 8")
    _leave(f, f.put(f"icmp ne i64 {number}, 0"))


def _added(f: Function, place: str, offset: int) -> str:
    if place[0] != "%":
        return str(int(place) + offset)
    return f.put(f"add i64 {place}, {offset}") if offset else place


def _extent(buffer: SSAValue) -> int:
    return prod(cast(MemRefType[Attribute], buffer.type).get_shape())


def _inside(buffer: SSAValue, *indices: int) -> bool:
    return all(0 <= index < _extent(buffer) for index in indices)


def _test_rows(
    f: Function,
    op: kernel.TileLoadOp | kernel.TileProductOp | kernel.TileStartOp,
    buffer: SSAValue,
    index: SSAValue,
    elements: int,
) -> None:
    """Test the first and the last element of a tile, between which all others are."""
    first, rows = op.offset.data, op.rows.data
    last = first + (rows - 1) * op.step.data + elements // rows - 1
    for offset in (min(first, last), max(first, last)):
        _test_scalar(f, op, buffer, _added(f, f.names[index], offset), None)


def _test_scalar(f: Function, op: Operation, buffer: SSAValue, index: str, mask: str | None) -> None:
    if index[0] != "%" and _inside(buffer, int(index)):
        return
    outside = f.put(f"icmp uge i64 {index}, {_extent(buffer)}")
    if mask is not None:
        outside = f.put(f"and i1 {outside}, {mask}")
    _leave(f, outside, _number(f, op, buffer, 1), index)


def _test_lanes(f: Function, op: Operation, buffer: SSAValue, indices: str, lanes: int, mask: str | None) -> None:
    truths = f"<{lanes} x i1>"
    outside = f.put(f"icmp uge <{lanes} x i64> {indices}, {splat_text(str(_extent(buffer)), 'i64', lanes)}")
    if mask is not None:
        outside = f.put(f"and {truths} {outside}, {mask}")
    some = f.intrinsic("vector.reduce.or", "i1", [truths], (truths, outside))
    bits = f.put(f"bitcast {truths} {outside} to i{lanes}")
    lane = f.intrinsic("cttz", f"i{lanes}", [f"i{lanes}"], (f"i{lanes}", bits), ("i1", "false"))
    index = f.put(f"extractelement <{lanes} x i64> {indices}, i{lanes} {lane}")
    _leave(f, some, _number(f, op, buffer, lanes), index)


def _number(f: Function, op: Operation, buffer: SSAValue, lanes: int) -> int:
    """Enter an access into the kernel's table; return its number, from 1."""
    f.module.accesses.append(CheckedAccess(_KINDS[type(op)], _label(buffer), _extent(buffer), lanes))
    return len(f.module.accesses)


def _label(buffer: SSAValue) -> str:
    if isinstance(buffer, BlockArgument):
        function = buffer.block.parent_op()
        assert isinstance(function, FuncOp)
        return arguments_of(function)[buffer.index].name
    assert isinstance(buffer.owner, kernel.AllocOp)
    return buffer.owner.label.data


def _leave(f: Function, condition: str, number: int = 0, index: str = "") -> None:
    """Print the return where `condition` holds, after recording access `number` if one is given."""
    f.module.symbols.setdefault(f"@{TRAP_SYMBOL}", _TRAP)
    trap, inside = f.label("outside"), f.label("inside")
    f.branch(condition, trap, inside)
    f.start_block(trap)
    if number:
        f.do(f"call void @lw.outside(i64 {number}, i64 {index})")
    f.lines.append("  ret void")
    f.start_block(inside)
