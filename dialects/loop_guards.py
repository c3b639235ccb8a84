"""Predicates between the loops of a lowering: nests that are run where they hold, and nests in two versions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .attributes import IndicesAttr, format_conditions, parse_conditions
from .index import IndexExpr
from .labels import label_of
from .loop_steps import names_around, require_lowering


class Guard(IRDLOperation):
    """Nests, with conditions on loops."""

    where = prop_def(IndicesAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, conditions: Sequence[IndexExpr], body: Region) -> None:
        super().__init__(properties={"where": IndicesAttr(tuple(conditions))}, regions=[body])

    @property
    def conditions(self) -> tuple[IndexExpr, ...]:
        return self.where.data

    def known_loops(self) -> set[str]:
        """The loops that the conditions may ask for."""
        return names_around(self)

    def verify_(self) -> None:
        if missing := {name for e in self.conditions for name in e.axes()} - self.known_loops():
            raise VerifyException(f"'{self.name}' asks for '{min(missing)}', which is no loop around it")
        require_lowering(self, f"'{self.name}' stands")
        for op in self.body.block.ops:
            if op.name not in ("lw_loop.for", "lw_loop.block", VersionsOp.name):
                raise VerifyException(f"'{self.name}' holds '{op.name}', only loops and blocks belong there")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {format_conditions(self.conditions)} ")
        printer.print_region(self.body, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> Guard:
        conditions = parse_conditions(parser)
        return cls(conditions, parser.parse_region())


@irdl_op_definition
class IfOp(Guard):
    """Nests that are run where conditions on the loops around hold: `lw_loop.if (29 - g * 16 >= 0) { ... }`."""

    name = "lw_loop.if"


@irdl_op_definition
class VersionsOp(Guard):
    """A nest that is written twice: `lw_loop.versions (29 - g * 16 - f >= 0) { lw_loop.for f in 16 { ... } }`.

    Where the conditions, which are those of blocks, loads or masks in it, hold for all of the loops in it, they are not
    asked for again: the version for whole tiles. The other one, for the rest, asks for them element by element; on a
    CPU it is for the one tile that an edge cuts, where there is one, in which each element is needed or not, or for the
    few that read padding in part, where it adds nothing, each of which is written for itself.
    Versions of nests in it are in both.
    """

    name = "lw_loop.versions"

    def known_loops(self) -> set[str]:
        return names_around(self) | {label_of(inner) for inner in self.walk() if inner.name == "lw_loop.for"}
