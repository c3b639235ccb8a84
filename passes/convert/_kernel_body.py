"""Statements of the kernel dialect as operations of memref, arith, scf, vector and gpu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from xdsl.dialects import arith, func, gpu, memref, scf, vector
from xdsl.dialects.builtin import (
    IntAttr,
    IntegerAttr,
    MemRefType,
    VectorType,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects import kernel
from ...dialects.buffers import scope_of
from ...dialects.kernel import element_of
from ...dialects.target import LINE_BYTES, WARP
from . import _memory as memory
from ._builder import Builder
from ._gpu_shuffle import ShuffleOp
from ._statements import Statements
from ._types import signless, stored

NAME = "lw-convert-kernel-to-mlir"
SHARED = IntegerAttr(3, 64)
"""The memory space of a block's shared memory, by the number it has in NVVM, ROCDL and SPIR-V for OpenCL."""


class KernelBody(Statements):
    """Writes the statements of a function or a launch."""

    def value(self, old: SSAValue) -> SSAValue:
        """Return what an operand has become; a value from outside of a launch is computed again in it."""
        if old not in self.values:
            assert isinstance(old.owner, Operation)
            self.write(old.owner)
        return self.values[old]

    def statements(self, block: Block) -> None:
        """Write the statements of a block to the builder's block, which their allocations end with."""
        heap: list[SSAValue] = []
        for op in block.ops:
            self.write(op)
            if isinstance(op, kernel.AllocOp) and scope_of(op.buffer) == "global":
                heap.append(self.values[op.buffer])
        self.b.block.add_ops(memref.DeallocOp.get(buffer) for buffer in heap)

    def write(self, op: Operation) -> None:
        """Write one statement; PassFailedException for one that is not of a kernel."""
        handler = _HANDLERS.get(type(op))
        if handler is not None:
            handler(self, op)
        elif not self.plain(op):
            raise PassFailedException(f"{NAME}: {_why_not(op)}")

    # -- control ------------------------------------------------------------------------------------------------------

    def region(self, block: Block, end: Operation) -> Region:
        """Return a region of a block with these statements, and arguments of these types."""
        new = Block(arg_types=[a.type for a in block.args])
        self.values.update(zip(block.args, new.args, strict=True))
        for argument, old in zip(new.args, block.args, strict=True):
            argument.name_hint = old.name_hint
        with self.b.within(new):
            self.statements(block)
        new.add_op(end)
        return Region(new)

    def loop(self, op: Operation) -> None:
        if len(op.operands) > 3:
            raise PassFailedException(f"{NAME}: loops of a kernel carry no values, this one does: {op.name}")
        low, high, step = (self.value(operand) for operand in op.operands)
        body = self.region(op.regions[0].block, scf.YieldOp())
        self.b.block.add_op(scf.ForOp(low, high, step, [], body))

    def branch(self, op: Operation) -> None:
        condition = self.value(op.operands[0])
        regions = [self.region(r.block, scf.YieldOp()) if r.blocks else Region() for r in op.regions]
        self.b.block.add_op(scf.IfOp.create(operands=[condition], regions=regions))

    def parallel(self, op: Operation) -> None:
        """Write a parallel loop; MLIR gives back what each iteration has on the stack when that ends."""
        assert isinstance(op, kernel.ParallelOp)
        low, high, step = (self.b.constant(n) for n in (0, op.extent.data, 1))
        self.b.block.add_op(scf.ParallelOp([low], [high], [step], self.region(op.body.block, scf.ReduceOp())))

    # -- memory -------------------------------------------------------------------------------------------------------

    def alloc(self, op: Operation) -> None:
        """Write an allocation of the stack or the heap; shared memory is of a launch, which brings its own."""
        assert isinstance(op, kernel.AllocOp)
        if op.buffer in self.values:
            return
        old = cast("MemRefType[Attribute]", op.buffer.type)
        kind = memref.AllocaOp if scope_of(op.buffer) == "local" else memref.AllocOp
        buffer = self.b.add(kind.get(stored(old.element_type), LINE_BYTES, old.get_shape()))
        buffer.name_hint = op.buffer.name_hint
        self.values[op.buffer] = buffer

    def access(self, op: Operation) -> None:
        operands = [self.value(operand) for operand in op.operands]
        if isinstance(op, kernel.AsyncCopyOp):
            memory.copy(self.b, op, operands)
        elif op.results:
            self.values[op.results[0]] = _READS[type(op)](self.b, op, operands)
        else:
            _WRITES[type(op)](self.b, op, operands)

    # -- values -------------------------------------------------------------------------------------------------------

    def lanewise(self, op: Operation) -> None:
        """Write lane by lane what `arith` does for scalars: comparisons, conversions, choices."""
        operands = [self.value(operand) for operand in op.operands]
        kind = signless(op.results[0].type)

        def lane(number: int) -> SSAValue:
            values = [self.b.lane(operand, number) for operand in operands]
            if isinstance(op, kernel.CompareOp):
                return self.b.compare(op.predicate.data, *values)
            if isinstance(op, kernel.ConvertOp):
                return self.converted(kernel.CONVERSIONS[op.conversion.data], values[0], element_of(kind))
            return self.b.select(*values)

        self.values[op.results[0]] = self.b.lane_by_lane(kind, lane)

    def divide(self, op: Operation) -> None:
        """Write an integer division; lanes that divide by zero, which a mask has left out, divide by one."""
        a, divisor = (self.value(operand) for operand in op.operands)
        kind = a.type
        if not isinstance(kind, VectorType):
            self.plain(op)
            return
        zero, one = (self.b.constant(n, element_of(kind)) for n in (0, 1))

        def lane(number: int) -> SSAValue:
            by = self.b.lane(divisor, number)
            by = self.b.select(self.b.compare("eq", by, zero), one, by)
            return self.b.binary(type(op), self.b.lane(a, number), by)

        self.values[op.results[0]] = self.b.lane_by_lane(kind, lane)

    def lanes(self, op: Operation) -> None:
        kind = cast("VectorType[Any]", signless(op.results[0].type))
        self.values[op.results[0]] = self.b.lane_numbers(kind)

    def mask(self, op: Operation) -> None:
        """Write a mask as `vector.create_mask`, whose first lanes are on, or as what that leaves out."""
        start, step = self.value(op.operands[0]), cast(IntAttr, op.properties["step"]).data
        kind, zero = op.results[0].type, self.b.constant(0)
        if not isinstance(kind, VectorType) or step == 0:
            found = self.b.broadcast(self.b.compare("sge", start, zero), kind)
        elif step < 0:  # on where start - l * -step >= 0: the first floor(start / -step) + 1 lanes
            found = self._first_lanes(self.b.plus(self._divided(start, -step), 1), kind)
        else:  # off where l * step < -start: the first ceil(-start / step) = -floor(start / step) lanes
            count = self.b.binary(arith.SubiOp, zero, self._divided(start, step))
            found = self.b.binary(arith.XOrIOp, self._first_lanes(count, kind), self.b.constant(-1, kind))
        self.values[op.results[0]] = found

    def _divided(self, value: SSAValue, divisor: int) -> SSAValue:
        return value if divisor == 1 else self.b.binary(arith.FloorDivSIOp, value, self.b.constant(divisor))

    def _first_lanes(self, count: SSAValue, kind: VectorType[Any]) -> SSAValue:
        return self.b.add(vector.CreateMaskOp([count], kind))

    # -- threads ------------------------------------------------------------------------------------------------------

    def thread(self, op: Operation) -> None:
        assert isinstance(op, kernel.ThreadOp)
        level, _, dimension = op.axis.data.partition(".")
        kind = gpu.BlockIdOp if level == "blockIdx" else gpu.ThreadIdOp
        result = self.b.add(kind(gpu.DimensionAttr(gpu.DimensionEnum(dimension))))
        result.name_hint = op.result.name_hint
        self.values[op.result] = result

    def barrier(self, op: Operation) -> None:
        self.b.block.add_op(gpu.BarrierOp.create())

    def shuffle(self, op: Operation) -> None:
        assert isinstance(op, kernel.ShuffleOp)
        distance, width = (self.b.constant(n, i32) for n in (op.distance.data, WARP))
        self.values[op.result] = self.b.add(ShuffleOp(self.value(op.value), distance, width))

    def nothing(self, op: Operation) -> None:
        """Write nothing: a hint, the end of a region, or a wait for what has been copied at once."""


