"""The te dialect: what to compute, as a DAG of named tensor expressions with no order."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    i1,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .attributes import (
    AxesAttr,
    Axis,
    IndicesAttr,
    format_axis,
    format_indices,
    format_where,
    parse_axis,
    parse_conditions,
    parse_index_expr,
    parse_indices,
    parse_label,
    parse_optional_where,
)
from .bounds import outside
from .combiner import NAMED
from .index import IndexExpr, Lookup, Ranges, constant
from .lookups import lookups_in, parse_positions, print_positions, verify_dependences, verify_positions
from .names import check_axis_name, check_name
from .shown_text import one_line

_INDEX_LIMIT = 1 << 63
"""Index expressions are computed in 64 bits with a sign."""


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a scalar body: `lw_te.yield %x : f32`."""

    name = "lw_te.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "$values `:` type($values) attr-dict"


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The value of an index expression as an integer: `lw_te.index i * 2 + 1 : i32`."""

    name = "lw_te.index"
    expr = prop_def(IndicesAttr)
    result = result_def(IntegerType)
    traits = traits_def(Pure())

    def __init__(self, expr: IndexExpr, result_type: Attribute) -> None:
        super().__init__(properties={"expr": IndicesAttr((expr,))}, result_types=[result_type])

    @property
    def value(self) -> IndexExpr:
        return self.expr.data[0]

    def verify_(self) -> None:
        if len(self.expr.data) != 1:
            raise VerifyException(f"lw_te.index is of one expression, got {len(self.expr.data)}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.value} : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        expr = parse_index_expr(parser)
        parser.parse_punctuation(":")
        return cls(expr, parser.parse_type())


def unsigned_constant(value: int, element: Attribute) -> IndexOp:
    """A number of an unsigned type, of which `arith.constant` has none; the upper half of ui64 wraps, as indices do."""
    return IndexOp(constant(wrapped_index(value)), element)


def wrapped_index(value: int) -> int:
    """Return the signed index with the same 64 bits as an unsigned number below 2 ** 64."""
    return value - (1 << 64) if value >= 1 << 63 else value


@irdl_op_definition
class PredicateOp(IRDLOperation):
    """True where every condition holds: `lw_te.predicate (i - 1 >= 0, 6 - i >= 0)`."""

    name = "lw_te.predicate"
    where = prop_def(IndicesAttr)
    result = result_def(i1)
    traits = traits_def(Pure())

    def __init__(self, conditions: Sequence[IndexExpr]) -> None:
        super().__init__(properties={"where": IndicesAttr(tuple(conditions))}, result_types=[i1])

    def print(self, printer: Printer) -> None:
        printer.print_string(format_where(self.where.data).removeprefix(" where") or " ()")

    @classmethod
    def parse(cls, parser: Parser) -> PredicateOp:
        return cls(parse_conditions(parser))


@irdl_op_definition
class ReadOp(IRDLOperation):
    """One element of a tensor; zero where a condition fails, in which case the indices may lie outside:

    `lw_te.read %data[i0, i1, i2 - 1, i3 - 1] where (i2 - 1 >= 0, 7 - i2 >= 0) : tensor<1x512x7x7xf32>`

    A position may be a number that was computed before, clamped into `[0, n)`; `?0(i) of n` says that it is the first
    of those behind `at`, and which axes it depends on: `lw_te.read %table[?0(i) of 100, j] at (%3 : i64) : ...`.
    """

    name = "lw_te.read"
    tensor = operand_def(TensorType)
    positions = var_operand_def()
    indices = prop_def(IndicesAttr)
    where = opt_prop_def(IndicesAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self,
        tensor: SSAValue,
        indices: Sequence[IndexExpr],
        where: Sequence[IndexExpr] = (),
        positions: Sequence[SSAValue] = (),
    ) -> None:
        assert isinstance(tensor.type, TensorType)
        super().__init__(
            operands=[tensor, positions],
            properties={
                "indices": IndicesAttr(tuple(indices)),
                "where": IndicesAttr(tuple(where)) if where else None,
            },
            result_types=[tensor.type.get_element_type()],
        )

    @property
    def conditions(self) -> tuple[IndexExpr, ...]:
        return self.where.data if self.where is not None else ()

    def verify_(self) -> None:
        assert isinstance(self.tensor.type, TensorType)
        rank = self.tensor.type.get_num_dims()
        if len(self.indices.data) != rank:
            raise VerifyException(f"{len(self.indices.data)} indices for a tensor of rank {rank}")
        if self.result.type != self.tensor.type.get_element_type():
            raise VerifyException(f"an element of {self.tensor.type} is no {self.result.type}")
        verify_positions(self.indices.data, self.conditions, self.positions)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.tensor)
        printer.print_string(format_indices(self.indices.data))
        print_positions(printer, self.positions)
        printer.print_string(format_where(self.conditions) + " : ")
        printer.print_attribute(self.tensor.type)

    @classmethod
    def parse(cls, parser: Parser) -> ReadOp:
        operand = parser.parse_unresolved_operand()
        indices = parse_indices(parser)
        positions = parse_positions(parser)
        where = parse_optional_where(parser)
        parser.parse_punctuation(":")
        tensor_type = parser.parse_type()
        if not isinstance(tensor_type, TensorType):
            parser.raise_error("expected a tensor type")
        tensor = parser.resolve_operand(operand, tensor_type)
        return cls(tensor, indices, where.data if where is not None else (), positions)


@irdl_op_definition
class ComputeOp(IRDLOperation):
    """A named tensor expression: axes, a scalar body, and a combiner over the reduction axes.

    `%c = lw_te.compute "c" [i = 64, j = 64, reduce k = 128] add -> tensor<64x64xf32> { ... lw_te.yield %p : f32 }`

    A `custom` combiner lists identities and has a second region from (accumulated..., new...) to the joined values.
    """

    name = "lw_te.compute"
    label = prop_def(StringAttr)
    axes = prop_def(AxesAttr)
    combiner = prop_def(StringAttr)
    identity = opt_prop_def(ArrayAttr)
    body = region_def("single_block")
    combine = opt_region_def("single_block")
    outputs = var_result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self,
        label: str,
        axes: Sequence[Axis],
        combiner: str,
        body: Region,
        result_types: Sequence[Attribute],
        identity: Sequence[Attribute] | None = None,
        combine: Region | None = None,
    ) -> None:
        super().__init__(
            properties={
                "label": StringAttr(label),
                "axes": AxesAttr(tuple(axes)),
                "combiner": StringAttr(combiner),
                "identity": ArrayAttr(identity) if identity is not None else None,
            },
            regions=[body, combine],
            result_types=[result_types],
        )
        self.outputs[0].name_hint = label

    @property
    def spatial_axes(self) -> tuple[Axis, ...]:
        return tuple(a for a in self.axes.data if not a.reduce)

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        return tuple(a for a in self.axes.data if a.reduce)

    def verify_(self) -> None:
        check_name("an lw_te.compute", self.label.data)
        if not self.outputs:
            raise VerifyException(f"'{self.label.data}' has no result")
        verify_axes(f"'{self.label.data}'", self.axes.data)
        shape = tuple(a.extent for a in self.spatial_axes)
        for output in self.outputs:
            assert isinstance(output.type, TensorType)
            if output.type.get_shape() != shape:
                raise VerifyException(f"'{self.label.data}': axes give shape {shape}, result is {output.type}")
        combiner = self.combiner.data
        if combiner not in (*NAMED, "custom", "none"):
            raise VerifyException(f"'{self.label.data}': unknown combiner '{combiner}'")
        if (combiner == "custom") != (self.combine is not None) or (combiner == "custom") != (
            self.identity is not None
        ):
            raise VerifyException(f"'{self.label.data}': a custom combiner has identities and a region, others do not")
        if (combiner == "none") == bool(self.reduce_axes):
            raise VerifyException(f"'{self.label.data}': reduction axes and a combiner go together")
        last = self.body.block.last_op
        if not isinstance(last, YieldOp) or len(last.values) != len(self.outputs):
            raise VerifyException(f"'{self.label.data}': the body yields one value per result")
        if self.body.block.args:
            raise VerifyException(f"'{self.label.data}': the body takes no arguments")
        verify_body(f"'{self.label.data}'", self.body.block, self.axes.data, [o.type for o in self.outputs])
        moving = {a.name for a in self.axes.data if a.extent > 1}
        verify_dependences(f"'{self.label.data}'", self.body.block, moving)
        self._verify_combine()
        ranges = {a.name: (0, a.extent - 1) for a in self.axes.data}
        for op in self.body.block.ops:
            _verify_expressions(f"'{self.label.data}'", op, ranges)

    def _verify_combine(self) -> None:
        """Refuse a combiner that does not join what the body yields."""
        if self.combine is None or self.identity is None:
            return
        what = f"'{self.label.data}'"
        elements = [o.type.get_element_type() for o in self.outputs if isinstance(o.type, TensorType)]
        if [a.type for a in self.combine.block.args] != [*elements, *elements]:
            raise VerifyException(f"{what}: the combiner takes {', '.join(map(str, [*elements, *elements]))}")
        if [getattr(i, "type", None) for i in self.identity] != elements:
            raise VerifyException(f"{what}: its identities are one number per result, of the result's type")
        last = self.combine.block.last_op
        if not isinstance(last, YieldOp) or [v.type for v in last.values] != elements:
            raise VerifyException(f"{what}: the combiner yields {', '.join(map(str, elements))}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        printer.print_string(" [" + ", ".join(map(format_axis, self.axes.data)) + "]")
        print_combiner(printer, self.combiner.data, self.identity)
        printer.print_string(" -> ")
        printer.print_list(self.outputs, lambda o: printer.print_attribute(o.type))
        printer.print_string(" ")
        printer.print_region(self.body)
        if self.combine is not None:
            printer.print_string(" combine ")
            printer.print_region(self.combine)

    @classmethod
    def parse(cls, parser: Parser) -> ComputeOp:
        label = parse_label(parser, "an lw_te.compute")
        axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_axis(parser))
        combiner, identity = parse_combiner(parser)
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        body = parser.parse_region()
        combine = parser.parse_region() if parser.parse_optional_keyword("combine") else None
        return cls(label, axes, combiner, body, types, identity, combine)


def verify_body(what: str, body: Block, axes: Sequence[Axis], containers: Sequence[Attribute]) -> None:
    """Refuse a body that names other axes than `axes`, or yields other elements than tensors or buffers hold."""
    names = {a.name for a in axes}
    for op in body.ops:
        for name in ("indices", "where", "expr"):
            found = op.properties.get(name)
            for expr in found.data if isinstance(found, IndicesAttr) else ():
                if missing := expr.axes() - names:
                    raise VerifyException(f"{what}: the body names '{min(missing)}', which is no axis of it")
                if name == "expr" and lookups_in(expr):
                    raise VerifyException(f"{what}: {expr} is read, which only a read's indices can be")
    last = body.last_op
    assert last is not None
    for value, container in zip(last.operands, containers, strict=True):
        assert isinstance(container, TensorType | MemRefType)
        element = container.get_element_type()
        if value.type != element:
            raise VerifyException(f"{what}: the body yields {value.type} where {element} is kept")


def verify_axes(what: str, axes: Sequence[Axis]) -> None:
    """Refuse axes with names that repeat or are none, or without an iteration."""
    names = [a.name for a in axes]
    for axis in axes:
        check_axis_name(f"an axis of {what}", axis.name)
        if axis.extent < 1:
            raise VerifyException(f"{what}: axis '{axis.name}' has extent {axis.extent}, at least 1 is needed")
    if len(set(names)) != len(names):
        raise VerifyException(f"{what}: axis names repeat: {', '.join(names)}")


def _verify_expressions(what: str, op: Operation, ranges: Ranges) -> None:
    """Refuse a read that leaves its tensor, and index expressions that 64 bits do not hold."""
    for name in ("indices", "where", "expr"):
        found = op.properties.get(name)
        for expr in found.data if isinstance(found, IndicesAttr) else ():
            _verify_range(what, expr, ranges)
    if not isinstance(op, ReadOp):
        return
    assert isinstance(op.tensor.type, TensorType)
    for axis, (index, extent) in enumerate(zip(op.indices.data, op.tensor.type.get_shape(), strict=True)):
        if span := outside(index, extent, op.conditions, ranges):
            tensor = op.tensor.name_hint or "a tensor"
            raise VerifyException(
                f"{what}: '{tensor}' is read out of bounds on axis {axis}: index {one_line(str(index))} ranges over "
                f"[{span[0]}, {span[1]}], the extent is {extent}"
            )


def _verify_range(what: str, expr: IndexExpr, ranges: Ranges) -> None:
    """Refuse an expression that has a number, itself or a part of it, that 64 bits do not hold."""
    numbers = [expr.const, *(c for _, c in expr.terms), *expr.bounds(ranges)]
    for atom, _ in expr.terms:
        if isinstance(atom, Lookup):
            numbers.append(atom.extent)
            for part in atom.args:
                _verify_range(what, part, ranges)
        elif not isinstance(atom, str):
            numbers.append(atom.divisor)
            _verify_range(what, atom.expr, ranges)
    if max(map(abs, numbers)) >= _INDEX_LIMIT:
        raise VerifyException(f"{what}: index expression {one_line(str(expr))} does not fit into 64 bits")


def print_combiner(printer: Printer, combiner: str, identity: ArrayAttr[Attribute] | None) -> None:
    """Print ` add`, ` custom [0.0 : f32]`, or nothing for `none`."""
    if combiner == "none":
        return
    printer.print_string(f" {combiner}")
    if identity is not None:
        printer.print_string(" ")
        printer.print_attribute(identity)


def parse_combiner(parser: Parser) -> tuple[str, list[Attribute] | None]:
    """Parse what `print_combiner` prints."""
    combiner = parser.parse_optional_keyword_in((*NAMED, "custom")) or "none"
    if combiner != "custom":
        return combiner, None
    return combiner, list(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_attribute))


LwTe = Dialect("lw_te", [ComputeOp, ReadOp, IndexOp, PredicateOp, YieldOp], [])
