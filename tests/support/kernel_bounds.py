"""Walk a GPU kernel for every thread, addresses and branches only, and report accesses outside of their buffers.

Accesses under masks that differ from lane to lane are left out. Integers that are loaded are the largest there are, so
that a position that is read is the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from loopwright.dialects import kernel

_INDEX: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivUIOp: lambda a, b: a // b,
    arith.RemUIOp: lambda a, b: a % b,
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.AndIOp: lambda a, b: a and b,
    arith.OrIOp: lambda a, b: a or b,
}
_COMPARE = {0: "__eq__", 1: "__ne__", 2: "__lt__", 3: "__le__", 4: "__gt__", 5: "__ge__"}


def outside(module: ModuleOp) -> list[str]:
    """One line for each load or store that leaves its buffer in some thread; [] where all stay inside."""
    found: dict[str, None] = {}
    for func in (f for f in module.ops if isinstance(f, FuncOp)):
        values: dict[SSAValue, int] = {}
        for op in func.body.block.ops:
            if isinstance(op, arith.ConstantOp):
                _constant(op, values)
            elif isinstance(op, kernel.LaunchOp):
                sizes = dict(zip(kernel.THREAD_AXES, (*op.grid_size, *op.block_size), strict=True))
                for point in product(*(range(n) for n in sizes.values())):
                    place = dict(zip(sizes, point, strict=True))
                    _walk(op.body.block, dict(values), place, found)
    return list(found)


def _walk(  # noqa: C901
    block: Block, values: dict[SSAValue, int], place: dict[str, int], found: dict[str, None]
) -> None:
    for op in block.ops:
        if isinstance(op, arith.ConstantOp):
            _constant(op, values)
        elif isinstance(op, kernel.ThreadOp):
            values[op.result] = place[op.axis.data]
        elif isinstance(op, arith.CmpiOp):
            if op.lhs in values and op.rhs in values:
                values[op.result] = int(getattr(values[op.lhs], _COMPARE[op.predicate.value.data])(values[op.rhs]))
        elif type(op) in _INDEX:
            left, right = op.operands
            if left in values and right in values:
                values[op.results[0]] = int(_INDEX[type(op)](values[left], values[right]))
        elif isinstance(op, vector.BroadcastOp):
            if op.source in values:
                values[op.vector] = values[op.source]
        elif isinstance(op, arith.SelectOp):
            if op.cond in values and (chosen := op.lhs if values[op.cond] else op.rhs) in values:
                values[op.result] = values[chosen]
        elif isinstance(op, arith.IndexCastOp | arith.ExtSIOp | arith.TruncIOp):
            if op.operands[0] in values:
                values[op.results[0]] = values[op.operands[0]]
        elif isinstance(op, kernel.LoadOp | kernel.StoreOp):
            _check(op, values, found)
            if isinstance(op, kernel.LoadOp) and isinstance(op.value.type, IntegerType):
                values[op.value] = (1 << op.value.type.width.data - 1) - 1
        elif isinstance(op, scf.ForOp):
            for i in range(values[op.lb], values[op.ub], values[op.step]):
                values[op.body.block.args[0]] = i
                _walk(op.body.block, values, place, found)
        elif isinstance(op, scf.IfOp):
            region = op.true_region if values[op.cond] else op.false_region
            if region.blocks:
                _walk(region.block, values, place, found)


def _constant(op: arith.ConstantOp, values: dict[SSAValue, int]) -> None:
    """Keep the number of a constant, which is no vector; floats take no part in addresses."""
    assert isinstance(op.value, IntegerAttr | FloatAttr)
    if isinstance(op.value, IntegerAttr):
        values[op.result] = op.value.value.data


def _check(op: kernel.LoadOp | kernel.StoreOp, values: dict[SSAValue, int], found: dict[str, None]) -> None:
    if op.mask is not None and not values.get(op.mask, 0):
        return
    assert isinstance(op.buffer.type, MemRefType)
    size = prod(op.buffer.type.get_shape())
    value_type = op.value.type
    first = values[op.index] + op.offset.data
    last = first + (kernel.lanes_of(value_type) - 1) * op.stride.data
    if min(first, last) < 0 or max(first, last) >= size:
        found[f"{op.name} of '{op.buffer.name_hint}' of {size}"] = None