def _why_not(op: Operation) -> str:
    if op.name.startswith(f"{kernel.LwKernel.name}."):
        return (
            f"{op.name} is an instruction of one device, which memref, vector and gpu do not have: emit CUDA, or LLVM"
        )
    return f"{op.name} is no operation of a kernel: run lw-lower-loop-to-kernel first"


_READS: dict[type[Operation], Callable[[Builder, Operation, list[SSAValue]], SSAValue]] = {
    kernel.LoadOp: memory.load,
    kernel.GatherOp: memory.gather,
}
_WRITES: dict[type[Operation], Callable[[Builder, Operation, list[SSAValue]], None]] = {
    kernel.StoreOp: memory.store,
    kernel.ScatterOp: memory.scatter,
}
Handler: TypeAlias = Callable[[KernelBody, Operation], None]

_HANDLERS: dict[type[Operation], Handler] = {
    scf.ForOp: KernelBody.loop,
    scf.IfOp: KernelBody.branch,
    scf.YieldOp: KernelBody.nothing,
    func.ReturnOp: KernelBody.nothing,
    kernel.ParallelOp: KernelBody.parallel,
    kernel.AllocOp: KernelBody.alloc,
    **dict.fromkeys((*_READS, *_WRITES, kernel.AsyncCopyOp), KernelBody.access),
    **dict.fromkeys((kernel.CompareOp, kernel.ConvertOp, kernel.SelectOp), KernelBody.lanewise),
    **dict.fromkeys((arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp), KernelBody.divide),
    **dict.fromkeys((arith.FloorDivSIOp, arith.CeilDivSIOp), KernelBody.divide),
    kernel.LanesOp: KernelBody.lanes,
    kernel.MaskOp: KernelBody.mask,
    kernel.ThreadOp: KernelBody.thread,
    kernel.BarrierOp: KernelBody.barrier,
    kernel.ShuffleOp: KernelBody.shuffle,
    **dict.fromkeys((kernel.PrefetchOp, kernel.CommitOp, kernel.WaitOp), KernelBody.nothing),
}
