"""The meaning of instructions of PTX: operations of the kernel dialect that do the same, one for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf, vector
from xdsl.dialects import math as maths
from xdsl.dialects.builtin import IndexType, IntegerAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from .. import kernel
from ..buffers import element_of_buffer
from ..element import FLOAT32_BYTES, element_bytes
from ..kernel.ptx import ASKED, FLOAT, SIZE, Input
from ..walk import operations_in
from .loop import InterpretationError

_PLACE = r"\[(\w+?)([+-]\d+)?\]"
_LOAD = re.compile(rf"ld\.shared(?:\.v[24])?\.f32 \{{?([^\]}}]*?)\}}?, {_PLACE};")
_FMA = re.compile(r"fma\.rn\.f32 (\w+), (\w+), (\w+), (\w+);")
_COPY = re.compile(rf"(?:@(\w+) )?cp\.async\.(?:ca|cg)\.shared\.global {_PLACE}, {_PLACE}, (\d+)(?:, (\w+))?;")
_COMMIT = "cp.async.commit_group;"

Address = tuple[SSAValue, SSAValue]
"""A buffer, and the index of an element."""


def without_ptx(function: FuncOp) -> FuncOp:
    """Return a function in which operations of the dialect stand for instructions of PTX, as they do in a copy."""
    if not any(isinstance(op, kernel.PtxOp) for op in operations_in(function)):
        return function
    copy = function.clone()
    for op in list(operations_in(copy)):
        if isinstance(op, kernel.PtxOp):
            _Meaning(op).replace()
    return copy


class _Meaning:
    """The operations that stand for those of a block of instructions."""

    def __init__(self, op: kernel.PtxOp) -> None:
        self._op = op
        self._build = Builder(InsertPoint.before(op))
        self._values: dict[str, SSAValue] = {}
        """Floats and conditions by register; of bytes the condition that they are not 0 under."""
        self._addresses: dict[str, Address] = {}
        self._zero = self._number(0)
        self._forms: Sequence[tuple[re.Pattern[str], Callable[..., None]]] = (
            (_LOAD, self._load),
            (_FMA, self._multiply),
            (_COPY, self._copy),
        )

    def replace(self) -> None:
        """Put the operations in the place of the instructions."""
        code = self._op.code.data
        for each in code.inputs:
            self._set(each)
        for instruction in code.instructions:
            self._run(instruction)
        for output in code.outputs:
            buffer = self._op.values[output.operand]
            store = kernel.StoreOp(self._value(output.register), buffer, self._zero, output.number)
            self._build.insert(store)
        self._op.detach()  # type: ignore[no-untyped-call]
        self._op.erase()

    def _set(self, each: Input) -> None:
        operand = self._op.values[each.operand]
        if each.kind == FLOAT:
            self._values[each.register] = self._float(operand, each.number)
        elif each.kind in (SIZE, ASKED):
            self._values[each.register] = operand
        else:
            total = self._zero
            for number, factor in each.terms:
                product = self._build.insert(arith.MuliOp(self._op.values[number], self._number(factor)))
                total = self._build.insert(arith.AddiOp(total, product.result)).result
            self._addresses[each.register] = (operand, total)

    def _float(self, operand: SSAValue, number: int) -> SSAValue:
        if kernel.is_local_floats(operand):
            return self._build.insert(kernel.LoadOp(operand, self._zero, number, f32)).value
        if kernel.lanes_of(operand.type) == 1:
            return operand
        return self._build.insert(vector.ExtractOp(operand, [number], f32)).result

    def _run(self, instruction: str) -> None:
        if instruction == _COMMIT:
            self._build.insert(kernel.CommitOp())
            return
        for form, run in self._forms:
            if (found := form.fullmatch(instruction)) is not None:
                run(*found.groups())
                return
        raise InterpretationError(f"no meaning is known for '{instruction}'")

    def _load(self, registers: str, address: str, offset: str | None) -> None:
        buffer, index, first = self._element(address, offset, FLOAT32_BYTES)
        names = registers.split(", ")
        found, align = kernel.vector_of(f32, len(names)), FLOAT32_BYTES * len(names)
        loaded = self._build.insert(kernel.LoadOp(buffer, index, first, found, align=align)).value
        for lane, register in enumerate(names):
            self._values[register] = self._build.insert(vector.ExtractOp(loaded, [lane], f32)).result

    def _multiply(self, result: str, *factors: str) -> None:
        a, b, c = map(self._value, factors)
        self._values[result] = self._build.insert(maths.FmaOp(a, b, c)).results[0]

    def _copy(
        self,
        asked: str | None,
        to: str,
        to_offset: str | None,
        come: str,
        come_offset: str | None,
        size: str,
        left: str,
    ) -> None:
        element = element_bytes(element_of_buffer(self._addresses[come][0]))
        source, target = self._element(come, come_offset, element), self._element(to, to_offset, element)
        condition = self._value(left) if left else None
        copy = kernel.AsyncCopyOp(*source, *target, int(size) // element, condition)
        if asked is None:
            self._build.insert(copy)
        else:
            inside = Region(Block([copy, scf.YieldOp()]))
            self._build.insert(scf.IfOp(self._value(asked), [], inside))

    def _element(self, address: str, offset: str | None, size: int) -> tuple[SSAValue, SSAValue, int]:
        """Return a buffer, an index and an offset; InterpretationError for a place between two elements."""
        if address not in self._addresses:
            raise InterpretationError(f"register {address} is no address")
        first, rest = divmod(int(offset or 0), size)
        if rest:
            raise InterpretationError(f"{address}{offset} is between elements of {size} bytes")
        return *self._addresses[address], first

    def _value(self, register: str) -> SSAValue:
        if register not in self._values:
            raise InterpretationError(f"register {register} is read before it is set")
        return self._values[register]

    def _number(self, number: int) -> SSAValue:
        return self._build.insert(arith.ConstantOp(IntegerAttr(number, IndexType()))).result
