"""Post-dominators of the operations of a network: where all paths from one meet again."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation


def post_dominators(block: Block) -> dict[Operation, Operation | None]:
    """Return each operation's immediate post-dominator: the first one that every path from it to the end passes.

    None where there is none: the results are not used, or what uses them are several ends.
    """
    order = {op: n for n, op in enumerate(block.ops)}
    found: dict[Operation, Operation | None] = {}
    depth: dict[Operation, int] = {}
    for op in reversed(list(block.ops)):
        users = sorted({use.operation for result in op.results for use in result.uses}, key=order.__getitem__)
        common: Operation | None = users[0] if users else None
        for user in users[1:]:
            common = _meet(common, user, found, depth)
        found[op] = common
        depth[op] = 0 if common is None else depth[common] + 1
    return found


def _meet(
    first: Operation | None,
    second: Operation | None,
    above: dict[Operation, Operation | None],
    depth: dict[Operation, int],
) -> Operation | None:
    while first is not second:
        if first is None or second is None:
            return None
        if depth[first] >= depth[second]:
            first = above[first]
        else:
            second = above[second]
    return first


def region_between(start: Operation, end: Operation) -> Iterator[Operation]:
    """Give the operations on the paths from `start`, left out, to `end`, which is one of them, as they are found.

    Who looks for one that is in the way need not wait for all: those between a step of a recurrent layer and where the
    states of all steps are joined are all later steps.
    """
    seen: set[Operation] = set()
    waiting = [start]
    while waiting:
        op = waiting.pop()
        for user in (use.operation for result in op.results for use in result.uses):
            if user not in seen:
                seen.add(user)
                yield user
                if user is not end:
                    waiting.append(user)
