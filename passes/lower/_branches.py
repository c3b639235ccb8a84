"""Branches around what is being written, and what holds in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from ...dialects.index import IndexExpr
from ._addresses import Addresses, Scope


def branch(
    at: Addresses, test: SSAValue, then: Callable[[], None], otherwise: Callable[[], None] | None = None
) -> None:
    """Write `then` where `test` holds, and `otherwise` where it does not."""
    blocks = []
    for write in (then, otherwise):
        if write is None:
            continue
        block = Block()
        at.scopes.append(Scope(block))
        write()
        at.scopes.pop()
        block.add_op(scf.YieldOp.create())
        blocks.append(block)
    regions = [Region(b) for b in blocks] + [Region()] * (2 - len(blocks))
    at.here.block.add_op(scf.IfOp.create(operands=[test], regions=regions))
    at.here.loads.clear()


def under(at: Addresses, conditions: Sequence[IndexExpr], write: Callable[[], None]) -> None:
    """Write under predicates that are the same for all lanes; nothing where one never holds."""
    values = [at.condition(c) for c in conditions]
    if any(v is False for v in values):
        return
    before = at.known
    at.known = before | set(conditions)
    test = at.conjunction([v for v in values if not isinstance(v, bool)], False)
    if test is None:
        write()
    else:
        branch(at, test, write)
    at.known = before
