"""From text of MLIR to xDSL's IR: generic and pretty form, with the line that each operation stands on."""

from __future__ import annotations

import importlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, builtin, cf, func, math, ml_program, scf
from xdsl.dialects.builtin import AnyFloat, ModuleOp, UnregisteredOp
from xdsl.ir import Operation
from xdsl.parser import AttrParser, Parser
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ...dialects.cached_property import cached_property
from .assembly._reading import Format
from .errors import MlirImportError
from .resources import Resources, without_resources

REGISTERED = (builtin.Builtin, func.Func, arith.Arith, math.Math, scf.Scf, cf.Cf, ml_program.MLProgram)
"""Dialects that xDSL reads; operations of all others are read by `assembly/`, and registered nowhere."""


_MALFORMED = (
    VerifyException, NotImplementedError, ValueError, IndexError, KeyError, TypeError, AssertionError, OverflowError,
)  # fmt: skip
"""Errors that xDSL's parser raises beside its ParseError."""


@dataclass(frozen=True)
class Program:
    """A module that was read; `lines` are those of its operations, `resources` what `dense_resource` stands for."""

    module: ModuleOp
    lines: Mapping[Operation, int] = field(default_factory=dict)
    resources: Resources = field(default_factory=dict)

    @cached_property
    def functions(self) -> Mapping[str, func.FuncOp]:
        """Functions of the module, and of modules in it, by name."""
        return {op.sym_name.data: op for op in _functions(self.module)}

    def place(self, op: Operation) -> str:
        """Return an operation's name and line."""
        line = self.lines.get(op)
        return name_of(op) if line is None else f"line {line}: {name_of(op)}"


def _functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    for op in module.ops:
        if isinstance(op, func.FuncOp):
            yield op
        elif isinstance(op, ModuleOp):
            yield from _functions(op)


def name_of(op: Operation) -> str:
    """Return an operation's name, one that is registered nowhere included."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


@cache
def formats() -> Mapping[str, Any]:
    """Return the modules of `assembly/` by dialect."""
    files = sorted((Path(__file__).parent / "assembly").glob("*.py"))
    stems = [file.stem for file in files if not file.stem.startswith("_")]
    return {stem: importlib.import_module(f".assembly.{stem}", __package__) for stem in stems}


class ReadingContext(Context):
    """A context that knows the assembly formats of `assembly/`, and registers no dialect for them."""

    def __init__(self) -> None:
        super().__init__(allow_unregistered=True)
        self._read: dict[str, type[Operation]] = {}
        for dialect in REGISTERED:
            self.load_dialect(dialect)

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        known = self._get_known_op(name)
        if known is not None:
            return known
        if "." not in name:
            found = (self._get_known_op(f"{dialect}.{name}") for dialect in reversed(dialect_stack))
            return next((op for op in found if op is not None), None)
        if name not in self._read:
            self._read[name] = _readable(name)
        return self._read[name]


def _readable(name: str) -> type[Operation]:
    """Return the class of an operation that is registered nowhere, and is read by its dialect's formats."""
    dialect, _, short = name.partition(".")
    module = formats().get(dialect)
    base: Any = UnregisteredOp.with_name(name)

    class ReadableOp(base):  # type: ignore[misc]
        @classmethod
        def parse(cls, parser: Parser) -> Operation:
            if module is None:
                parser.raise_error(f"operation {name} has no assembly format here: print it in the generic form")
            found: Format = module.FORMATS.get(short, module.common)
            return found(parser, name, cls)

    return ReadableOp


class _Element(AttrParser._TensorLiteralElement):
    """A number of a dense literal; hexadecimal ones are the bits of floats, which xDSL 0.74 reads as integers."""

    def to_type(self, parser: AttrParser, type: Any) -> Any:
        if isinstance(type, AnyFloat) and self.span.text[:2].lower() == "0x" and isinstance(self.value, int):
            return next(iter(type.iter_unpack(self.value.to_bytes(type.compile_time_size, "little"))))
        return super().to_type(parser, type)


class _Reader(Parser):
    """A parser that notes where operations stand."""

    def __init__(self, text: str) -> None:
        super().__init__(ReadingContext(), text)
        self.starts = list(_line_starts(text))
        self.lines: dict[Operation, int] = {}
        self.current: list[tuple[int, str]] = []

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        self.current.append((start, ""))
        op = super().parse_operation()
        self.current.pop()
        self.lines[op] = self.line(start)
        return op

    def parse_optional_location(self) -> None:
        """Pass over `loc(..)`, whose aliases stand behind their uses, which xDSL does not read."""
        if self.parse_optional_keyword("loc") is None:
            return
        self.parse_punctuation("(")
        depth = 1
        while depth:
            if self._current_token.kind == MLIRTokenKind.EOF:
                self.raise_error("a location is not closed")
            depth += {"(": 1, ")": -1}.get(self._consume_token().text, 0)

    def _parse_alias_def(self) -> None:
        if not self._current_token.text.startswith("#loc"):
            aliases: Any = super()
            aliases._parse_alias_def()
            return
        self._consume_token()
        self.parse_punctuation("=")
        self.parse_optional_location()

    def _parse_tensor_literal_element(self) -> AttrParser._TensorLiteralElement:
        found = super()._parse_tensor_literal_element()
        return _Element(found.is_negative, found.value, found.span)

    def _parse_dialect_resource_handle(self, dialect_name: str, interface: Any) -> str:
        """Return a resource's name as it stands, which xDSL makes unique among all that the process has read."""
        return self.parse_str_literal() if self._current_token.text.startswith('"') else self.parse_identifier()

    def line(self, position: int) -> int:
        """Return the number of the line that a position is on, from 1."""
        return bisect_right(self.starts, position)


def _line_starts(text: str) -> Iterator[int]:
    yield 0
    for position, character in enumerate(text):
        if character == "\n":
            yield position + 1


def read_text(text: str, program: str) -> Program:
    """Read a module from text; MlirImportError names the line and the operation that cannot be read."""
    try:
        body, resources = without_resources(text)
    except ValueError as error:
        raise MlirImportError(program, [f"its resources are malformed: {error}"]) from None
    reader = _Reader(body)
    try:
        module = reader.parse_module()
    except ParseError as error:
        position = error.span.start if error.span is not None else reader.pos
        raise MlirImportError(program, [_said(body, reader, position, error.msg)]) from error
    except _MALFORMED as error:
        place = reader.current[-1][0] if reader.current else reader.pos
        raise MlirImportError(program, [_said(body, reader, place, str(error) or "it is malformed")]) from error
    except RecursionError as error:
        raise MlirImportError(program, ["its regions or attributes are nested too deeply"]) from error
    return Program(module, reader.lines, resources)


def _said(text: str, reader: _Reader, position: int, message: str) -> str:
    """Return a sentence with the line and the operation that was being read."""
    shown = " ".join(message.split())
    if not reader.current:
        return f"line {reader.line(position)}: {shown}"
    start = reader.current[-1][0]
    words = text[start : start + 400].partition("\n")[0].partition("=")
    head = (words[2] if words[1] and words[0].lstrip().startswith("%") else words[0]).split()
    name = head[0].partition("(")[0].strip('"') if head else "operation"
    return f"line {reader.line(max(position, start))}: {name} cannot be read: {shown}"
