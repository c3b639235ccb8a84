"""Scalar expressions to operations: the body of a te.compute, with guards turned into masked reads and predicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects.bounds import outside
from ..dialects.element import DTYPES
from ..dialects.index import IndexExpr, Lookup, Ranges, axis
from ..dialects.lookups import axes_behind
from ..dialects.numpy_types import FLOATS, NARROW_FLOATS, UNSIGNED
from ..dialects.te import IndexOp, PredicateOp, ReadOp, unsigned_constant
from .affine import AxisNames, negate, normalise, prune, split, tidy, to_index
from .errors import ExpressionError, format_shape
from .expr import (
    Binary,
    Bitcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IterVar,
    Logic,
    Not,
    Param,
    Read,
    Select,
    bits_of,
    children,
    zero,
)
from .tensor import Tensor

Mask = tuple[IndexExpr, ...]

_FLOAT: dict[str, Any] = {
    "add": arith.AddfOp, "sub": arith.SubfOp, "mul": arith.MulfOp, "div": arith.DivfOp,
    "max": arith.MaximumfOp, "min": arith.MinimumfOp, "pow": math.PowFOp,
}  # fmt: skip
_INTEGER: dict[str, Any] = {
    "add": arith.AddiOp, "sub": arith.SubiOp, "mul": arith.MuliOp, "floordiv": arith.FloorDivSIOp,
    "max": arith.MaxSIOp, "min": arith.MinSIOp, "and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp,
    "shl": arith.ShLIOp, "shr": arith.ShRSIOp,
}  # fmt: skip
_UNSIGNED: dict[str, Any] = {
    **_INTEGER, "floordiv": arith.DivUIOp, "mod": arith.RemUIOp, "max": arith.MaxUIOp, "min": arith.MinUIOp,
    "shr": arith.ShRUIOp,
}  # fmt: skip
_CALLS: dict[str, Any] = {
    "exp": math.ExpOp, "exp2": math.Exp2Op, "log": math.LogOp, "log2": math.Log2Op,
    "sqrt": math.SqrtOp, "rsqrt": math.RsqrtOp, "sin": math.SinOp, "cos": math.CosOp,
    "tanh": math.TanhOp, "erf": math.ErfOp, "floor": math.FloorOp,
    "ceil": math.CeilOp, "roundeven": math.RoundEvenOp, "trunc": math.TruncOp, "neg": arith.NegfOp,
}  # fmt: skip
_FLOAT_TESTS = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_INTEGER_TESTS = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_UNSIGNED_TESTS = {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "eq": "eq", "ne": "ne"}


class BodyBuilder:
    """Appends the operations of expressions to a block; equal subtrees under equal guards are built once."""

    def __init__(
        self,
        label: str,
        block: Block,
        names: AxisNames,
        ranges: Ranges,
        tensors: Mapping[Tensor, SSAValue],
        parameters: Sequence[SSAValue] = (),
    ) -> None:
        self.label = label
        self.block = block
        self.names = names
        self.ranges = ranges
        self.tensors = tensors
        self.parameters = parameters
        self._built: dict[tuple[object, ...], SSAValue] = {}
        self._alive: list[Expr] = []
        self._unproved: list[Expr] = []

    def build(self, expr: Expr, mask: Mask = ()) -> SSAValue:
        """The value of `expr` where the conditions of `mask` hold; elsewhere it is defined, but of no meaning."""
        key = (id(expr), mask)
        if key not in self._built:
            self._alive.append(expr)
            self._built[key] = self._build(expr, mask)
        return self._built[key]

    def _build(self, expr: Expr, mask: Mask) -> SSAValue:
        if isinstance(expr, Const):
            return self._const(expr)
        if isinstance(expr, Read):
            return self._read(expr, mask)
        if isinstance(expr, Param):
            return self.parameters[expr.position]
        if isinstance(expr, Select):
            return self._select(expr, mask)
        if expr.dtype == "bool" and not isinstance(expr, Cast):
            return self._condition(expr, mask)
        if isinstance(expr, Cast):
            return self._cast(expr, mask)
        if isinstance(expr, Bitcast):
            return self._add(arith.BitcastOp(self.build(expr.operand, mask), DTYPES[expr.dtype]))
        index = to_index(expr, self.names)
        if index is not None:
            return self._add(IndexOp(tidy(index, self.ranges), DTYPES[expr.dtype]))
        if isinstance(expr, IterVar):
            self._require_own_axes(expr)
        if isinstance(expr, Call):
            operand = self.build(expr.operand, mask)
            if expr.function == "abs":
                return self._add((math.AbsFOp if expr.dtype in FLOATS else math.AbsIOp)(operand))
            return self._add(_CALLS[expr.function](operand))
        assert isinstance(expr, Binary)
        return self._binary(expr, self.build(expr.left, mask), self.build(expr.right, mask))

    def _binary(self, expr: Binary, left: SSAValue, right: SSAValue) -> SSAValue:
        if expr.dtype in UNSIGNED:
            return self._add(_UNSIGNED[expr.op](left, right))
        if expr.op == "mod":
            whole = self._add(arith.FloorDivSIOp(left, right))
            return self._add(arith.SubiOp(left, self._add(arith.MuliOp(whole, right))))
        return self._add((_FLOAT if expr.dtype in FLOATS else _INTEGER)[expr.op](left, right))

    # -- leaves -------------------------------------------------------------------------------------------------------

    def _const(self, expr: Const) -> SSAValue:
        element: Any = DTYPES[expr.dtype]
        if expr.dtype in UNSIGNED:
            return self._add(unsigned_constant(int(expr.value), element))
        value: Attribute
        if expr.dtype in FLOATS:
            value = FloatAttr(float(expr.value), element)
        else:
            value = IntegerAttr(int(expr.value), element, truncate_bits=True)
        return self._add(arith.ConstantOp(value))

    def _read(self, read: Read, mask: Mask) -> SSAValue:
        indices, positions = self._indices(read, mask)
        if all(outside(i, n, (), self.ranges) is None for i, n in zip(indices, read.tensor.shape, strict=True)):
            mask = ()
        else:
            self._require_inside(read, indices, mask)
        source = self.tensors[read.tensor]
        return self._add(ReadOp(source, indices, mask, positions))

    def _indices(self, read: Read, mask: Mask) -> tuple[tuple[IndexExpr, ...], tuple[SSAValue, ...]]:
        """The indices of a read, and the values of those that data give."""
        indices: list[IndexExpr] = []
        positions: list[SSAValue] = []
        for dimension, expr in enumerate(read.indices):
            index = to_index(expr, self.names)
            if index is not None:
                indices.append(tidy(index, self.ranges))
                continue
            self._require_own_axes(expr)
            if not _reads(expr):
                self._refuse(
                    f"index {dimension} of tensor '{read.tensor.name}' is not affine with floordiv and mod by "
                    "constants over this compute's axes"
                )
            positions.append(self.build(expr, mask))
            indices.append(self._lookup(len(positions) - 1, positions[-1], read.tensor.shape[dimension]))
        return tuple(indices), tuple(positions)

    def _lookup(self, number: int, position: SSAValue, extent: int) -> IndexExpr:
        depends = axes_behind(position)
        args = tuple(axis(name) for name in self.ranges if name in depends)
        return IndexExpr(((Lookup(number, args, extent), 1),), 0)

    def _require_own_axes(self, expr: Expr) -> None:
        if isinstance(expr, IterVar) and expr not in self.names:
            self._refuse(f"axis '{expr.name}' is not one of its axes, nor one that it reduces over")
        for child in children(expr) if not isinstance(expr, Read) else ():
            self._require_own_axes(child)

    def _require_inside(self, read: Read, indices: tuple[IndexExpr, ...], mask: Mask) -> None:
        tensor = read.tensor
        for dimension, (index, extent) in enumerate(zip(indices, tensor.shape, strict=True)):
            found = outside(index, extent, mask, self.ranges)
            if found is None:
                continue
            if self._unproved:
                self._refuse(
                    f"the condition that guards the read of '{tensor.name}' at [{', '.join(map(str, indices))}] is no "
                    "conjunction of affine comparisons of axes, so the read may be out of bounds: pad the tensor first"
                )
            self._refuse(
                f"tensor '{tensor.name}' is read out of bounds on axis {dimension}: index {index} ranges over "
                f"[{found[0]}, {found[1]}], the shape is {format_shape(tensor.shape)}"
            )

    # -- conditions ---------------------------------------------------------------------------------------------------

    def _select(self, expr: Select, mask: Mask) -> SSAValue:
        condition, yes, no = normalise(expr.condition), expr.yes, expr.no
        affine, other = split(condition, self.names)
        if other:
            turned = split(negate(condition), self.names)
            if not turned[1]:
                (affine, other), yes, no = turned, no, yes
        kept = prune(affine, self.ranges)
        if kept is None:
            return self.build(no, mask)
        if not kept and not other:
            return self.build(yes, mask)
        if not other and isinstance(no, Const) and no.value == 0 and _is_read(yes):
            return self._masked(yes, mask, kept)
        test = self._conjunction(kept, other, mask)
        opposite = (*mask, -kept[0] - 1) if len(kept) == 1 and not other else mask
        self._unproved.extend(other)
        taken = self.build(yes, prune((*mask, *kept), self.ranges) or mask)
        missed = self.build(no, opposite)
        del self._unproved[len(self._unproved) - len(other) :]
        return self._add(arith.SelectOp(test, taken, missed))

    def _masked(self, value: Expr, mask: Mask, kept: Mask) -> SSAValue:
        """Build a read, perhaps converted, that is 0 where a condition of `kept` fails."""
        if isinstance(value, Cast):
            return self._convert(self._masked(value.operand, mask, kept), value.operand.dtype, value.dtype)
        assert isinstance(value, Read)
        indices, positions = self._indices(value, tuple(dict.fromkeys((*mask, *kept))))
        if any(outside(i, n, kept, self.ranges) for i, n in zip(indices, value.tensor.shape, strict=True)):
            kept = tuple(dict.fromkeys((*mask, *kept)))
            self._require_inside(value, indices, kept)
        source = self.tensors[value.tensor]
        return self._add(ReadOp(source, indices, kept, positions))

    def _conjunction(self, affine: Mask, other: tuple[Expr, ...], mask: Mask) -> SSAValue:
        parts = [self._add(PredicateOp(affine))] if affine else []
        inner = (*mask, *affine)
        for condition in other:
            parts.append(self._condition(condition, inner))
        result = parts[0]
        for part in parts[1:]:
            result = self._add(arith.AndIOp(result, part))
        return result

    def _condition(self, expr: Expr, mask: Mask) -> SSAValue:
        condition = normalise(expr)
        affine, other = split(condition, self.names)
        if not other:
            return self._add(PredicateOp(affine))
        if isinstance(condition, Logic):
            if condition.op == "and":
                return self._conjunction(affine, other, mask)
            sides = self.build(condition.left, mask), self.build(condition.right, mask)
            return self._add(arith.OrIOp(*sides))
        if isinstance(condition, Not):
            true = self._const(Const(True, "bool"))
            return self._add(arith.XOrIOp(self.build(condition.operand, mask), true))
        if isinstance(condition, Compare):
            left, right = self.build(condition.left, mask), self.build(condition.right, mask)
            return self._compare(condition.op, left, right, condition.left.dtype)
        return self.build(condition, mask)

    def _compare(self, op: str, left: SSAValue, right: SSAValue, dtype: str) -> SSAValue:
        if dtype in FLOATS:
            return self._add(arith.CmpfOp(left, right, _FLOAT_TESTS[op]))
        tests = _UNSIGNED_TESTS if dtype in UNSIGNED else _INTEGER_TESTS
        return self._add(arith.CmpiOp(left, right, tests[op]))

    # -- conversions --------------------------------------------------------------------------------------------------

    def _cast(self, expr: Cast, mask: Mask) -> SSAValue:
        return self._convert(self.build(expr.operand, mask), expr.operand.dtype, expr.dtype)

    def _convert(self, value: SSAValue, source: str, target: str) -> SSAValue:
        element: Any = DTYPES[target]
        if target == "bool":
            return self._compare("ne", value, self._const(zero(source)), source)
        if target in FLOATS:
            if source in FLOATS:
                if {source, target} == set(NARROW_FLOATS):
                    value = self._add(arith.ExtFOp(value, DTYPES["float32"]))
                    source = "float32"
                wider = FLOATS.index(target) > FLOATS.index(source)
                return self._add((arith.ExtFOp if wider else arith.TruncFOp)(value, element))
            if source == "bool":
                return self._add(arith.SelectOp(value, self._const(Const(1, target)), self._const(zero(target))))
            return self._add((arith.UIToFPOp if source in UNSIGNED else arith.SIToFPOp)(value, element))
        if source in FLOATS:
            return self._add((arith.FPToUIOp if target in UNSIGNED else arith.FPToSIOp)(value, element))
        if source == "bool":
            return self._add(arith.ExtUIOp(value, element))
        if bits_of(target) == bits_of(source):
            return self._add(arith.BitcastOp(value, element))
        if bits_of(target) < bits_of(source):
            return self._add(arith.TruncIOp(value, element))
        return self._add((arith.ExtUIOp if source in UNSIGNED else arith.ExtSIOp)(value, element))

    # -- plumbing -----------------------------------------------------------------------------------------------------

    def _add(self, op: Operation) -> SSAValue:
        """Append a pure operation and return its result, or that of the same operation before it."""
        key = (op.name, *op.operands, *op.properties.values(), op.results[0].type)
        if key not in self._built:
            self.block.add_op(op)
            self._built[key] = op.results[0]
        return self._built[key]

    def _refuse(self, reason: str) -> NoReturn:
        raise ExpressionError(f"compute '{self.label}': {reason}")


def _reads(expr: Expr) -> bool:
    """True where the value of an expression depends on data."""
    waiting, seen = [expr], set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, Read):
            return True
        if id(found) not in seen:
            seen.add(id(found))
            waiting.extend(children(found))
    return False


def _is_read(expr: Expr) -> bool:
    return isinstance(expr, Read) or (isinstance(expr, Cast) and expr.dtype != "bool" and _is_read(expr.operand))
