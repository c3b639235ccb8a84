"""Control flow that `scf` lacks: loops whose iterations may run at once."""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Block, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .types import INDEX

UNROLL = "lw.unroll"
"""Attribute of an `scf.for` for the compiler of the source to unroll: a unit for whole, an integer for a factor."""


@irdl_op_definition
class ParallelOp(IRDLOperation):
    """Iterations that may run at once, on the target's threads: `lw_kernel.parallel %i in 64 { ... }`."""

    name = "lw_kernel.parallel"
    extent = prop_def(IntAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, extent: int, body: Region | None = None) -> None:
        super().__init__(properties={"extent": IntAttr(extent)}, regions=[body or Region(Block(arg_types=[INDEX]))])

    def verify_(self) -> None:
        if [a.type for a in self.body.block.args] != [INDEX]:
            raise VerifyException("lw_kernel.parallel has one block argument of type index")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.body.block.args[0])
        printer.print_string(f" in {self.extent.data} ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> ParallelOp:
        argument = parser.parse_argument(expect_type=False).resolve(INDEX)
        parser.parse_keyword("in")
        extent = parser.parse_integer(allow_boolean=False, allow_negative=False)
        return cls(extent, parser.parse_region((argument,)))
