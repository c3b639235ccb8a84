"""Additions of lowering to loops: barriers, nests run for another iteration, the forms that loops are written in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Data, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .attributes import (
    IndicesAttr,
    across_attribute,
    axes_across,
    format_across,
    format_conditions,
    format_where,
    parse_conditions,
    parse_index_expr,
    parse_optional_across,
    parse_optional_where,
)
from .index import IndexExpr
from .labels import label_of
from .names import check_axis_name

LOWERED_BY = "lw.lowered_by"
"""The attribute of a function on its way from loops to a kernel: the last step, behind which none of a schedule is."""


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """The threads of a block wait for each other before what follows: `lw_loop.barrier where (k - 1 >= 0)`.

    `where` is over unrolled loops around, in some copies of which no barrier is needed. `lw_loop.barrier cluster` is
    for the threads of all blocks of a cluster, behind which the copy engine may write what they have read.
    """

    name = "lw_loop.barrier"
    where = opt_prop_def(IndicesAttr)
    cluster = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, where: Sequence[IndexExpr] = (), cluster: bool = False) -> None:
        properties = {"where": IndicesAttr(tuple(where)) if where else None, "cluster": UnitAttr() if cluster else None}
        super().__init__(properties=properties)

    @property
    def conditions(self) -> tuple[IndexExpr, ...]:
        return self.where.data if self.where is not None else ()

    def verify_(self) -> None:
        around = names_around(self)
        if not around:
            raise VerifyException("a barrier is for the threads of a block, so it stands in a loop")
        if missing := {name for e in self.conditions for name in e.axes()} - around:
            raise VerifyException(f"a barrier asks for '{min(missing)}', which is no loop around it")

    def print(self, printer: Printer) -> None:
        printer.print_string(f"{' cluster' * (self.cluster is not None)}{format_where(self.conditions)}")

    @classmethod
    def parse(cls, parser: Parser) -> BarrierOp:
        cluster = parser.parse_optional_keyword("cluster") is not None
        where = parse_optional_where(parser)
        return cls(where.data if where is not None else (), cluster)


@irdl_op_definition
class ArrivalsOp(IRDLOperation):
    """Barriers that count the bytes of bulk copies, one for each stage of a pipelined loop: `lw_loop.arrivals k of 4`

    awaits those of the iteration of loop `k` that it stands in; `lw_loop.arrivals start k of 4` makes them before it.
    With `across [blockIdx.y]` behind that, copies come to all blocks of a cluster along these axes that want the same.
    """

    name = "lw_loop.arrivals"
    label = prop_def(StringAttr)
    stages = prop_def(IntAttr)
    start = opt_prop_def(UnitAttr)
    across = opt_prop_def(ArrayAttr[StringAttr])
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, loop_name: str, stages: int, start: bool = False, across: Sequence[str] = ()) -> None:
        super().__init__(
            properties={
                "label": StringAttr(loop_name),
                "stages": IntAttr(stages),
                "start": UnitAttr() if start else None,
                "across": across_attribute(across),
            }
        )

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of blocks that are a cluster."""
        return axes_across(self.across)

    def verify_(self) -> None:
        check_axis_name("a loop", self.label.data)
        if self.start is None and self.label.data not in names_around(self):
            raise VerifyException(f"'{self.name}' asks for '{self.label.data}', which is no loop around it")
        require_lowering(self, f"'{self.name}' stands")

    def print(self, printer: Printer) -> None:
        start, across = " start" if self.start is not None else "", format_across(self.axes)
        printer.print_string(f"{start} {self.label.data} of {self.stages.data}{across}")

    @classmethod
    def parse(cls, parser: Parser) -> ArrivalsOp:
        start = parser.parse_optional_keyword("start") is not None
        name = parser.parse_identifier()
        parser.parse_keyword("of")
        stages = parser.parse_integer()
        return cls(name, stages, start, parse_optional_across(parser))


