"""Convert tensor expressions to linalg on tensors, which other compilers begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AffineMapAttr, FloatAttr, IntegerAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import FillOp, GenericOp, IndexOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ...dialects import te
from ...dialects.combiner import combine_op, identity
from ...dialects.index import IndexExpr
from ...dialects.workload import verify_function
from ._statements import Statements
from ._types import signless

NAME = "lw-convert-te-to-linalg"


@dataclass(frozen=True)
class ConvertTeToLinalg(ModulePass):
    """`%c = lw_te.compute "c" [i = n, reduce k = m] add { body }` ->

    `%e = tensor.empty; %f = linalg.fill(0, %e); %c = linalg.generic(reads) outs(%f) { body; acc + value }`

    Reads at sums of multiples of axes are operands with affine maps; other ones, those of a part of a tensor, and those
    under a condition are `tensor.extract` at `linalg.index`. The module's target and the names of arguments go, since
    MLIR's tools know neither.

    Requires: functions on tensors, before `lw-lower-te-to-loop`.
    """

    name = NAME

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_te_to_linalg(op)


def convert_te_to_linalg(module: ModuleOp) -> None:
    """Convert every function on tensors of a module, in place; PassFailedException for one that is no workload."""
    for func in [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]:
        types = (*func.function_type.inputs, *func.function_type.outputs)
        if not all(isinstance(kind, TensorType) for kind in types):
            raise PassFailedException(
                f"{NAME}: '{func.sym_name.data}' is not on tensors: convert it before it is lowered"
            )
        try:
            verify_function(func)
        except VerifyException as error:
            raise PassFailedException(f"{NAME}: {error}") from None
        _convert(module, func)
    module.attributes.pop("lw.target", None)


def _convert(module: ModuleOp, func: FuncOp) -> None:
    old = func.body.block
    entry = Block(arg_types=[signless(a.type) for a in old.args])
    body = Statements(entry, dict(zip(old.args, entry.args, strict=True)))
    for argument, new in zip(old.args, entry.args, strict=True):
        new.name_hint = argument.name_hint
    for op in old.ops:
        if isinstance(op, te.ComputeOp):
            _Compute(body, op).write()
        elif isinstance(op, ReturnOp):
            entry.add_op(ReturnOp(*(body.value(v) for v in op.arguments)))
        elif not body.plain(op):
            raise PassFailedException(f"{NAME}: {op.name} is no operation of a te function")
    outputs = [signless(kind) for kind in func.function_type.outputs]
    new_func = FuncOp(func.sym_name.data, ([a.type for a in entry.args], outputs), Region(entry), func.sym_visibility)
    module.body.block.insert_op_before(new_func, func)
    module.body.block.erase_op(func)


class _Compute:
    """One expression as a `linalg.generic`: its operands, with a map from the loops to each, and its body."""

    def __init__(self, outer: Statements, op: te.ComputeOp) -> None:
        self.outer, self.op = outer, op
        self.dimensions = {axis.name: number for number, axis in enumerate(op.axes.data)}
        self.inputs: list[tuple[SSAValue, AffineMap]] = []
        self.block = Block()
        self.body = Statements(self.block, {})
        self.indices: dict[str, SSAValue] = {}

    def write(self) -> None:
        """Write the expression, and what its results start from."""
        starts = [self._start(number) for number in range(len(self.op.outputs))]
        for inner in self.op.body.block.ops:
            if isinstance(inner, te.ReadOp) and self._is_operand(inner):
                self._operand(inner)
        self._add_windows()
        olds = [self.block.insert_arg(_element(start.type), len(self.block.args)) for start in starts]
        values = self._values()
        if self.op.combiner.data != "none":
            values = self._combined(olds, values)
        self.block.add_op(YieldOp(*values))
        spatial = AffineMap(len(self.dimensions), 0, tuple(self._dimension(a.name) for a in self.op.spatial_axes))
        maps = [AffineMapAttr(each) for each in (*(m for _, m in self.inputs), *([spatial] * len(starts)))]
        kinds = [IteratorTypeAttr.reduction() if a.reduce else IteratorTypeAttr.parallel() for a in self.op.axes.data]
        types = [start.type for start in starts]
        generic = GenericOp([v for v, _ in self.inputs], starts, Region(self.block), maps, kinds, types)
        self.outer.b.block.add_op(generic)
        self.outer.values.update(zip(self.op.outputs, generic.results, strict=True))
        generic.results[0].name_hint = self.op.label.data

    # -- operands -----------------------------------------------------------------------------------------------------

    def _start(self, number: int) -> SSAValue:
        """Return the tensor that a result is written to: filled with the identity, if it is reduced to."""
        b, kind = self.outer.b, self.op.outputs[number].type
        assert isinstance(kind, TensorType)
        plain = signless(kind)
        empty = b.add(tensor.EmptyOp([], plain))
        if self.op.combiner.data == "none":
            return empty
        element = kind.get_element_type()
        if self.op.identity is None:
            first = identity(self.op.combiner.data, element)
        else:
            attribute = self.op.identity.data[number]
            assert isinstance(attribute, IntegerAttr | FloatAttr)
            first = attribute.value.data
        return b.add(FillOp([b.constant(first, signless(element))], [empty], [plain]))

    def _dimension(self, name: str) -> AffineExpr:
        return AffineExpr.dimension(self.dimensions[name])

    def _affine(self, expr: IndexExpr) -> AffineExpr:
        total: AffineExpr | None = None
        for atom, factor in expr.terms:
            assert isinstance(atom, str)
            term = self._dimension(atom) * factor if factor != 1 else self._dimension(atom)
            total = term if total is None else total + term
        if total is None:
            return AffineExpr.constant(expr.const)
        return total + expr.const if expr.const else total

    def _is_operand(self, op: te.ReadOp) -> bool:
        """True for a read that an affine map can say: linalg takes an axis alone for one over all of the tensor."""
        assert isinstance(op.tensor.type, TensorType)
        extents = {a.name: a.extent for a in self.op.axes.data}
        for expr, size in zip(op.indices.data, op.tensor.type.get_shape(), strict=True):
            if not all(isinstance(atom, str) for atom, _ in expr.terms):
                return False
            (name, factor), *more = expr.terms or (("", 0),)
            if factor == 1 and not more and not expr.const and extents[str(name)] != size:
                return False
        return not op.conditions and not op.positions

    def _operand(self, op: te.ReadOp) -> None:
        """Make a read an operand, one for all reads of the same elements."""
        found = (self.outer.value(op.tensor), self._map([self._affine(e) for e in op.indices.data]))
        if found not in self.inputs:
            self.inputs.append(found)
            self.block.insert_arg(_element(found[0].type), len(self.block.args))
        self.body.values[op.result] = self.block.args[self.inputs.index(found)]

    def _map(self, exprs: Sequence[AffineExpr]) -> AffineMap:
        return AffineMap(len(self.dimensions), 0, tuple(exprs))

    def _add_windows(self) -> None:
        """Add an operand that says the extents of the reduction axes for which no other one has a dimension."""
        shown = {expr for _, each in self.inputs for expr in each.results}
        hidden = [a for a in self.op.reduce_axes if self._dimension(a.name) not in shown]
        if hidden:
            kind = TensorType(_element(self.op.outputs[0].type), [a.extent for a in hidden])
            window = self.outer.b.add(tensor.EmptyOp([], kind))
            self.inputs.append((window, self._map([self._dimension(a.name) for a in hidden])))
            self.block.insert_arg(kind.get_element_type(), len(self.block.args))

    # -- the body -----------------------------------------------------------------------------------------------------

    def _values(self) -> list[SSAValue]:
        """Write the body and return what it yields."""
        for op in self.op.body.block.ops:
            if isinstance(op, te.YieldOp):
                return [self.body.value(v) for v in op.values]
            if isinstance(op, te.ReadOp):
                if op.result not in self.body.values:
                    self.body.values[op.result] = self._extracted(op)
            elif isinstance(op, te.IndexOp):
                index = self._index(op.value)
                self.body.values[op.result] = self.body.b.add(arith.IndexCastOp(index, signless(op.result.type)))
            elif isinstance(op, te.PredicateOp):
                self.body.values[op.result] = self.body.b.conjunction(op.where.data, self._axis)
            else:
                self._plain(self.body, op)
        raise AssertionError("a body ends with lw_te.yield")

    def _plain(self, body: Statements, op: Operation) -> None:
        if not body.plain(op):
            raise PassFailedException(f"{NAME}: '{self.op.label.data}': {op.name} is no operation on elements")

    def _axis(self, name: str) -> SSAValue:
        if name not in self.indices:
            index = IndexOp(self.dimensions[name])
            first = self.block.first_op
            if first is None:
                self.block.add_op(index)
            else:
                self.block.insert_op_before(index, first)
            self.indices[name] = index.result
        return self.indices[name]

    def _index(self, expr: IndexExpr) -> SSAValue:
        return self.body.b.index_expression(expr, self._axis)

    def _extracted(self, op: te.ReadOp) -> SSAValue:
        """Return an element at computed indices; zero where a condition fails, the first one being read instead."""
        b, source = self.body.b, self.outer.value(op.tensor)
        positions = [self.body.value(v) for v in op.positions]
        indices = [b.index_expression(expr, self._axis, positions) for expr in op.indices.data]
        element = _element(source.type)
        if not op.conditions:
            return b.add(tensor.ExtractOp(source, indices, element))
        inside, zero = b.conjunction(op.conditions, self._axis), b.constant(0)
        indices = [b.select(inside, index, zero) for index in indices]
        return b.select(inside, b.add(tensor.ExtractOp(source, indices, element)), b.constant(0, element))

    def _combined(self, olds: Sequence[SSAValue], values: Sequence[SSAValue]) -> list[SSAValue]:
        """Return what the accumulated values and the new ones make together."""
        if self.op.combine is None:
            kind = self.op.outputs[0].type
            assert isinstance(kind, TensorType)
            join = combine_op(self.op.combiner.data, kind.get_element_type())
            return [self.body.b.binary(join, olds[0], values[0])]
        body = self.body
        body.values.update(zip(self.op.combine.block.args, [*olds, *values], strict=True))
        for op in self.op.combine.block.ops:
            if isinstance(op, te.YieldOp):
                return [body.value(v) for v in op.values]
            self._plain(body, op)
        raise AssertionError("a combiner ends with lw_te.yield")


def _element(kind: Attribute) -> Attribute:
    assert isinstance(kind, TensorType)
    element: Attribute = signless(kind.get_element_type())
    return element
