"""The pass that has chains of short kernels run beside each other, each on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ...backends.llvm.work import CYCLES_A_THREAD, FUNCTION_CYCLES
from ...dialects.graph import ApplyOp, ConstantOp, GroupOp
from ..operator import Kind, kind_of
from ..types import dtype_of, shape_of
from ._rewrite import below_views, erase, networks, put_in_order
from ._row_blocks import GATES, PRODUCTS, Blocks, has_rows, split_rows

MOST_CYCLES = 10 * CYCLES_A_THREAD
"""Of a kernel of a branch on one core: ten times what another thread is worth, where handing work over is a tenth of
it."""
LEAST_KERNELS = 8
"""Kernels of the longest branch. A choice: of a few, threads are handed less work than they may save."""
LEAST_ROWS = 2
"""Rows of a block: a product of one row reads its weights once for each multiplication, however many threads do."""
MOST_UNEVEN = 0.75
"""Part of all the work that the longest branch may have. A choice: what is left beside it is worth another thread."""


@dataclass(frozen=True)
class Branches(ModulePass):
    """`a1; b1; a2; b2` -> `a1; a2` in branch 0, `b1; b2` in branch 1, where no b reads an a and no a reads a b.

    A kernel of few microseconds is handed to several threads in about as much time as they save, and what one has
    computed is then read from the other's caches. Chains of such kernels that do not depend on each other, as the two
    directions of a recurrent layer, run on a thread each, from their beginnings to their ends. Where there is one
    chain, and each row of its tensors is computed by itself, as those of a batch are, its kernels are taken apart into
    such of blocks of rows: chains that do not depend on each other. Products, gates, slices and elementwise operators
    of at most MOST_CYCLES each on vectors of so many lanes are such kernels, in chains of LEAST_KERNELS at least whose
    constants fit `cache_bytes`.
    """

    name: ClassVar[str] = "lw-graph-branches"
    threads: int = 2
    lanes: int = 16
    cache_bytes: int = 1 << 20

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in networks(op):
            if not self._run_beside(function, self._is_short) and (rows := self._rows(function)):
                blocks = [n for n in range(2, self.threads + 1) if not rows % n and rows // n >= LEAST_ROWS]
                if blocks:
                    self._split(function, rows, blocks[-1])

    def _rows(self, function: FuncOp) -> int:
        """Return the rows of most short kernels with products; 0 where there is none."""
        found = [
            shape_of(op.outputs[0])[0]
            for group in function.body.block.ops
            if isinstance(group, GroupOp) and self._is_short(group)
            for op in group.body.block.ops
            if isinstance(op, ApplyOp) and op.operator.data in PRODUCTS
        ]
        return max(found, key=found.count, default=0)

    def _split(self, function: FuncOp, rows: int, blocks: int) -> None:
        """Take the groups of long chains apart into such of blocks of rows, and run these beside each other."""

        def is_cut(group: GroupOp) -> bool:
            return self._is_short(group) and has_rows(group, rows, blocks)

        cut = set[GroupOp]()
        made: Blocks = {}
        for groups in [_groups(phase) for is_short, phase in _phases(function.body.block, is_cut) if is_short]:
            if len(groups) >= LEAST_KERNELS and _constant_bytes(groups) <= self.cache_bytes:
                for group in groups:
                    cut.update(split_rows(group, rows, blocks, made))
        if cut:
            for op in reversed(list(function.body.block.ops)):
                if isinstance(op, ApplyOp) and not any(value.uses for value in op.outputs):
                    erase(op)
            self._run_beside(function, lambda group: group in cut)

    def _run_beside(self, function: FuncOp, is_short: Callable[[GroupOp], bool]) -> bool:
        """Mark the branches of a network, and have each in a row; True where there is one."""
        block, number = function.body.block, 0
        order: list[Operation] = []
        for is_wave, phase in _phases(block, is_short):
            chains = _chains(phase) if is_wave else []
            if self._pays(chains):
                for k, chain in enumerate(chains):
                    for group in chain:
                        group.branch, group.beside = IntAttr(k), IntAttr(number)
                number += 1
                inside = {*(group for chain in chains for group in chain)}
                order += [group for chain in chains for group in chain]
                order += [op for op in phase if op not in inside]
            else:
                order += phase
        if number:
            for op in order:
                block.detach_op(op)
                block.add_op(op)
            put_in_order(block)
        return number > 0

    def _pays(self, chains: Sequence[Sequence[GroupOp]]) -> bool:
        """True where chains, the longest first, are worth being handed over, and leave another thread enough."""
        if len(chains) < 2 or len(chains[0]) < LEAST_KERNELS:
            return False
        cycles = [sum(self._cycles(group) or 0 for group in chain) for chain in chains]
        fits = all(_constant_bytes(chain) <= self.cache_bytes for chain in chains)
        return fits and max(cycles) <= MOST_UNEVEN * sum(cycles)

    def _is_short(self, group: GroupOp) -> bool:
        cycles = self._cycles(group)
        return cycles is not None and cycles <= MOST_CYCLES

    def _cycles(self, group: GroupOp) -> float | None:
        """Return the cycles of a kernel on one core, estimated; None for one of another kind."""
        total = 0.0
        for op in group.body.block.ops:
            if not isinstance(op, ApplyOp) or op.operator.data == "strided_slice":
                continue
            elements = sum(prod(shape_of(value)) for value in op.outputs)
            if op.operator.data in PRODUCTS:
                total += elements * shape_of(op.inputs[0])[-1] / (2 * self.lanes)
            elif op.operator.data in GATES or kind_of(op) is Kind.ELEMENTWISE:
                total += elements * FUNCTION_CYCLES / self.lanes
            else:
                return None
        return total


def branches_of(groups: Sequence[GroupOp]) -> tuple[tuple[int, ...], ...]:
    """Return `Plan.branches` of groups in order, each of which is a step."""
    found: list[tuple[int, ...]] = []
    for _, several in groupby(enumerate(groups), lambda pair: _data(pair[1].beside)):
        numbers = [*several]
        if numbers[0][1].beside is not None:
            starts = [next(run)[0] for _, run in groupby(numbers, lambda pair: _data(pair[1].branch))]
            found.append((*starts, numbers[-1][0] + 1))
    return tuple(found)


def _data(attribute: IntAttr | None) -> int:
    return -1 if attribute is None else attribute.data


def _phases(block: Block, is_short: Callable[[GroupOp], bool]) -> list[tuple[bool, list[Operation]]]:
    """Return the operations of a network in phases without short groups and such without others, in turn.

    Each is in the first phase of its kind that is not ahead of what it reads. The last one has the end of the network.
    """
    phase_of: dict[Operation, int] = {}
    for op in block.ops:
        at = max((phase_of[v.owner] for v in op.operands if isinstance(v.owner, Operation)), default=0)
        if isinstance(op, GroupOp):
            at += at % 2 != is_short(op)
        phase_of[op] = max(phase_of.values(), default=0) if isinstance(op, ReturnOp) else at
    phases: list[list[Operation]] = [[] for _ in range(max(phase_of.values(), default=0) + 1)]
    for op, at in phase_of.items():
        phases[at].append(op)
    return [(at % 2 == 1, phase) for at, phase in enumerate(phases)]


def _groups(phase: Iterable[Operation]) -> list[GroupOp]:
    return [op for op in phase if isinstance(op, GroupOp)]


def _chains(phase: Sequence[Operation]) -> list[list[GroupOp]]:
    """Return the groups of a phase, those together that depend on each other by way of some; the longest first.

    Where chains meet, the shorter ones go behind the longest, so that no group moves more often than its chain doubles.
    """
    behind: dict[Operation, dict[GroupOp, None]] = {}
    chain_of: dict[GroupOp, list[GroupOp]] = {}
    for op in phase:
        owners = [v.owner for v in op.operands if isinstance(v.owner, Operation) and v.owner in behind]
        read = {group: None for owner in owners for group in behind[owner]}
        behind[op] = {op: None} if isinstance(op, GroupOp) else read
        if isinstance(op, GroupOp):
            before = {id(chain_of[group]): chain_of[group] for group in read}.values()
            chain, *others = sorted(before, key=len, reverse=True) or [list[GroupOp]()]
            for added in (*others, [op]):
                chain += added
                chain_of.update(dict.fromkeys(added, chain))
    by_end: dict[int, list[GroupOp]] = {}
    for chain in chain_of.values():
        by_end.pop(id(chain), None)
        by_end[id(chain)] = chain
    return sorted(by_end.values(), key=len, reverse=True)


def _constant_bytes(groups: Iterable[GroupOp]) -> int:
    """Return the bytes of constants that groups read, each once."""
    owners = {base.owner: base for group in groups for v in group.inputs if (base := below_views(v))}
    return sum(
        prod(shape_of(base)) * np.dtype(dtype_of(base)).itemsize
        for owner, base in owners.items()
        if isinstance(owner, ConstantOp)
    )
