"""Values of a block's body, written as scalar or vector operations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...dialects.combiner import combine_op
from ...dialects.element import is_float, is_unsigned
from ...dialects.index import IndexExpr, constant
from ...dialects.lookups import highest_of
from ...dialects.te import wrapped_index
from ._addresses import INDEX, Addresses


class ValueWriter:
    """Writes values into the scopes of an `Addresses`: in lanes where an operand is, or an index names their loop."""

    def __init__(self, addresses: Addresses) -> None:
        self.at = addresses

    def apply(self, op: Operation, operands: list[SSAValue]) -> SSAValue:
        """An operation on scalars, or on vectors where one of the operands is one."""
        element = op.results[0].type
        if any(isinstance(v.type, VectorType) for v in operands):
            operands = [v if isinstance(v.type, VectorType) else self.at.splat(v) for v in operands]
            if isinstance(op, arith.CmpiOp | arith.CmpfOp):
                names = kernel.INTEGER_PREDICATES if isinstance(op, arith.CmpiOp) else kernel.FLOAT_PREDICATES
                return self.at.here.add(kernel.CompareOp(names[op.predicate.value.data], *operands))
            if isinstance(op, arith.SelectOp):
                return self.at.here.add(kernel.SelectOp(*operands))
            element = kernel.vector_of(element, self.at.lanes)
            if type(op) in _CONVERSIONS:
                return self.at.here.add(kernel.ConvertOp(_CONVERSIONS[type(op)], operands[0], element))
        new = type(op).create(operands=operands, result_types=[element], properties=op.properties)
        return self.at.here.add(new)

    def constant(self, value: Attribute) -> SSAValue:
        """A constant, once for all."""
        if isinstance(value, IntegerAttr) and is_unsigned(value.type):  # `arith.constant` has no unsigned numbers
            return self.index(constant(wrapped_index(value.value.data)), value.type)
        return self.at._once(
            0,
            ("value", value),
            lambda: arith.ConstantOp.create(result_types=[_type_of(value)], properties={"value": value}),
        )

    def index(self, expr: IndexExpr, result_type: Attribute) -> SSAValue:
        """The value of an index expression, in lanes where it names their loop."""
        expr = self.at.fixed(expr)
        wide = self.at.lane is not None and self.at.lane in expr.axes()
        value = self.at.vector(expr) if wide else self.at.scalar(expr)
        if isinstance(result_type, IndexType):
            return value
        if wide:
            lanes = kernel.vector_of(result_type, self.at.lanes)
            return self.at.here.add(kernel.ConvertOp("index_cast", value, lanes))
        return self.at.here.add(arith.IndexCastOp.create(operands=[value], result_types=[result_type]))

    def predicate(self, conditions: Sequence[IndexExpr]) -> SSAValue:
        """True where all conditions hold."""
        parts = [c in self.at.known or self.at.condition(c) for c in conditions]
        if any(p is False for p in parts):
            return self.constant(IntegerAttr(0, 1))
        values = [p for p in parts if not isinstance(p, bool)]
        if not values:
            return self.constant(IntegerAttr(-1, 1))
        joined = self.at.conjunction(values, any(isinstance(v.type, VectorType) for v in values))
        assert joined is not None
        return joined

    def position(self, value: SSAValue, extent: int) -> IndexExpr:
        """An integer, clamped into `[0, extent)`."""
        element = kernel.element_of(value.type)
        assert isinstance(element, IntegerType)
        value = self._bounded(arith.MaxSIOp, value, IntegerAttr(0, element))
        if extent - 1 <= highest_of(element):
            value = self._bounded(arith.MinSIOp, value, IntegerAttr(extent - 1, element))
        return self.at.position(self._as_index(value), extent)

    def _bounded(self, kind: type[Operation], value: SSAValue, bound: Attribute) -> SSAValue:
        _, other = self._alike(value, self.constant(bound))
        made = ("bounded", kind, value, bound)
        return self.at._once(
            len(self.at.scopes) - 1, made, lambda: kind.create(operands=[value, other], result_types=[value.type])
        )

    def _as_index(self, value: SSAValue) -> SSAValue:
        def cast() -> Operation:
            if isinstance(value.type, VectorType):
                return kernel.ConvertOp("index_cast", value, kernel.vector_of(INDEX, self.at.lanes))
            return arith.IndexCastOp.create(operands=[value], result_types=[INDEX])

        return self.at._once(len(self.at.scopes) - 1, ("index", value), cast)

    def all_lanes(self) -> SSAValue:
        """A mask of lanes that are all on."""
        return self.at.splat(self.constant(IntegerAttr(-1, 1)), 0)

    def combine(self, combiner: str, old: SSAValue, new: SSAValue) -> SSAValue:
        """Two values joined by a reduction's combiner."""
        old, new = self._alike(old, new)
        op = combine_op(combiner, kernel.element_of(old.type))
        properties = _STRICT if is_float(kernel.element_of(old.type)) else {}
        return self.at.here.add(op.create(operands=[old, new], result_types=[old.type], properties=properties))

    def multiply(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The product of two values."""
        a, b = self._alike(a, b)
        return self.at.here.add(arith.MulfOp.create(operands=[a, b], result_types=[a.type], properties=_STRICT))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """`a * b + c`, rounded once."""
        a, b = self._alike(a, b)
        a, c = self._alike(a, c)
        b, c = self._alike(b, c)
        return self.at.here.add(math.FmaOp.create(operands=[a, b, c], result_types=[c.type], properties=_STRICT))

    def reduce_lanes(self, combiner: str, wide: SSAValue) -> SSAValue:
        """The lanes of a vector, joined."""
        element = kernel.element_of(wide.type)
        properties = {"kind": vector.CombiningKindAttr(_reduction_flag(combiner, element)), **_STRICT}
        made = vector.ReductionOp.create(operands=[wide], properties=properties, result_types=[element])
        return self.at.here.add(made)

    def _alike(self, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        if isinstance(a.type, VectorType) and not isinstance(b.type, VectorType):
            return a, self.at.splat(b)
        if isinstance(b.type, VectorType) and not isinstance(a.type, VectorType):
            return self.at.splat(a), b
        return a, b

    def apply_once(self, op: Operation, operands: list[SSAValue]) -> SSAValue:
        """Apply an operation of a combiner; where the same was done of these values in this place, once for all."""
        key = (op, *operands)
        known = self.at.here.values.get(key)
        if known is None:
            known = self.at.here.values[key] = self.apply(op, operands)
        return known


_CONVERSIONS: dict[type[Operation], str] = {op: name for name, op in kernel.CONVERSIONS.items()}
_STRICT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}
_REDUCTION_FLAGS = {
    ("add", True): vector.CombiningKindFlag.ADD,
    ("add", False): vector.CombiningKindFlag.ADD,
    ("mul", True): vector.CombiningKindFlag.MUL,
    ("mul", False): vector.CombiningKindFlag.MUL,
    ("max", True): vector.CombiningKindFlag.MAXIMUMF,
    ("max", False): vector.CombiningKindFlag.MAXSI,
    ("min", True): vector.CombiningKindFlag.MINIMUMF,
    ("min", False): vector.CombiningKindFlag.MINSI,
}
_UNSIGNED_FLAGS = {"max": vector.CombiningKindFlag.MAXUI, "min": vector.CombiningKindFlag.MINUI}


def _reduction_flag(combiner: str, element: Attribute) -> vector.CombiningKindFlag:
    if is_unsigned(element) and combiner in _UNSIGNED_FLAGS:
        return _UNSIGNED_FLAGS[combiner]
    return _REDUCTION_FLAGS[combiner, is_float(element)]


def _type_of(value: Attribute) -> Attribute:
    assert isinstance(value, IntegerAttr | FloatAttr)
    result: Attribute = value.type
    return result
