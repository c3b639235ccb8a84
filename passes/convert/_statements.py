"""Statements that all levels share: constants, conversions, and whatever arith, math and vector have as it is."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ._builder import Builder
from ._types import signless


class Statements:
    """Writes statements to a builder; `values` is what each value has become."""

    def __init__(self, entry: Block, values: dict[SSAValue, SSAValue]) -> None:
        self.b = Builder(entry)
        self.values = values

    def value(self, old: SSAValue) -> SSAValue:
        """Return what an operand has become."""
        return self.values[old]

    def plain(self, op: Operation) -> bool:
        """Write an operation of arith, math or vector on signless integers; False for one of another dialect."""
        if isinstance(op, arith.ConstantOp):
            self._constant(op)
        elif isinstance(op, arith.FPToSIOp | arith.FPToUIOp | arith.ExtSIOp | arith.ExtUIOp | arith.TruncIOp):
            (result,) = op.results
            self.values[result] = self.converted(type(op), self.value(op.operands[0]), signless(result.type))
        elif op.name.partition(".")[0] in ("arith", "math", "vector"):
            operands = [self.value(operand) for operand in op.operands]
            kinds = [signless(result.type) for result in op.results]
            copy = type(op).create(operands=operands, result_types=kinds, properties=dict(op.properties))
            self.b.block.add_op(copy)
            self.values.update(zip(op.results, copy.results, strict=True))
        else:
            return False
        return True

    def _constant(self, op: arith.ConstantOp) -> None:
        value, kind = op.value, signless(op.result.type)
        if kind == op.result.type:
            self.values[op.result] = self.b.literal(value, kind)
            return
        assert isinstance(value, IntegerAttr | DenseIntOrFPElementsAttr)
        (number,) = {value.value.data} if isinstance(value, IntegerAttr) else set(value.get_values())
        self.values[op.result] = self.b.constant(number, kind)

    def converted(self, kind: type[Operation], value: SSAValue, result: Attribute) -> SSAValue:
        """Return a scalar in another type; nothing changes where only the sign does, which is the operations' alone."""
        if value.type == result:
            return value
        if kind in (arith.FPToSIOp, arith.FPToUIOp):
            return self.b.to_integer(kind, value, result)
        return self.b.add(kind.create(operands=[value], result_types=[result]))
