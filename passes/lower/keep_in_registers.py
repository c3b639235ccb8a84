"""Keep in registers what threads hold already: factors of products, and running values that are one for a row."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ...dialects.target import target_of
from ..analysis.nest import functions_on_loops
from ._register_factors import read_register_factors
from ._shared_carries import share_carries
from ._steps import require_none


@dataclass(frozen=True)
class KeepInRegisters(ModulePass):
    """On a GPU, for loops of their final names, where a matrix instruction has a factor in scope local ->

    its read at those steps of k that a thread holds of the fragment. Where a reduction carries several values for each
    element of a row, and some are the same for all: one of these for the row, stored when all have been joined.

    Requires: loops told apart by name (`lw-tell-loops-apart`), buffers not placed yet (`lw-place-buffers`).
    """

    name = "lw-keep-in-registers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = target_of(op).is_gpu
        for func in functions_on_loops(op):
            require_none(func, self.name)
            keep_in_registers(func, gpu)


def keep_in_registers(func: FuncOp, gpu: bool) -> None:
    """Change the reads and writes of a function in place; a CPU's stay as they are."""
    if gpu:
        read_register_factors(func)
        share_carries(func)
