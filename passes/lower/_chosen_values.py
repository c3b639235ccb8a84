"""Values of a block's body that an instance needs, where selections among them are settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...dialects.te import PredicateOp


def questions_of(ops: Sequence[Operation]) -> list[PredicateOp]:
    """The predicates that selections among some operations are made by."""
    asked = dict.fromkeys(_asked(op) for op in ops if isinstance(op, arith.SelectOp))
    return [op for op in asked if isinstance(op, PredicateOp)]


def _asked(select: arith.SelectOp) -> Operation | None:
    """The operation that a selection is made by, where that is one of the body's own."""
    owner = select.cond.owner
    return owner if isinstance(owner, Operation) else None


def needed_values(
    results: Sequence[SSAValue], answers: Mapping[Operation | None, bool]
) -> tuple[set[Operation], dict[Operation, SSAValue]]:
    """The operations that `results` take, by what is known of predicates; and what settled selections come to.

    The value that a selection comes to is one of its own operands, which may be a selection as well.
    """
    needed: set[Operation] = set()
    settled: dict[Operation, SSAValue] = {}
    waiting = list(results)
    while waiting:
        op = waiting.pop().owner
        if not isinstance(op, Operation) or op in needed:
            continue
        needed.add(op)
        if isinstance(op, arith.SelectOp) and (known := answers.get(_asked(op))) is not None:
            settled[op] = op.lhs if known else op.rhs
            waiting.append(settled[op])
        else:
            waiting += op.operands
    return needed, settled
