"""The pass that sets apart what does not depend on the inputs, to be computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp, ConstantOp
from ._rewrite import networks, root_label

FUNCTION = "lw_constants"
"""The function that computes the constants which the pass made."""
NAMES = "lw.names"
"""Its attribute with the names of what it returns."""


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Operators on constants -> new constants, whose values the function `lw_constants` returns.

    The function holds those operators; whoever has the values of the constants runs it, once.
    """

    name: ClassVar[str] = "lw-graph-fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = networks(op)
        if any(f.sym_name.data == FUNCTION for f in functions):
            return
        taken = {c.label.data for c in op.walk() if isinstance(c, ConstantOp)}
        moved: list[ApplyOp] = []
        results: list[SSAValue] = []
        names: list[str] = []
        for function in functions:
            block = function.body.block
            folded = _constant_operators(block)
            inside = set[Operation](folded)
            for value in [v for o in folded for v in o.outputs]:
                outside = [use for use in value.uses if use.operation not in inside]
                if not outside:
                    continue
                name = _unique(f"{root_label(value)}.folded", taken)
                constant = ConstantOp(name, value.type)
                assert isinstance(value.owner, Operation)
                block.insert_op_before(constant, value.owner)
                for use in outside:
                    use.operation.operands[use.index] = constant.result
                results.append(value)
                names.append(name)
            moved += folded
        if results:
            op.body.block.add_op(_function(moved, results, names))


def _constant_operators(block: Block) -> list[ApplyOp]:
    """Return the operators that depend on constants only, in order."""
    known = set[Operation | Block]()
    for op in block.ops:
        if isinstance(op, ConstantOp) or (isinstance(op, ApplyOp) and all(v.owner in known for v in op.inputs)):
            known.add(op)
    return [op for op in block.ops if isinstance(op, ApplyOp) and op in known]


def _function(moved: list[ApplyOp], results: list[SSAValue], names: list[str]) -> FuncOp:
    block = Block()
    constants: dict[Operation, SSAValue] = {}
    for op in moved:
        assert op.parent is not None
        op.parent.detach_op(op)
        for position, value in enumerate(op.inputs):
            owner = value.owner
            if not isinstance(owner, ConstantOp) or owner.parent is block:
                continue
            if owner not in constants:
                copy = owner.clone()
                block.add_op(copy)
                constants[owner] = copy.result
            op.operands[position] = constants[owner]
        block.add_op(op)
    block.add_op(ReturnOp(*results))
    function = FuncOp(FUNCTION, ((), [v.type for v in results]), Region(block), visibility="private")
    function.attributes[NAMES] = ArrayAttr([StringAttr(n) for n in names])
    return function


def _unique(name: str, taken: set[str]) -> str:
    unique, count = name, 0
    while unique in taken:
        count += 1
        unique = f"{name}{count}"
    taken.add(unique)
    return unique
