"""Operations of a kernel that are written as assembly: runs of loops that are unrolled whole, and what is between."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, scf, vector
from xdsl.dialects import math as maths
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects import kernel
from ..c_family.control import factor_of, loop
from ..c_family.memory import load, scope_of, store
from ..c_family.printer import Handler, KernelPrinter
from ..c_family.types import element_name
from ..c_family.unrolling import even_factor, unrolled_instructions
from .assembly import Assembly, Unwritable, is_local
from .async_copy import ARITHMETIC, holds_copies_alone

_LEAST = 24
"""Multiply-adds that are worth a block of assembly. A choice: depthwise windows have 25, and rows of results 56."""
_INDICES = (arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.CmpiOp)


def assembled(unrolled_instructions: int) -> Mapping[type[Operation], Handler]:
    """Return what prints loops and accesses of one module: as assembly where they begin a run of it, else as C."""
    runs = _Runs(unrolled_instructions)
    return {
        scf.ForOp: runs.or_else(loop),
        kernel.LoadOp: runs.or_else(load),
        kernel.StoreOp: runs.or_else(store),
    }


class _Runs:
    """The runs of one module; loops around them are known by then not to be unrolled whole."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: set[Operation] = set()
        self._trips: dict[Operation, range | None] = {}

    def or_else(self, usual: Handler) -> Handler:
        """Return what prints an operation with the run that it begins, and as usual where it begins none."""

        def handler(p: KernelPrinter, op: Operation) -> None:
            if op in self._seen or not self._is_assembled(p, op):
                usual(p, op)

        return handler

    def _is_assembled(self, p: KernelPrinter, op: Operation) -> bool:
        run, indices = self._from(op)
        self._seen.update(run)
        if sum(map(self._products, run)) < _LEAST or any(_is_read_later(each, run) for each in run):
            return False
        kept = [each for each in run if _is_temporary(each) and _is_used_outside(each, run)]
        for each in (*indices, *kept):
            if each not in p.done:
                p.operation(each)
                p.done.add(each)
        assembly = Assembly(p, self._trips)
        try:
            for each in run:
                if each not in kept:
                    assembly.add(each)
        except Unwritable:
            return False
        if not assembly.pays:
            return False
        assembly.print()
        p.done.update(run)
        return True

    def _from(self, op: Operation) -> tuple[list[Operation], list[Operation]]:
        """Return the operations of the run that begins here, and the indices that are computed among them."""
        run: list[Operation] = []
        indices: list[Operation] = []
        between: list[Operation] = []
        each: Operation | None = op
        while each is not None:
            if self._is_writable(each) or _is_copy(each) or _is_temporary(each):
                run.append(each)
                indices += between
                between = []
            elif _is_index(each):
                between.append(each)
            else:
                break
            each = each.next_op
        return run, indices

    def _is_writable(self, op: Operation) -> bool:
        match op:
            case scf.ForOp():
                return self._trips_of(op) is not None
            case kernel.LoadOp() | kernel.StoreOp():
                if op.mask is not None or element_name(op.buffer.type) != "f32":
                    return False
                return is_local(op.buffer) or (isinstance(op, kernel.LoadOp) and _is_shared(op.buffer))
            case maths.FmaOp() | vector.BroadcastOp():
                return element_name(op.results[0].type) == "f32"
        return False

    def _trips_of(self, op: scf.ForOp) -> range | None:
        """Return the values that the counter of a loop takes which is unrolled whole and can be written."""
        if op not in self._trips:
            self._trips[op] = self._unrolled(op)
        return self._trips[op]

    def _unrolled(self, op: scf.ForOp) -> range | None:
        first, end, by = (const_evaluate_operand(each) for each in (op.lb, op.ub, op.step))
        if first is None or end is None or not by or op.iter_args:
            return None
        trips, body, asked = range(first, end, by), op.body.block, op.attributes.get(kernel.UNROLL)
        if len(trips) > 1 and asked is None:
            instructions = unrolled_instructions(body)
            if instructions is None or even_factor(len(trips), instructions, self._limit) != len(trips):
                return None
        elif len(trips) > 1 and factor_of(asked) not in (None, len(trips)):
            return None
        inner = (
            self._is_writable(each) or isinstance(each, (scf.YieldOp, *_INDICES)) or _is_temporary(each)
            for each in body.ops
        )
        return trips if all(inner) else None

    def _products(self, op: Operation) -> int:
        if isinstance(op, scf.ForOp):
            return len(self._trips_of(op) or ()) * sum(map(self._products, op.body.block.ops))
        return kernel.lanes_of(op.results[0].type) if isinstance(op, maths.FmaOp) else 0


def _is_copy(op: Operation) -> bool:
    """True for asynchronous copies, which may stand between products."""
    return isinstance(op, kernel.AsyncCopyOp | kernel.CommitOp) or (isinstance(op, scf.IfOp) and holds_copies_alone(op))


def _is_index(op: Operation) -> bool:
    """True for arithmetic on indices and truth values, which may as well be done before; no arrival, which waits."""
    kinds = [result.type for result in op.results]
    is_plain = all(isinstance(kind, IndexType) or kind == IntegerType(1) for kind in kinds)
    is_free = op.name.startswith(ARITHMETIC) or is_side_effect_free(op)
    return bool(kinds) and is_plain and not op.regions and is_free


def _is_shared(buffer: SSAValue) -> bool:
    return isinstance(buffer.owner, kernel.AllocOp) and scope_of(buffer.owner) == "shared"


def _is_temporary(op: Operation) -> bool:
    """True for an array of single precision of a thread, which is there until its block ends."""
    return isinstance(op, kernel.AllocOp) and is_local(op.buffer) and element_name(op.buffer.type) == "f32"


def _is_read_later(op: Operation, run: list[Operation]) -> bool:
    """True where something outside of a run uses a value that it computes."""
    return not isinstance(op, kernel.AllocOp) and _is_used_outside(op, run)


def _is_used_outside(op: Operation, run: list[Operation]) -> bool:
    uses = (use.operation for result in op.results for use in result.uses)
    return any(_around(use, run[0].parent) not in run for use in uses)


def _around(op: Operation | None, block: Block | None) -> Operation | None:
    """Return the operation of a block that another one is, or is within."""
    while op is not None and op.parent is not block:
        op = op.parent_op()
    return op
