"""A block that operations are appended to, with its constants, and what xDSL's dialects do for scalars only.

In xDSL the comparisons, choices and conversions of `arith` take no vectors, and there are no gathers: they are written
lane by lane, which is legal in xDSL as in MLIR, and which LLVM puts back into vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float16Type,
    IndexType,
    IntegerType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.index import Div, IndexExpr, Lookup
from ...dialects.kernel import FLOAT_PREDICATES, INTEGER_PREDICATES, element_of, lanes_of
from ...dialects.lookups import highest_of
from ._types import number

INDEX = IndexType()
_LARGEST_HALF = 65504
"""The largest finite number of half precision."""


class Builder:
    """Appends operations to a block; constants stand once, at the start of the outermost one."""

    def __init__(self, entry: Block) -> None:
        self.entry = entry
        self.block = entry
        self._constants: dict[Attribute, SSAValue] = {}
        self._last_constant: Operation | None = None

    def add(self, op: Operation) -> SSAValue:
        """Append an operation with one result, and return that."""
        self.block.add_op(op)
        return op.results[0]

    @contextmanager
    def within(self, block: Block) -> Iterator[None]:
        """Append to another block for a while."""
        before, self.block = self.block, block
        yield
        self.block = before

    # -- numbers ------------------------------------------------------------------------------------------------------

    def constant(self, value: float, value_type: Attribute = INDEX) -> SSAValue:
        """Return a constant, all lanes of which are the number."""
        return self.literal(number(value, value_type), value_type)

    def lane_numbers(self, value_type: VectorType[Any]) -> SSAValue:
        """Return the vector 0, 1, 2, ..."""
        places = list(range(lanes_of(value_type)))
        return self.literal(DenseIntOrFPElementsAttr.from_list(value_type, places), value_type)

    def literal(self, value: Attribute, value_type: Attribute) -> SSAValue:
        """Return the constant that an attribute says."""
        if value not in self._constants:
            op = arith.ConstantOp.create(properties={"value": value}, result_types=[value_type])
            if self._last_constant is not None:
                self.entry.insert_op_after(op, self._last_constant)
            elif self.entry.first_op is not None:
                self.entry.insert_op_before(op, self.entry.first_op)
            else:
                self.entry.add_op(op)
            self._last_constant = op
            self._constants[value] = op.results[0]
        return self._constants[value]

    # -- scalars ------------------------------------------------------------------------------------------------------

    def binary(self, kind: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """Return an operation of two operands of the result's type."""
        return self.add(kind.create(operands=[a, b], result_types=[a.type]))

    def plus(self, index: SSAValue, offset: int) -> SSAValue:
        """Return an index and a number."""
        return self.binary(arith.AddiOp, index, self.constant(offset)) if offset else index

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return a comparison of scalars, by the predicate's name."""
        if isinstance(a.type, AnyFloat):
            return self.add(arith.CmpfOp(a, b, FLOAT_PREDICATES.index(predicate)))
        return self.add(arith.CmpiOp(a, b, INTEGER_PREDICATES.index(predicate)))

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return `a` where the scalar condition holds, else `b`."""
        return self.add(arith.SelectOp(condition, a, b))

    def to_integer(self, kind: type[Operation], value: SSAValue, result: Attribute) -> SSAValue:
        """Return a float as an integer: toward zero, saturating, NaN to 0, where `arith` leaves open what results."""
        assert isinstance(result, IntegerType) and isinstance(value.type, AnyFloat)
        signed = kind is arith.FPToSIOp
        bits = result.width.data - signed
        low = -(1 << bits) if signed else 0
        beyond = float("inf") if isinstance(value.type, Float16Type) and 1 << bits > _LARGEST_HALF else float(1 << bits)
        found = self.add(kind.create(operands=[value], result_types=[result]))
        is_high = self.compare("oge", value, self.constant(beyond, value.type))
        highest = (1 << bits) - 1 if signed else -1
        found = self.select(is_high, self.constant(highest, result), found)
        if signed and beyond == float("inf"):
            is_low = self.compare("oeq", value, self.constant(-beyond, value.type))
        else:
            is_low = self.compare("olt", value, self.constant(float(low), value.type))
        found = self.select(is_low, self.constant(low, result), found)
        return self.select(self.compare("uno", value, value), self.constant(0, result), found)

    def index_expression(
        self, expr: IndexExpr, axes: Callable[[str], SSAValue], positions: Sequence[SSAValue] = ()
    ) -> SSAValue:
        """Return the value of an index expression, given those of its axes and of the positions that are read."""
        total: SSAValue | None = None
        for atom, factor in expr.terms:
            if isinstance(atom, str):
                term = axes(atom)
            elif isinstance(atom, Lookup):
                term = self._clamped(positions[atom.number], atom.extent)
            else:
                inner, divisor = self.index_expression(atom.expr, axes, positions), self.constant(atom.divisor)
                term = self.binary(arith.FloorDivSIOp, inner, divisor)
                if not isinstance(atom, Div):
                    term = self.binary(arith.SubiOp, inner, self.binary(arith.MuliOp, term, divisor))
            if factor != 1:
                term = self.binary(arith.MuliOp, term, self.constant(factor))
            total = term if total is None else self.binary(arith.AddiOp, total, term)
        return self.constant(expr.const) if total is None else self.plus(total, expr.const)

    def _clamped(self, value: SSAValue, extent: int) -> SSAValue:
        """Return an integer as an index in `[0, extent)`."""
        value = self.binary(arith.MaxSIOp, value, self.constant(0, value.type))
        if extent - 1 <= highest_of(value.type):
            value = self.binary(arith.MinSIOp, value, self.constant(extent - 1, value.type))
        return self.add(arith.IndexCastOp(value, IndexType()))

    def conjunction(self, conditions: Sequence[IndexExpr], axes: Callable[[str], SSAValue]) -> SSAValue:
        """Return whether each of the expressions is at least 0."""
        zero = self.constant(0)
        tests = [self.compare("sge", self.index_expression(c, axes), zero) for c in conditions]
        total = tests[0] if tests else self.constant(1, IntegerType(1))
        for test in tests[1:]:
            total = self.binary(arith.AndIOp, total, test)
        return total

    # -- lanes --------------------------------------------------------------------------------------------------------

    def lane(self, value: SSAValue, number_of_lane: int) -> SSAValue:
        """Return one lane of a vector; a scalar itself, which all lanes share."""
        if not isinstance(value.type, VectorType):
            return value
        return self.add(vector.ExtractOp(value, [number_of_lane], element_of(value.type)))

    def broadcast(self, value: SSAValue, value_type: Attribute) -> SSAValue:
        """Return a vector of one value; the value itself for a scalar type."""
        if not isinstance(value_type, VectorType):
            return value
        return self.add(vector.BroadcastOp(value, value_type))

    def lane_by_lane(self, value_type: Attribute, compute: Callable[[int], SSAValue]) -> SSAValue:
        """Return what is computed for each lane, as one value of the type."""
        if not isinstance(value_type, VectorType):
            return compute(0)
        lanes = [compute(number_of_lane) for number_of_lane in range(lanes_of(value_type))]
        found = self.constant(0, value_type)
        for number_of_lane, value in enumerate(lanes):
            found = self.add(vector.InsertOp(value, found, [number_of_lane], value_type))
        return found

    def reversed_lanes(self, value: SSAValue) -> SSAValue:
        """Return a vector with its last lane first."""
        kind = cast("VectorType[Any]", value.type)
        order = list(reversed(range(lanes_of(kind))))
        return self.add(vector.ShuffleOp(value, value, _integers(order), result_type=kind))


def _integers(values: Sequence[int]) -> Any:
    return DenseArrayBase.from_list(i64, values)
