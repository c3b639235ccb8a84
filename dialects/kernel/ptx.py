"""Instructions of NVIDIA's PTX as one operation, which says what their registers hold before and after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, MemRefType, f32, i1
from xdsl.ir import Data, SSAValue
from xdsl.irdl import IRDLOperation, irdl_attr_definition, irdl_op_definition, prop_def, traits_def, var_operand_def
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..buffers import scope_of
from .types import element_of, lanes_of

FLOAT, ADDRESS, PLACE, POINTER, SIZE, ASKED = "f", "p", "place", "pointer", "size", "asked"
KINDS = (FLOAT, ADDRESS, PLACE, POINTER, SIZE, ASKED)
"""Kinds of inputs, which the names of their registers begin with: floats, addresses in shared memory that are loaded
from, and that are copied to, ones in global memory that are copied from, bytes of copies, conditions they are under.
"""
TEMPORARY = "t"
"""The beginning of the names of registers that the instructions write."""

Term = tuple[int, int]
"""An operand, by number, and the constant that it is multiplied by."""


class Input(NamedTuple):
    """A register that is set before the first instruction, and the operand, by number, that it is set to a part of.

    A float is the element `number` of a thread's array, or that lane of a value; an address is that of the element
    `terms` of a buffer; bytes are `number` where the operand holds, else none; a condition is the operand.
    """

    register: str
    operand: int
    number: int = 0
    terms: tuple[Term, ...] = ()

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return self.register.rstrip("0123456789")


class Output(NamedTuple):
    """An element of a thread's array, the operand, and the register that it is set to after the last instruction."""

    operand: int
    number: int
    register: str


@dataclass(frozen=True)
class Ptx:
    """Instructions, the registers that they find set, what is set to theirs; `t1` to `t<temporaries>` are their own."""

    inputs: tuple[Input, ...]
    temporaries: int
    instructions: tuple[str, ...]
    outputs: tuple[Output, ...]

    def inputs_of(self, kind: str) -> list[Input]:
        """The inputs of a kind, in their order."""
        return [each for each in self.inputs if each.kind == kind]

    @property
    def operands(self) -> list[int]:
        """The operands, by number, in the order in which they are named first."""
        named = [[each.operand, *(operand for operand, _ in each.terms)] for each in self.inputs]
        return list(dict.fromkeys([*chain(*named), *(each.operand for each in self.outputs)]))

    @property
    def registers(self) -> set[str]:
        """Names of all registers: those that are set before the instructions, and their own."""
        own = {f"{TEMPORARY}{number}" for number in range(1, self.temporaries + 1)}
        return own | {each.register for each in self.inputs}


class _PtxPrinter:
    """Prints instructions; operands as `operand` does."""

    def __init__(self, printer: Printer, operand: Callable[[int], object]) -> None:
        self._printer, self._operand = printer, operand

    def print(self, code: Ptx) -> None:
        write = self._printer.print_string
        with self._printer.in_square_brackets():
            self._printer.print_list(code.inputs, self._input)
        write(" {")
        for instruction in code.instructions:
            write("\n  ")
            self._printer.print_string_literal(instruction)
        write("\n} ")
        with self._printer.in_square_brackets():
            self._printer.print_list(code.outputs, self._output)
        write(f" temporaries {code.temporaries}")

    def _input(self, each: Input) -> None:
        kind = each.kind
        self._printer.print_string(f"{each.register} = {f'{each.number} if ' if kind == SIZE else ''}")
        self._operand(each.operand)
        if kind == FLOAT:
            self._printer.print_string(f"[{each.number}]")
        elif kind not in (SIZE, ASKED):
            with self._printer.in_square_brackets():
                self._printer.print_list(each.terms, self._term, " + ")

    def _term(self, term: Term) -> None:
        self._operand(term[0])
        if term[1] != 1:
            self._printer.print_string(f" * {term[1]}")

    def _output(self, each: Output) -> None:
        self._operand(each.operand)
        self._printer.print_string(f"[{each.number}] = {each.register}")


class _PtxParser:
    """Parses what `_PtxPrinter` prints; `operand` parses an operand, and gives its number."""

    def __init__(self, parser: AttrParser, operand: Callable[[], int]) -> None:
        self._parser, self._operand = parser, operand

    def parse(self) -> Ptx:
        parser, square = self._parser, self._parser.Delimiter.SQUARE
        inputs = parser.parse_comma_separated_list(square, self._input)
        parser.parse_punctuation("{")
        instructions = list[str]()
        while (instruction := parser.parse_optional_str_literal()) is not None:
            instructions.append(instruction)
        parser.parse_punctuation("}")
        outputs = parser.parse_comma_separated_list(square, self._output)
        parser.parse_keyword("temporaries")
        temporaries = parser.parse_integer(allow_boolean=False, allow_negative=False)
        return Ptx(tuple(inputs), temporaries, tuple(instructions), tuple(outputs))

    def _input(self) -> Input:
        register = self._register()
        kind = Input(register, 0).kind
        if kind not in KINDS:
            rule = f"a register that is set is {', '.join(KINDS)} and a number"
            self._parser.raise_error(f"{rule}, got '{register}'")
        number = 0
        if kind == SIZE:
            number = self._parser.parse_integer()
            self._parser.parse_keyword("if")
        source, terms = self._operand(), tuple[Term, ...]()
        if kind == FLOAT:
            number = self._number()
        elif kind not in (SIZE, ASKED):
            terms = tuple(self._terms())
        return Input(register, source, number, terms)

    def _register(self) -> str:
        register = self._parser.parse_identifier()
        self._parser.parse_punctuation("=")
        return register

    def _number(self) -> int:
        with self._parser.in_square_brackets():
            return self._parser.parse_integer()

    def _terms(self) -> Iterator[Term]:
        parser = self._parser
        parser.parse_punctuation("[")
        is_end = parser.parse_optional_punctuation("]") is not None
        while not is_end:
            operand = self._operand()
            yield operand, parser.parse_integer() if parser.parse_optional_punctuation("*") else 1
            is_end = parser.parse_optional_punctuation("]") is not None
            if not is_end:
                parser.parse_punctuation("+")

    def _output(self) -> Output:
        operand, number = self._operand(), self._number()
        self._parser.parse_punctuation("=")
        return Output(operand, number, self._parser.parse_identifier())


