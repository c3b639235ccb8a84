"""Passes over a network, in the words of `xdsl-opt -p`."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination
from xdsl.utils.exceptions import ArgSpecParseError, PassFailedException

from ..backends.context import create_context
from ..dialects.graph import ConstantOp
from ..passes.discovery import pass_factories, passes_in
from .evaluate import evaluate_block
from .module import NetworkModule
from .passes._rewrite import erase
from .passes.fold_constants import FUNCTION, NAMES, FoldConstants

PREPARE = (
    "lw-graph-simplify,cse,lw-graph-find-norms,lw-graph-find-softmax,dce,lw-graph-masked-softmax,cse,dce,"
    "lw-graph-move-factors,lw-graph-fold-batch-norm,lw-graph-skip-padding,lw-graph-split-norms,lw-graph-sink-views,"
    "lw-graph-simplify,cse,dce,lw-graph-fold-constants,dce"
)
"""Passes over every network before its operators are grouped into kernels."""


_STOCK: dict[str, Callable[[], type[ModulePass]]] = {
    "cse": lambda: CommonSubexpressionElimination,
    "dce": lambda: DeadCodeElimination,
}
"""xDSL's own passes that mean something for networks."""


def transform(net: NetworkModule, pipeline: str) -> NetworkModule:
    """A copy of a network after passes; constants that a pass made are computed. The values of others are shared.

    Raises ValueError for a pass that does not exist, or for one whose options are wrong.
    """
    known = {**pass_factories(), **passes_in("graph/passes", "graph-"), **_STOCK}
    try:
        passes = PassPipeline.parse_spec(known, pipeline)
    except (ArgSpecParseError, PassFailedException, ValueError, KeyError) as error:
        raise ValueError(f"pipeline '{pipeline}': {error}") from None
    after = NetworkModule(net.module.clone(), net.params)
    context = create_context()
    for each in passes.passes:
        each.apply(context, after.module)
        if isinstance(each, FoldConstants):
            _compute(after)
    named = {op.label.data for op in after.module.walk() if isinstance(op, ConstantOp) and op.value is None}
    return NetworkModule(after.module, {n: array for n, array in after.params.items() if n in named})


def _compute(net: NetworkModule) -> None:
    """Compute the constants that the folding pass set apart, and drop their function."""
    for op in list(net.module.ops):
        if isinstance(op, FuncOp) and op.sym_name.data == FUNCTION:
            names = [name.data for name in op.attributes[NAMES].data]  # type: ignore[attr-defined]
            net.params.update(zip(names, evaluate_block(net, op, {}), strict=True))
            erase(op)
    _inline_numbers(net)


def _inline_numbers(net: NetworkModule) -> None:
    """Write constants of one element into the IR."""
    for op in [op for op in net.module.walk() if isinstance(op, ConstantOp)]:
        array = net.params.get(op.label.data)
        if op.value is None and array is not None and array.size == 1:
            number = ConstantOp(op.label.data, op.result.type, array.reshape(()).item())
            assert op.parent is not None
            op.parent.insert_op_before(number, op)
            op.result.replace_all_uses_with(number.result)
            erase(op)
