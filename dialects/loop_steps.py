"""Operations between the loops of a lowering: barriers, and nests that are run for another iteration of a loop."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .attributes import IndicesAttr, format_where, parse_index_expr, parse_optional_where
from .index import IndexExpr
from .labels import label_of
from .names import check_axis_name

LOWERED_BY = "lw.lowered_by"
"""The attribute of a function on its way from loops to a kernel: the last step, behind which none of a schedule is."""


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """The threads of a block wait for each other before what follows: `lw_loop.barrier where (k - 1 >= 0)`.

    `where` is over unrolled loops around, in some copies of which no barrier is needed.
    """

    name = "lw_loop.barrier"
    where = opt_prop_def(IndicesAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, where: Sequence[IndexExpr] = ()) -> None:
        super().__init__(properties={"where": IndicesAttr(tuple(where)) if where else None})

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
        printer.print_string(format_where(self.conditions))

    @classmethod
    def parse(cls, parser: Parser) -> BarrierOp:
        where = parse_optional_where(parser)
        return cls(where.data if where is not None else ())


@irdl_op_definition
class AtOp(IRDLOperation):
    """Nests, run as in another iteration of a loop: `lw_loop.at k = k + 2 where (61 - k >= 0) { ... }`.

    In it `k` is that iteration; it need not be in the loop, for an iteration that is a number. `where` is over the
    loops around: where it does not hold, nothing is run.
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
        if LOWERED_BY not in _function_around(self).attributes:
            raise VerifyException(f"'{self.name}' stands in functions on their way to a kernel only")
        for op in self.body.block.ops:
            if op.name not in ("lw_loop.for", "lw_loop.block"):
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


def _function_around(op: Operation) -> Operation:
    around = op
    while (parent := around.parent_op()) is not None and around.name != FuncOp.name:
        around = parent
    return around


def names_around(op: Operation) -> set[str]:
    """The loops that an operation is in, or in another iteration of."""
    names: set[str] = set()
    around = op.parent_op()
    while around is not None and around.name in ("lw_loop.for", AtOp.name):
        names.add(label_of(around))
        around = around.parent_op()
    return names
