"""Groups of operators that wait for each other, taken apart: no order of kernels computes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from xdsl.ir import Block, Operation

from ...dialects.graph import ApplyOp
from ..operator import is_view

Node: TypeAlias = int | Operation
"""A group by its number, or an operation outside of groups."""


def without_circles(block: Block, groups: list[list[ApplyOp]]) -> list[list[ApplyOp]]:
    """Return groups that an order computes: operators leave theirs that read, by way of others, what waits for it.

    Each rule of joining looks at the operators of one group. Two groups that each read what comes of the other wait for
    each other though no operator waits for itself: `f(a0, dense(b1))` beside `g(b0, dense(a1))`.
    """
    while waiting := _in_circles(block, groups):
        kept, alone = list[list[ApplyOp]](), list[list[ApplyOp]]()
        of = _node_of(groups)
        for number, members in enumerate(groups):
            late = _late(members, number, of, waiting) if number in waiting else set()
            kept += [stay] if (stay := [op for op in members if op not in late]) else []
            alone += ([op] for op in members if op in late and not is_view(op))
        groups = kept + alone
    return groups


def _late(members: Iterable[ApplyOp], number: int, of: Mapping[Operation, Node], waiting: set[Node]) -> set[Operation]:
    """Return the members, which are in order, that need what other nodes in circles give."""
    late = set[Operation]()
    for op in members:
        needed = {of.get(owner, owner) for owner in _needed(op)}
        if needed & (waiting - {number}) or not late.isdisjoint(_needed(op)):
            late.add(op)
    return late


def _in_circles(block: Block, groups: list[list[ApplyOp]]) -> set[Node]:
    """Return the nodes that are part of circles, or between two."""
    of = _node_of(groups)
    needs: dict[Node, set[Node]] = {}
    for op in block.ops:
        node = of.get(op, op)
        needs.setdefault(node, set()).update({of.get(owner, owner) for owner in _needed(op)} - {node})
    if not (behind := _unordered(needs)):
        return set()
    users: dict[Node, set[Node]] = {}
    for node, needed in needs.items():
        for each in needed:
            users.setdefault(each, set()).add(node)
    return behind & _unordered(users)


def _unordered(needs: Mapping[Node, set[Node]]) -> set[Node]:
    """Return the nodes that are in circles or need some that are."""
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError:  # it still gives whatever is ahead of circles
        ahead = set[Node]()
        while ready := sorter.get_ready():
            ahead.update(ready)
            sorter.done(*ready)
        return {node for node in needs if node not in ahead}
    return set()


def _needed(op: Operation) -> list[Operation]:
    return [value.owner for value in op.operands if isinstance(value.owner, Operation)]


def _node_of(groups: Iterable[Iterable[ApplyOp]]) -> dict[Operation, Node]:
    return {op: number for number, members in enumerate(groups) for op in members}
