"""A te function as people write it: one line per placeholder and per stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ..dialects.element import dtype_name, is_float
from ..dialects.index import IndexExpr, Mod
from ..dialects.te import ComputeOp, IndexOp, PredicateOp, ReadOp, YieldOp

_OR, _AND, _TEST, _SUM, _PRODUCT, _UNARY, _ATOM = range(7)
_ASSIGN = {"none": "=", "add": "+=", "mul": "*=", "max": "max=", "min": "min="}
_INFIX: dict[type[Operation], tuple[str, int]] = {
    arith.AddfOp: ("+", _SUM),
    arith.AddiOp: ("+", _SUM),
    arith.SubfOp: ("-", _SUM),
    arith.SubiOp: ("-", _SUM),
    arith.MulfOp: ("*", _PRODUCT),
    arith.MuliOp: ("*", _PRODUCT),
    arith.DivfOp: ("/", _PRODUCT),
    arith.FloorDivSIOp: ("//", _PRODUCT),
    arith.DivUIOp: ("//", _PRODUCT),
    arith.RemUIOp: ("%", _PRODUCT),
    arith.AndIOp: ("&&", _AND),
    arith.OrIOp: ("||", _OR),
    arith.XOrIOp: ("!=", _TEST),
}
_BITS: dict[type[Operation], str] = {
    arith.AndIOp: "&",
    arith.OrIOp: "|",
    arith.XOrIOp: "^",
    arith.ShLIOp: "<<",
    arith.ShRSIOp: ">>",
    arith.ShRUIOp: ">>",
}
"""Of integers that are no truth values; always in parentheses."""
_NAMED: dict[type[Operation], str] = {
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
    arith.MaxUIOp: "max",
    arith.MinUIOp: "min",
    math.PowFOp: "pow",
    math.AbsFOp: "abs",
    math.AbsIOp: "abs",
}
_CASTS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.FPToUIOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
)
_TESTS = {"arith.cmpi": ("==", "!=", *("<", "<=", ">", ">=") * 2), "arith.cmpf": ("", "==", ">", ">=", "<", "<=")}
_UNORDERED_NE = 13
_LONG = 60
"""Characters past which a value that is used twice gets a line of its own."""


def format_dag(func: FuncOp) -> str:
    """Placeholders where they are first read, and stages in order, as `name(axes) += expression`."""
    names: dict[SSAValue, str] = {}
    for k, argument in enumerate(func.body.block.args):
        names[argument] = _argument_name(func, k)
    lines: list[str] = []
    shown: set[SSAValue] = set()
    for op in func.body.block.ops:
        if not isinstance(op, ComputeOp):
            for result in op.results:
                names[result] = result.name_hint or "constant"
            continue
        for k, result in enumerate(op.results):
            names[result] = op.label.data if len(op.results) == 1 else f"{op.label.data}_v{k}"
        for read in op.body.block.ops:
            if isinstance(read, ReadOp) and not isinstance(read.tensor.owner, ComputeOp) and read.tensor not in shown:
                shown.add(read.tensor)
                lines.append(_placeholder(names[read.tensor], read.tensor.type, _is_constant(func, read.tensor)))
        lines += _stage(op, names)
    return "\n".join(lines)


def _argument_name(func: FuncOp, position: int) -> str:
    if func.arg_attrs is not None:
        found = func.arg_attrs.data[position].data.get("lw.name")
        if found is not None:
            return str(getattr(found, "data", found))
    return func.body.block.args[position].name_hint or f"arg{position}"


def _is_constant(func: FuncOp, tensor: SSAValue) -> bool:
    position = tensor.index if isinstance(tensor, BlockArgument) else 0
    return func.arg_attrs is not None and "lw.constant" in func.arg_attrs.data[position].data


def _placeholder(name: str, kind: Attribute, constant: bool) -> str:
    assert isinstance(kind, TensorType)
    dtype = dtype_name(kind.get_element_type())
    shape = ", ".join(map(str, kind.get_shape()))
    text = f"{name} = PLACEHOLDER [{shape}]" + (f" {dtype}" if dtype != "float32" else "")
    return text + (" constant" if constant else "")


def _stage(op: ComputeOp, names: dict[SSAValue, str]) -> list[str]:
    axes = ", ".join(a.name for a in op.spatial_axes)
    target = ", ".join(f"{names[r]}({axes})" for r in op.results)
    writer = _Writer(names)
    last = op.body.block.last_op
    assert isinstance(last, YieldOp)
    values = ", ".join(writer.text(v) for v in last.values)
    if len(last.values) > 1:
        values = f"({values})"
    if op.combine is None:
        return [f"{target} {_ASSIGN[op.combiner.data]} {values}", *writer.lines]
    assert op.identity is not None
    count = len(op.results)
    arguments: dict[SSAValue, str] = {}
    for k, argument in enumerate(op.combine.block.args):
        arguments[argument] = f"{'x' if k < count else 'y'}{k % count}"
    joiner = _Writer(arguments)
    joined = op.combine.block.last_op
    assert isinstance(joined, YieldOp)
    results = ", ".join(joiner.text(v) for v in joined.values)
    start = ", ".join(_number(v) for v in op.identity)
    lambda_text = f"({', '.join(arguments.values())}) -> ({results})"
    return [f"{target} combine= {values} from ({start}) by {lambda_text}", *writer.lines, *joiner.lines]


class _Writer:
    """Expressions of one body; long values that are used twice go on lines of their own."""

    def __init__(self, names: dict[SSAValue, str]) -> None:
        self.names = names
        self.lines: list[str] = []
        self.shared: dict[SSAValue, str] = {}

    def text(self, value: SSAValue, level: int = _OR, known: Sequence[IndexExpr] = ()) -> str:
        """The expression, in parentheses where it binds weaker than `level`; conditions in `known` hold around it."""
        if value in self.shared:
            return self.shared[value]
        if not isinstance(value.owner, Operation):
            return self.names[value]
        text, own = self.operation(value.owner, known)
        if len(text) > _LONG and not isinstance(value.owner, ReadOp) and value.has_more_than_one_use():
            self.shared[value] = f"t{len(self.shared)}"
            self.lines.append(f"    where {self.shared[value]} = {text}")
            return self.shared[value]
        return text if own >= level else f"({text})"

    def operation(self, op: Operation, known: Sequence[IndexExpr]) -> tuple[str, int]:
        if isinstance(op, ReadOp):
            return self.read(op, known), _ATOM
        if isinstance(op, IndexOp):
            return format_index(op.value), _ATOM if op.value.as_axis() or op.value.is_constant else _SUM
        if isinstance(op, PredicateOp):
            return format_conditions(op.where.data), _AND if len(op.where.data) > 1 else _TEST
        if isinstance(op, arith.ConstantOp):
            return _number(op.value), _ATOM
        if isinstance(op, arith.SelectOp):
            return self.select(op, known), _ATOM
        if isinstance(op, arith.CmpiOp | arith.CmpfOp):
            predicate = op.predicate.value.data
            sign = "!=" if predicate == _UNORDERED_NE else _TESTS[op.name][predicate]
            return f"{self.text(op.lhs, _SUM, known)} {sign} {self.text(op.rhs, _SUM, known)}", _TEST
        if isinstance(op, arith.NegfOp):
            return f"-{self.text(op.operand, _UNARY, known)}", _UNARY
        if type(op) in _BITS and op.results[0].type != i1:
            one, other = (self.text(v, _ATOM, known) for v in op.operands)
            return f"({one} {_BITS[type(op)]} {other})", _ATOM
        if type(op) in _INFIX:
            sign, level = _INFIX[type(op)]
            right = level + 1 if sign in ("-", "/", "//", "!=") else level
            return f"{self.text(op.operands[0], level, known)} {sign} {self.text(op.operands[1], right, known)}", level
        name = _NAMED.get(type(op), op.name.split(".")[-1])
        if isinstance(op, arith.BitcastOp):
            name = f"bits_as_{dtype_name(op.results[0].type)}"
        if isinstance(op, _CASTS):
            name = dtype_name(op.results[0].type)
        return f"{name}({', '.join(self.text(v, _OR, known) for v in op.operands)})", _ATOM

    def read(self, op: ReadOp, known: Sequence[IndexExpr]) -> str:
        element = f"{self.names[op.tensor]}[{', '.join(map(format_index, op.indices.data))}]"
        if all(c in known for c in op.conditions):
            return element
        zero = "0.0" if is_float(op.result.type) else "0"
        return f"select({format_conditions(op.conditions)}, {element}, {zero})"

    def select(self, op: arith.SelectOp, known: Sequence[IndexExpr]) -> str:
        test = op.cond.owner
        yes, no = tuple(known), tuple(known)
        if isinstance(test, PredicateOp):
            conditions = test.where.data
            yes += conditions
            no += (-conditions[0] - 1,) if len(conditions) == 1 else ()
        parts = self.text(op.cond, _OR, known), self.text(op.lhs, _OR, yes), self.text(op.rhs, _OR, no)
        return f"select({', '.join(parts)})"


def format_index(expr: IndexExpr) -> str:
    """Return an index expression with `//` and `%` for floordiv and mod."""
    return str(expr).replace(" floordiv ", " // ").replace(" mod ", " % ")


def format_conditions(conditions: Sequence[IndexExpr]) -> str:
    """`1 <= i2 < 8 && i3 >= 1` for conditions of the form `expression >= 0`."""
    bounds: dict[IndexExpr, list[int | None]] = {}
    for condition in conditions:
        value = condition - condition.const
        rising = value in bounds or (-value not in bounds and (not value.terms or value.terms[0][1] > 0))
        value = value if rising else -value
        pair = bounds.setdefault(value, [None, None])
        limit = -condition.const if rising else condition.const + 1
        known = pair[not rising]
        pair[not rising] = limit if known is None else (max if rising else min)(limit, known)
    return " && ".join(_interval(value, low, high) for value, (low, high) in bounds.items())


def _interval(expr: IndexExpr, low: int | None, high: int | None) -> str:
    value = format_index(expr)
    if low is None:
        remainder = len(expr.terms) == 1 and isinstance(expr.terms[0][0], Mod)
        return f"{value} == 0" if remainder and high == 1 else f"{value} < {high}"
    if high is None:
        return f"{value} >= {low}"
    return f"{value} == {low}" if high == low + 1 else f"{low} <= {value} < {high}"


def _number(value: Attribute) -> str:
    assert isinstance(value, FloatAttr | IntegerAttr)
    element = value.type
    if is_float(element):
        return str(np.dtype(dtype_name(element)).type(value.value.data))
    if element == IntegerAttr(1, 1).type:
        return "true" if value.value.data else "false"
    return str(value.value.data)
