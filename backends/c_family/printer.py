"""Statements of one kernel: values become variables or stay part of the expressions that use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.kernel import LaunchOp
from ..unsupported import UnsupportedError
from .communication import passed_between_threads
from .expression import ATOM, Expr, Place
from .hints import hint_of
from .language import Language
from .names import Names
from .types import element_name, is_float

INDENT = "    "
_ATOM_TEXT = re.compile(r"[\w.]+f?|\w+\.\w+(\[\d+\])?", re.ASCII)
_MULTIPLE_TEXT = re.compile(r"[A-Za-z_]\w* \* -?\d+", re.ASCII)
_LONGEST_INLINED = 100
"""An expression with more characters gets a name, for people's eyes."""


@dataclass(frozen=True)
class Buffer:
    """A buffer as a kernel sees it; `scope` is global, shared or local, `is_scalar` a local one of one element."""

    name: str
    kind: str
    scope: str
    size: int

    @property
    def is_scalar(self) -> bool:
        return self.scope == "local" and self.size == 1


class KernelPrinter:
    """Prints the body of one launch; vectors are printed lane by lane, but for what moves them to and from memory."""

    def __init__(
        self,
        language: Language,
        operations: Mapping[type[Operation], Callable[[KernelPrinter, Operation], None]],
        long_index: bool,
        launch: LaunchOp,
        names: Names,
    ) -> None:
        self.language = language
        self.operations = operations
        self.long_index = long_index
        self.launch = launch
        self.names = names
        self.head: list[str] = []
        self.lines: list[str] = []
        self.indent = INDENT
        self.axes: dict[str, Expr] = {}
        self.kinds: set[str] = set()
        self.vectors: set[tuple[str, int]] = set()
        self.vector_names: dict[str, tuple[str, int]] = {}
        self.helpers: set[str] = set()
        self.buffers: dict[SSAValue, Buffer] = {}
        self.stored: set[SSAValue] = set()
        self.passed = passed_between_threads(launch)
        """Buffers in global memory that are not `restrict`, and that barriers order."""
        self.maps: dict[object, str] = {}
        """Names of the tensor maps that the kernel takes, by what they are made of."""
        self.done: set[Operation] = set()
        """Operations that another one was printed with."""
        self.used: dict[SSAValue, None] = {}
        self._values: dict[SSAValue, tuple[Expr, ...]] = {}
        self._waiting: dict[SSAValue, dict[SSAValue, None]] = {}
        self._known: dict[tuple[str, str], Expr] = {}
        """Variables by kind and value, to be used instead of the value where it is written again."""
        self._renamed: list[tuple[SSAValue, tuple[Expr, ...]]] = []
        """Earlier names of values that were named anew within the innermost braces, which hold there only."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        x, y, z = self.launch.block_size
        return x * y * z

    def axis_size(self, axis: str) -> int:
        """Return how many values `blockIdx.x` and its like take."""
        sizes = self.launch.grid_size if axis.startswith("block") else self.launch.block_size
        return sizes["xyz".index(axis[-1])]

    # -- values -------------------------------------------------------------------------------------------------------

    def knows(self, value: SSAValue) -> bool:
        """True for a value that has an expression."""
        return value in self._values

    def lanes(self, value: SSAValue) -> tuple[Expr, ...]:
        """Return a value's lanes, one for a scalar; asked for once by each use."""
        return self._values[value]

    def scalar(self, value: SSAValue) -> Expr:
        """Return a scalar's expression."""
        (expression,) = self._values[value]
        return expression

    def atoms(self, value: SSAValue) -> tuple[Expr, ...]:
        """Return a value's lanes as names or literals, to be written more than once."""
        lanes = self._values[value]
        if not all(map(_is_atom, lanes)):
            self._name(value, lanes)
        return self._values[value]

    def define(self, value: SSAValue, lanes: Sequence[Expr]) -> None:
        """Give a value its expression: a variable if it is used more than once, elsewhere or is long."""
        if value.first_use is None:
            return
        kind = element_name(value.type)
        lanes = tuple(self._known.get((kind, lane.text), lane) for lane in lanes)
        if all(map(_is_repeatable, lanes)) or self._stays(value, lanes):
            self._values[value] = lanes
            for lane in lanes:
                for place in lane.reads:
                    self._waiting.setdefault(place.buffer, {})[value] = None
            return
        self._name(value, lanes)

    def define_literal(self, value: SSAValue, lanes: Sequence[Expr]) -> None:
        """Give a value the text that each use repeats."""
        self._values[value] = tuple(lanes)

    def _stays(self, value: SSAValue, lanes: tuple[Expr, ...]) -> bool:
        use = value.get_unique_use()
        if use is None or use.operation.parent is not _block_of(value):
            return False
        return max(len(lane.text) for lane in lanes) <= _LONGEST_INLINED

    def _name(self, value: SSAValue, lanes: Sequence[Expr]) -> None:
        kind = element_name(value.type)
        hint = self.hint(value)
        named: dict[str, Expr] = {}
        for number, lane in enumerate(lanes):
            if lane.text not in named:
                label = hint if len(lanes) == 1 else f"{hint}_{number}"
                named[lane.text] = lane if _is_atom(lane) else self.variable(kind, label, lane)
        if value in self._values:
            self._renamed.append((value, self._values[value]))
        self._values[value] = tuple(named[lane.text] for lane in lanes)

    def variable(self, kind: str, hint: str, value: Expr) -> Expr:
        """Write `const type name = value;` and return the name."""
        known = self._known.get((kind, value.text))
        if known is not None and not value.reads:
            return known
        named = Expr(self.names.fresh(hint), natural=value.natural)
        self.line(f"const {self.type_of(kind)} {named.text} = {value.text};")
        if not value.reads:
            self._known[kind, value.text] = named
        return named

    def hint(self, value: SSAValue) -> str:
        """Return what to call a value."""
        return hint_of(value, self._name_of)

    def _name_of(self, value: SSAValue) -> str | None:
        """Return the name of a buffer, or of a value that is a variable."""
        if value in self.buffers:
            return self.buffers[value].name
        lanes = self._values.get(value, ())
        return lanes[0].text if len(lanes) == 1 and lanes[0].text.isidentifier() else None

    def type_of(self, kind: str) -> str:
        """Return the type of a variable of the given kind."""
        self.kinds.add(kind)
        return self.language.value_type(kind, self.long_index)

    def literal(self, value: int | float, kind: str) -> Expr:
        """Return a literal of the given kind."""
        self.kinds.add(kind)
        if is_float(kind):
            return self.language.float_literal(float(value), kind)
        return self.language.integer_literal(int(value), kind, self.long_index)

    # -- memory -------------------------------------------------------------------------------------------------------

    def buffer(self, buffer: SSAValue) -> Buffer:
        """Return a buffer's description, and note its use."""
        self.used[buffer] = None
        description = self.buffers[buffer]
        self.kinds.add(description.kind)
        return description

    def settle(self, place: Place) -> None:
        """Name the expressions that load what is about to be overwritten and have not been written yet."""
        waiting = self._waiting.get(place.buffer)
        if not waiting:
            return
        for value in list(waiting):
            lanes = self._values[value]
            if any(read.may_be(place) for lane in lanes for read in lane.reads):
                del waiting[value]
                self._name(value, lanes)

    def settle_all(self, keep_local: bool = False) -> None:
        """Name every waiting expression that loads; `keep_local`: but for those that load registers only."""
        for buffer, waiting in self._waiting.items():
            if keep_local and self.buffers[buffer].scope == "local":
                continue
            values, waiting_values = list(waiting), waiting
            waiting_values.clear()
            for value in values:
                if any(lane.reads for lane in self._values[value]):
                    self._name(value, self._values[value])

    def consumed(self, op: Operation) -> None:
        """Forget the operands of an operation that were waiting for it."""
        for operand in op.operands:
            lanes = self._values.get(operand, ())
            for lane in lanes:
                for place in lane.reads:
                    self._waiting.get(place.buffer, {}).pop(operand, None)

    # -- statements ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Write one line."""
        self.lines.append(f"{self.indent}{text}")

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Let names that are given inside be given again after it."""
        known = dict(self._known)
        self.names.enter()
        yield
        self.names.leave()
        self._known = known

    @contextmanager
    def braces(self, head: str) -> Iterator[None]:
        """Write `head {`, what is printed inside, and `}`."""
        self.line(f"{head} {{")
        before, self.indent = self.indent, self.indent + INDENT
        outside, self._renamed = self._renamed, []
        with self.scope():
            yield
        self.indent = before
        for value, lanes in reversed(self._renamed):
            self._values[value] = lanes
        self._renamed = outside
        self.line("}")

    def block(self, block: Block) -> None:
        """Print the operations of a block in order."""
        for op in block.ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        """Print an operation, if it is not yet done."""
        if op in self.done:
            return
        handler = self.operations.get(type(op))
        if handler is None:
            raise UnsupportedError(f"{self.language.title} has no {op.name}: {str(op).partition(chr(10))[0]}")
        self.consumed(op)
        handler(self, op)


Handler = Callable[[KernelPrinter, Operation], None]
"""Prints one operation."""


def _is_atom(expression: Expr) -> bool:
    """True for what may be written again: a literal, a variable, a lane of one."""
    if expression.number is not None:
        return True
    return not expression.reads and expression.precedence == ATOM and bool(_ATOM_TEXT.fullmatch(expression.text))


def _is_repeatable(expression: Expr) -> bool:
    """True for what reads best where it is used: an atom, its negative or a multiple, which compilers compute once."""
    if _is_atom(expression) or expression.reads:
        return not expression.reads
    return bool(_MULTIPLE_TEXT.fullmatch(expression.text)) or bool(expression.negates and _is_atom(expression.negates))


def _block_of(value: SSAValue) -> Block | None:
    return value.owner.parent if isinstance(value.owner, Operation) else value.owner