@irdl_attr_definition
class PtxAttr(Data[Ptx]):
    """Instructions, with operands by number: `#lw_kernel.ptx<[f0 = 0[0]] { "..." } [0[0] = t1] temporaries 1>`."""

    name = "lw_kernel.ptx"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Ptx:
        with parser.in_angle_brackets():
            return _PtxParser(parser, parser.parse_integer).parse()

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _PtxPrinter(printer, lambda number: printer.print_string(str(number))).print(self.data)


@irdl_op_definition
class PtxOp(IRDLOperation):
    """Instructions of PTX that each thread runs: loads of shared memory, multiply-adds, and copies to shared memory.

        lw_kernel.ptx [f0 = %sum[0], f1 = %v[0], p0 = %a_shared[%row * 64 + %k]] {
          "ld.shared.f32 t1, [p0+4];"
          "fma.rn.f32 t2, t1, f1, f0;"
        } [%sum[0] = t2] temporaries 2 : memref<1xf32, "local">, f32, memref<512xf32, "shared">, index, index

    Before them registers are set: `f0` to an element of a thread's array or to a lane of a value, `p0` to the address
    of an element of shared memory, `place0` and `pointer0` to where copies write and read, `size0` to as many bytes, or
    to 0 without its condition, `asked0` to a condition. Behind them elements of arrays are set to registers. Types are
    those of the operands, in the order in which these are named first.
    """

    name = "lw_kernel.ptx"
    values = var_operand_def()
    code = prop_def(PtxAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, values: Sequence[SSAValue], code: Ptx) -> None:
        super().__init__(operands=[values], properties={"code": PtxAttr(code)})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _PtxPrinter(printer, lambda number: printer.print_ssa_value(self.values[number])).print(self.code.data)
        printer.print_string(" : ")
        named = dict.fromkeys(self.values[number] for number in self.code.data.operands)
        printer.print_list(named, lambda value: printer.print_attribute(value.type))

    @classmethod
    def parse(cls, parser: Parser) -> PtxOp:
        numbers: dict[tuple[str, int], int] = {}
        operands: list[UnresolvedOperand] = []

        def operand() -> int:
            found = parser.parse_unresolved_operand()
            key = (found.operand_name, found.index)
            if key not in numbers:
                numbers[key] = len(operands)
                operands.append(found)
            return numbers[key]

        code, at = _PtxParser(parser, operand).parse(), parser.pos
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(parser.resolve_operands(operands, types, at), code)

    def verify_(self) -> None:
        if sorted(self.code.data.operands) != list(range(len(self.values))):
            named = ", ".join(map(str, sorted(self.code.data.operands)))
            raise VerifyException(f"instructions of {len(self.values)} operands name each of these, got {named}")
        for kind in KINDS:
            names = [each.register for each in self.code.data.inputs_of(kind)]
            if names != [f"{kind}{number}" for number in range(len(names))]:
                raise VerifyException(f"registers {kind} are numbered from 0 in their order, got {', '.join(names)}")
        for each in self.code.data.inputs:
            self._verify_input(each)
        registers = self.code.data.registers
        for output in self.code.data.outputs:
            value = self.values[output.operand]
            if not is_local_floats(value):
                raise VerifyException(f"{output.register} is written to {value.type}, which is no array of a thread")
            if not 0 <= output.number < _floats_in(value):
                raise VerifyException(f"{output.register} is written to element {output.number} of {value.type}")
            if output.register not in registers:
                raise VerifyException(f"{output.register} is written to {value.type}, and there is no such register")

    def _verify_input(self, each: Input) -> None:
        value = self.values[each.operand]
        if each.kind in (SIZE, ASKED):
            is_right = value.type == i1
        elif each.kind == FLOAT:
            is_right = 0 <= each.number < _floats_in(value)
        else:
            is_right = isinstance(value.type, MemRefType) and scope_of(value) == _SCOPES[each.kind]
        if not is_right:
            part = f"element {each.number} of {value.type}" if each.number else f"{value.type}"
            raise VerifyException(f"register {each.register} is set to no {part}")
        if any(not isinstance(self.values[term].type, IndexType) for term, _ in each.terms):
            raise VerifyException(f"the place of {each.register} is a sum of multiples of indices")


_SCOPES = {ADDRESS: "shared", PLACE: "shared", POINTER: "global"}


def is_local_floats(value: SSAValue) -> bool:
    """True for an array of single precision of a thread."""
    return isinstance(value.type, MemRefType) and scope_of(value) == "local" and value.type.element_type == f32


def _floats_in(value: SSAValue) -> int:
    """The elements of a thread's array, or the lanes of a value, that are of single precision."""
    if is_local_floats(value):
        assert isinstance(value.type, MemRefType)
        return prod(value.type.get_shape())
    return lanes_of(value.type) if element_of(value.type) == f32 else 0