@irdl_op_definition
class JoinOp(IRDLOperation):
    """The nest behind is of the launch of the nest before: `lw_loop.join blockIdx.y of 8`.

    Of 8 blocks of threads, which differ on blockIdx.y alone, the last one to have run the nest before runs that behind.
    Of those in a cluster, `lw_loop.join blockIdx.y of 8 together`, all wait for each other and run it.
    """

    name = "lw_loop.join"
    axes = prop_def(ArrayAttr[StringAttr])
    parts = prop_def(IntAttr)
    together = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, axes: Sequence[str], parts: int, together: bool = False) -> None:
        super().__init__(
            properties={
                "axes": ArrayAttr([StringAttr(a) for a in axes]),
                "parts": IntAttr(parts),
                "together": UnitAttr() if together else None,
            }
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The axes of blocks that arrive."""
        return tuple(a.data for a in self.axes)

    def verify_(self) -> None:
        wrong = [kind for kind in self.kinds if kind not in _BLOCK_AXES]
        if wrong or not self.kinds or self.parts.data < 2:
            raise VerifyException("two blocks of threads or more join what they wrote, along axes of blocks")
        if any(op is None or op.name not in _JOINED for op in (self.prev_op, self.next_op)):
            raise VerifyException(f"'{self.name}' stands between two nests")
        require_lowering(self, f"'{self.name}' stands")

    def print(self, printer: Printer) -> None:
        together = " together" if self.together is not None else ""
        printer.print_string(f" {', '.join(self.kinds)} of {self.parts.data}{together}")

    @classmethod
    def parse(cls, parser: Parser) -> JoinOp:
        axes = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_identifier)
        parser.parse_keyword("of")
        parts = parser.parse_integer()
        return cls(axes, parts, parser.parse_optional_keyword("together") is not None)


_JOINED = ("lw_loop.for", "lw_loop.if", "lw_loop.versions")
_ELSEWHERE = ("lw_loop.for", "lw_loop.block", "lw_loop.barrier", "lw_kernel.commit", "lw_kernel.wait")
"""Nests that may be run as in another iteration, and what that begins with: its copies are there, threads meet."""
_BLOCK_AXES = tuple(f"blockIdx.{d}" for d in "xyz")


@irdl_op_definition
class AtOp(IRDLOperation):
    """Nests, run as in another iteration of a loop: `lw_loop.at k = k + 2 where (61 - k >= 0) { ... }`.

    In it `k` is that iteration; it need not be in the loop, for an iteration that is a number. `where` is over the
    loops around: where it does not hold, nothing is run. An iteration that is begun in the one before waits for its
    copies there, and its threads for each other: `lw_loop.at k = k + 1 where (s - 3 >= 0) { wait 0 barrier read(k) }`.
    """

    name = "lw_loop.at"
    label = prop_def(StringAttr)
    iteration = prop_def(IndicesAttr)
    where = opt_prop_def(IndicesAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, loop_name: str, iteration: IndexExpr, body: Region, where: Sequence[IndexExpr] = ()) -> None:
        super().__init__(
            properties={
                "label": StringAttr(loop_name),
                "iteration": IndicesAttr((iteration,)),
                "where": IndicesAttr(tuple(where)) if where else None,
            },
            regions=[body],
        )

    @property
    def loop_name(self) -> str:
        return self.label.data

    @property
    def value(self) -> IndexExpr:
        return self.iteration.data[0]

    @property
    def conditions(self) -> tuple[IndexExpr, ...]:
        return self.where.data if self.where is not None else ()

    def verify_(self) -> None:
        check_axis_name("a loop", self.loop_name)
        if len(self.iteration.data) != 1:
            raise VerifyException(f"'{self.name}' of loop '{self.loop_name}' is at one iteration")
        if missing := {name for e in (self.value, *self.conditions) for name in e.axes()} - names_around(self):
            raise VerifyException(f"'{self.name}' asks for '{min(missing)}', which is no loop around it")
        require_lowering(self, f"'{self.name}' stands")
        for op in self.body.block.ops:
            if op.name not in _ELSEWHERE:
                raise VerifyException(f"'{self.name}' holds '{op.name}', only loops and blocks belong there")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.loop_name} = {self.value}{format_where(self.conditions)} ")
        printer.print_region(self.body, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> AtOp:
        name = parser.parse_identifier()
        parser.parse_punctuation("=")
        value = parse_index_expr(parser)
        where = parse_optional_where(parser)
        return cls(name, value, parser.parse_region(), where.data if where is not None else ())


Copies = tuple[tuple[IndexExpr, ...], ...]
"""Copies of unrolled loops: lists of conditions, one of which holds in each of them."""


def format_copies(copies: Copies) -> str:
    """`(0 - i >= 0) or (i - 2 >= 0, 2 - i >= 0)`."""
    return " or ".join(map(format_conditions, copies))


def parse_copies(parser: AttrParser) -> Copies:
    """Parse what `format_copies` prints."""
    copies = [parse_conditions(parser)]
    while parser.parse_optional_keyword("or"):
        copies.append(parse_conditions(parser))
    return tuple(copies)


@dataclass(frozen=True)
class Written:
    """The form of a loop, in spite of its kind: `as unrolled unless (0 - i >= 0) or (i - 2 >= 0, 2 - i >= 0)`.

    Where one of the lists of conditions holds, over unrolled loops around, it is written as its kind says.
    """

    kind: str
    unless: Copies = ()

    def __str__(self) -> str:
        return f"as {self.kind}" + (f" unless {format_copies(self.unless)}" if self.unless else "")


@irdl_attr_definition
class WrittenAttr(Data[Written]):
    """The form of a loop as an attribute: `#lw_loop.written<as unrolled>`."""

    name = "lw_loop.written"

    def __init__(self, kind: str | Written, unless: Iterable[Sequence[IndexExpr]] = ()) -> None:
        super().__init__(kind if isinstance(kind, Written) else Written(kind, tuple(map(tuple, unless))))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Written:
        with parser.in_angle_brackets():
            written = parse_optional_written(parser)
        if written is None:
            parser.raise_error("expected 'as' and the kind of a loop")
        return written.data

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


WRITTEN_KINDS = ("serial", "unrolled")
"""Kinds that loops of another kind may be written as."""


def parse_optional_written(parser: AttrParser) -> WrittenAttr | None:
    """Parse ` as unrolled` if it stands there."""
    if parser.parse_optional_keyword("as") is None:
        return None
    kind = parser.parse_identifier()
    if kind not in WRITTEN_KINDS:
        parser.raise_error(f"a loop is written as one of {', '.join(WRITTEN_KINDS)}, got {kind}")
    unless = parse_copies(parser) if parser.parse_optional_keyword("unless") else ()
    return WrittenAttr(kind, unless)


def verify_written(loop: Operation, written: WrittenAttr) -> None:
    """VerifyException where a loop is not on its way to a kernel, or asks for loops that are not around it."""
    require_lowering(loop, f"loop '{label_of(loop)}' is written {written.data}")
    asked = {name for conditions in written.data.unless for e in conditions for name in e.axes()}
    if missing := asked - names_around(loop):
        raise VerifyException(f"loop '{label_of(loop)}' asks for '{min(missing)}', which is no loop around it")


def verify_ends(loop: Operation, ends: IndicesAttr) -> None:
    """VerifyException where a loop is not on its way to a kernel, or ends by loops that are not around it."""
    require_lowering(loop, f"loop '{label_of(loop)}' ends before its extent")
    if missing := {name for e in ends.data for name in e.axes()} - names_around(loop) - {label_of(loop)}:
        raise VerifyException(f"loop '{label_of(loop)}' ends by '{min(missing)}', which is no loop around it")
    name = label_of(loop)
    if any(not e.is_linear_in(name) or e.coefficient(name) >= 0 for e in ends.data):
        raise VerifyException(f"loop '{name}' ends by a condition that holds for its first iterations only")


def require_lowering(op: Operation, what: str) -> None:
    """VerifyException where `what` is said of an operation that is not on its way to a kernel."""
    around = op
    while (parent := around.parent_op()) is not None and around.name != FuncOp.name:
        around = parent
    if LOWERED_BY not in around.attributes:
        raise VerifyException(f"{what} in functions on their way to a kernel only")


def names_around(op: Operation) -> set[str]:
    """The loops that an operation is in, or in another iteration of."""
    names: set[str] = set()
    around = op.parent_op()
    while around is not None and around.name.startswith("lw_loop."):
        if "label" in around.properties:
            names.add(label_of(around))
        around = around.parent_op()
    return names
