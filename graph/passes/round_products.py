"""The pass that has products of a network round their factors, where its precision allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp, GroupOp
from ...dialects.numpy_types import ROUNDED_FLOATS
from ..types import dtype_of
from ._rewrite import networks, with_options
from .lower_precision import FACTORS, may_round


@dataclass(frozen=True)
class RoundProducts(ModulePass):
    """product(x, w) -> product(x, w) <rounds = "tf32">, in functions with the attribute `lw_graph.factors = "tf32"`.

    Products of float32, in groups as outside of them. It comes last: passes that write a product anew know no rounding.
    Groups of several products, as attention is, stay exact.
    """

    name: ClassVar[str] = "lw-graph-round-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in networks(op):
            kind = function.attributes.get(FACTORS)
            if isinstance(kind, StringAttr) and kind.data in ROUNDED_FLOATS:
                _round(function, kind.data)


def _round(function: FuncOp, kind: str) -> None:
    _round_in(function.body.block, kind, many=True)
    for op in function.body.block.ops:
        if isinstance(op, GroupOp):
            _round_in(op.body.block, kind, many=False)


def _round_in(block: Block, kind: str, many: bool) -> None:
    products = [op for op in block.ops if _is_rounded(op)]
    for op in products if many or len(products) == 1 else ():
        op.options = type(op.options).of(with_options(op, rounds=kind))


def _is_rounded(op: Operation) -> TypeGuard[ApplyOp]:
    """True for a product of float32 that matrix units multiply where its factors are rounded."""
    return isinstance(op, ApplyOp) and may_round(op) and all(dtype_of(v) == "float32" for v in op.inputs)
