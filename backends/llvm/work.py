"""The time that a parallel loop takes on one core, estimated, and the threads that are worth their waking.

It counts the instructions of the loop's body, and the bytes that it reads and writes. That tells loops of a microsecond
from those of a hundred, which is all that is asked of it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import ceil
from typing import cast

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import IndexType, IntAttr, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects import kernel
from ...dialects.element import element_bytes
from ...dialects.kernel.types import element_of, lanes_of
from .types import buffer_bytes

CYCLES_A_THREAD = 3000
"""Cycles of work that are worth another thread: 1 us at 3 GHz, where a loop of one iteration a thread takes 0.9 us on 2
threads, 1.8 on 8 and 4.0 on 16. MobileNet v2 takes 1.73 ms with 1000, 1.65 with these, 1.87 with 8000 and 2.69 with
24000; a layer of BERT 2.59 ms where all loops take all threads, 1.97 with 1500, 1.85 with 6000 and 2.17 with 24000 (16
cores of a Xeon, Emerald Rapids)."""
_VECTOR_BYTES = 64
_BYTES_A_CYCLE = 16
"""Of memory that other cores wrote, or the last level of cache holds: 10 to 20 on a Xeon (Emerald Rapids)."""
_SIMPLE = 0.5
"""Cycles of an instruction on a vector: two of them are done in one."""
_SLOW = 8.0
"""Cycles of a division or a square root of a vector of 64 bytes (uops.info, VDIVPS and VSQRTPS of Ice Lake: 16)."""
FUNCTION_CYCLES = 15.0
"""Of a function that is a polynomial (exp, tanh, erf) on a vector."""
_UNKNOWN_TRIPS = 8
"""Iterations of a loop whose ends are not known. A choice."""
_SLOW_OPS = (arith.DivfOp, math.SqrtOp, math.RsqrtOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)


@dataclass
class _Work:
    """The work of a loop: cycles of instructions, and bytes read or written of each buffer from outside."""

    cycles: float = 0.0
    nbytes: Counter[SSAValue] = field(default_factory=Counter)


def threads_worth(extent: int, body: Block, most: int) -> int:
    """Return so many threads, of `most`, that each has work for longer than it takes to hand it over."""
    return max(1, min(most, extent, int(region_cycles(extent, body) / CYCLES_A_THREAD)))


def region_cycles(extent: int, body: Block) -> float:
    """Return the estimated cycles of all iterations of a parallel loop on one core."""
    work = _Work()
    _add_block(work, body, float(extent))
    moved = sum(min(count, buffer_bytes(_buffer_type(buffer))) for buffer, count in work.nbytes.items())
    return max(work.cycles, moved / _BYTES_A_CYCLE)


def _buffer_type(buffer: SSAValue) -> MemRefType[Attribute]:
    return cast(MemRefType[Attribute], buffer.type)


def _add_block(work: _Work, block: Block, times: float) -> None:
    for op in block.ops:
        if isinstance(op, scf.ForOp):
            _add_block(work, op.regions[0].blocks[0], times * _trips(op))
        elif isinstance(op, kernel.ParallelOp):
            _add_block(work, op.regions[0].blocks[0], times * cast(IntAttr, op.properties["extent"]).data)
        elif isinstance(op, scf.IfOp):
            for region in op.regions:
                if region.blocks:
                    _add_block(work, region.blocks[0], times)
        else:
            work.cycles += times * _cycles(op)
            _add_bytes(work, op, times)


def _trips(loop: scf.ForOp) -> int:
    low, high, step = (_constant(value) for value in loop.operands[:3])
    if low is None or high is None or not step:
        return _UNKNOWN_TRIPS
    return max(0, ceil((high - low) / step))


def _constant(value: SSAValue) -> int | None:
    """Return the value of a constant, or the constant one of two whose lesser one is taken."""
    op = value.owner
    if (number := const_evaluate_operand(value)) is not None:
        return number
    if isinstance(op, arith.MinSIOp):
        return next((known for each in op.operands if (known := _constant(each)) is not None), None)
    return None


def _cycles(op: Operation) -> float:
    if isinstance(op, (kernel.TileProductOp, kernel.TileLoadOp)):
        return 16.0
    values = [*op.results, *op.operands]
    if not values or isinstance(op, (arith.ConstantOp, kernel.AllocOp)) or isinstance(values[0].type, IndexType):
        return 0.0
    if isinstance(op, (kernel.GatherOp, kernel.ScatterOp)):
        return float(lanes_of(values[0].type))
    vectors = max(1, ceil(_value_bytes(values[0].type) / _VECTOR_BYTES))
    if isinstance(op, _SLOW_OPS):
        return vectors * _SLOW
    if type(op).__module__ == math.__name__ and not isinstance(op, (math.FmaOp, math.AbsFOp)):
        return vectors * FUNCTION_CYCLES
    return vectors * _SIMPLE


def _value_bytes(value_type: Attribute) -> int:
    if isinstance(value_type, MemRefType):
        return _VECTOR_BYTES
    return lanes_of(value_type) * element_bytes(element_of(value_type))


def _add_bytes(work: _Work, op: Operation, times: float) -> None:
    if not isinstance(op, (kernel.LoadOp, kernel.StoreOp, kernel.GatherOp, kernel.ScatterOp)):
        return
    value = op.results[0] if op.results else op.operands[0]
    for operand in op.operands:
        if isinstance(operand.type, MemRefType) and not isinstance(operand.owner, Operation):
            work.nbytes[operand] += int(times * _value_bytes(value.type))
