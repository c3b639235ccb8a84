"""The graph dialect: a network as named operators on whole tensors, before anything is said about loops."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Data, Dialect, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

Scalar: TypeAlias = "bool | int | float | str"
Option: TypeAlias = "Scalar | tuple[Scalar, ...] | tuple[()]"
"""Parameter of an operator beside its tensors: a number, a word, or several of them."""


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""Characters that a string of the IR's text holds as their numbers only."""


@irdl_attr_definition
class OptionsAttr(Data[tuple[tuple[str, Option], ...]]):
    """The options of an operator: `<layout = "NHWC", stride = [2, 2]>`, in the order of the names."""

    name = "lw_graph.options"

    @classmethod
    def of(cls, options: Mapping[str, Option]) -> OptionsAttr:
        return cls(tuple(sorted(options.items())))

    @property
    def values(self) -> dict[str, Option]:
        """The options by name."""
        return dict(self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, Option], ...]:
        pairs = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _parse_pair(parser))
        return tuple(sorted(pairs))

    def print_parameter(self, printer: Printer) -> None:
        shown = ", ".join(f"{name} = {format_option(value)}" for name, value in self.data)
        printer.print_string(f"<{shown}>")


def format_option(value: Option) -> str:
    """Return an option as the IR shows it: `true`, `2`, `1.0e-05`, `"NHWC"`, `[2, 2]`."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(format_option, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        escaped = _CONTROL.sub(lambda found: f"\\{ord(found[0]):02X}", escaped)
        return f'"{escaped}"'
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def _parse_pair(parser: AttrParser) -> tuple[str, Option]:
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    values = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_scalar(parser))
    return name, _parse_scalar(parser) if values is None else tuple(values)


def _parse_scalar(parser: AttrParser) -> Scalar:
    text = parser.parse_optional_str_literal()
    if text is not None:
        return text
    if parser.parse_optional_keyword("true"):
        return True
    if parser.parse_optional_keyword("false"):
        return False
    if parser.parse_optional_keyword("nan"):
        return math.nan
    negative = parser.parse_optional_punctuation("-") is not None
    if parser.parse_optional_keyword("inf"):
        return -math.inf if negative else math.inf
    number = parser.parse_number(allow_boolean=False)
    return -number if negative else number


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A tensor that is the same in every run: `lw_graph.constant "weight" : tensor<8x8xf32>`.

    Its values are kept beside the IR under its name; those of a single number are in the IR, `"half" = 0.5`, and so are
    those that a pass brought from IR, `"weight" = dense<"0x..."> : tensor<8x8xf32>`.
    """

    name = "lw_graph.constant"
    label = prop_def(StringAttr)
    number = opt_prop_def(OptionsAttr)
    values = opt_prop_def(DenseIntOrFPElementsAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, label: str, result_type: Attribute, number: bool | int | float | None = None) -> None:
        super().__init__(
            properties={
                "label": StringAttr(label),
                "number": None if number is None else OptionsAttr.of({"value": number}),
            },
            result_types=[result_type],
        )
        self.result.name_hint = hint(label)

    @property
    def value(self) -> bool | int | float | None:
        """The number, where the tensor is but one and known."""
        if self.number is None:
            return None
        value = self.number.values["value"]
        assert isinstance(value, bool | int | float)
        return value

    def verify_(self) -> None:
        assert isinstance(self.result.type, TensorType)
        if self.number is not None and math.prod(self.result.type.get_shape()) != 1:
            raise VerifyException(f"constant '{self.label.data}': one number cannot fill {self.result.type}")
        if self.values is not None and self.values.type != self.result.type:
            raise VerifyException(f"constant '{self.label.data}': its values are of type {self.values.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        if self.value is not None:
            printer.print_string(f" = {format_option(self.value)}")
        elif self.values is not None:
            printer.print_string(f' = dense<"0x{self.values.data.data.hex()}">')
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        label = parser.parse_str_literal()
        number: bool | int | float | None = None
        if parser.parse_optional_punctuation("="):
            if parser.parse_optional_keyword("dense"):
                values = parser.parse_dense_int_or_fp_elements_attr(None)
                made = cls(label, values.type)
                made.values = values
                return made
            value = _parse_scalar(parser)
            if isinstance(value, str):
                parser.raise_error("a constant is a number")
            number = value
        parser.parse_punctuation(":")
        return cls(label, parser.parse_type(), number)


@irdl_op_definition
class ApplyOp(IRDLOperation):
    """One operator on tensors: `lw_graph.apply "relu" (%x) : (tensor<8xf32>) -> tensor<8xf32>`.

    Options stand behind the tensors, `<axis = 1>`. What an operator takes and gives is known to `graph/operators`.
    """

    name = "lw_graph.apply"
    operator = prop_def(StringAttr)
    options = prop_def(OptionsAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self,
        operator: str,
        inputs: Sequence[SSAValue],
        options: Mapping[str, Option],
        result_types: Sequence[Attribute],
        label: str | None = None,
    ) -> None:
        super().__init__(
            operands=[list(inputs)],
            properties={"operator": StringAttr(operator), "options": OptionsAttr.of(options)},
            result_types=[list(result_types)],
        )
        for result in self.outputs:
            result.name_hint = hint(label or operator)

    def verify_(self) -> None:
        if not self.outputs:
            raise VerifyException(f"operator '{self.operator.data}' has no result")
        for kind in (value.type for value in (*self.inputs, *self.outputs)):
            if isinstance(kind, TensorType) and min(kind.get_shape(), default=1) < 1:
                raise VerifyException(f"operator '{self.operator.data}': extents are at least 1, got {kind}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.operator.data)
        printer.print_string(" (")
        printer.print_list(self.inputs, printer.print_ssa_value)
        printer.print_string(")")
        if self.options.data:
            printer.print_string(" ")
            self.options.print_parameter(printer)
        printer.print_string(" : (")
        printer.print_list(self.inputs, lambda v: printer.print_attribute(v.type))
        printer.print_string(") -> ")
        _print_types(printer, [v.type for v in self.outputs])

    @classmethod
    def parse(cls, parser: Parser) -> ApplyOp:
        operator = parser.parse_str_literal()
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.ANGLE, lambda: _parse_pair(parser))
        parser.parse_punctuation(":")
        kinds = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        operands = parser.resolve_operands(inputs, kinds, parser.pos)
        return cls(operator, operands, dict(pairs or ()), parse_types(parser))


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a group with its results: `lw_graph.yield %y : tensor<8xf32>`."""

    name = "lw_graph.yield"
    values = var_operand_def(TensorType)
    traits = traits_def(IsTerminator())
    assembly_format = "$values `:` type($values) attr-dict"


@irdl_op_definition
class GroupOp(IRDLOperation):
    """Operators that become one kernel:

    `%y = lw_graph.group "dense_relu" (%a = %x : tensor<1x8xf32>) -> tensor<1x4xf32> { ... lw_graph.yield ... }`

    With `in branch 1 of 0` behind the name, its kernel runs on one thread, beside those of other branches of 0.
    """

    name = "lw_graph.group"
    label = prop_def(StringAttr)
    branch = opt_prop_def(IntAttr)
    beside = opt_prop_def(IntAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(Pure(), IsolatedFromAbove())

    def __init__(self, label: str, inputs: Sequence[SSAValue], body: Region, result_types: Sequence[Attribute]) -> None:
        super().__init__(
            operands=[list(inputs)],
            properties={"label": StringAttr(label)},
            regions=[body],
            result_types=[list(result_types)],
        )

    def verify_(self) -> None:
        block = self.body.block
        if [a.type for a in block.args] != [v.type for v in self.inputs]:
            raise VerifyException(f"group '{self.label.data}': its arguments are not of the types of what it is given")
        last = block.last_op
        if not isinstance(last, YieldOp) or [v.type for v in last.values] != [v.type for v in self.outputs]:
            raise VerifyException(f"group '{self.label.data}' ends with a yield of its results")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        if self.branch is not None and self.beside is not None:
            printer.print_string(f" in branch {self.branch.data} of {self.beside.data}")
        printer.print_string(" (")
        for position, (argument, value) in enumerate(zip(self.body.block.args, self.inputs, strict=True)):
            printer.print_string(", " if position else "")
            printer.print_ssa_value(argument)
            printer.print_string(" = ")
            printer.print_ssa_value(value)
            printer.print_string(" : ")
            printer.print_attribute(value.type)
        printer.print_string(") -> ")
        _print_types(printer, [v.type for v in self.outputs])
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> GroupOp:
        label = parser.parse_str_literal()
        branch = cls._parse_branch(parser)
        arguments: list[Parser.Argument] = []

        def pair() -> SSAValue:
            name = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            value = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            kind = parser.parse_type()
            arguments.append(name.resolve(kind))
            return parser.resolve_operand(value, kind)

        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, pair)
        parser.parse_punctuation("->")
        types = parse_types(parser)
        group = cls(label, inputs, parser.parse_region(arguments), types)
        group.branch, group.beside = branch
        return group

    @staticmethod
    def _parse_branch(parser: Parser) -> tuple[IntAttr | None, IntAttr | None]:
        if parser.parse_optional_keyword("in") is None:
            return None, None
        parser.parse_keyword("branch")
        branch = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_keyword("of")
        return IntAttr(branch), IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False))


def _print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    if len(types) == 1:
        printer.print_attribute(types[0])
        return
    printer.print_string("(")
    printer.print_list(types, printer.print_attribute)
    printer.print_string(")")


def parse_types(parser: Parser) -> list[Attribute]:
    """Read one type, or several in parentheses."""
    several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if several is None else list(several)


def hint(label: str) -> str | None:
    """Return a name as SSA values may carry it."""
    text = "".join(c if (c.isalnum() and c.isascii()) or c == "." else "_" for c in label).strip("_.")
    return f"v{text}" if text[:1].isdigit() else text or None


def group_body(kinds: Sequence[Attribute]) -> Block:
    """Return an empty block for a group that takes tensors of these types."""
    block = Block(arg_types=list(kinds))
    for position, argument in enumerate(block.args):
        argument.name_hint = f"p{position}"
    return block


LwGraph = Dialect("lw_graph", [ConstantOp, ApplyOp, GroupOp, YieldOp], [OptionsAttr])
