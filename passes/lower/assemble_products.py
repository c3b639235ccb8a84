"""Write products of shared memory and registers as PTX: runs of loops that are unrolled whole, and what is between."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf, vector
from xdsl.dialects import math as maths
from xdsl.dialects.builtin import IndexType, IntAttr, IntegerType, ModuleOp, UnitAttr, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects import kernel
from ...dialects.buffers import element_of_buffer, scope_of
from ...dialects.target import target_of
from ...dialects.walk import operations_in
from ..analysis.initial_values import initial_value
from ..analysis.unrolling import UNROLLED_INSTRUCTIONS, even_factor, factor_of, unrolled_instructions
from ._assembly import Assembly, Unwritable, around, move_before

_LEAST = 24
"""Multiply-adds that are worth a block of assembly. A choice: depthwise windows have 25, and rows of results 56."""
_MOST_INSTRUCTIONS = 1200
"""Instructions of assembly that a loop is unrolled whole to, where the compiler would have seen to it: NVIDIA's does to
1,100. Left as loops four kernels of two to seven such iterations took 1.05 to 1.17 times as long (an H200)."""
_INDICES = (arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.CmpiOp)


@dataclass(frozen=True)
class AssembleProducts(ModulePass):
    """Loads of shared memory and registers, multiply-adds, stores to registers -> `lw_kernel.ptx`, for CUDA alone.

    A run of such operations in single precision, of loops of them that are unrolled whole, and of asynchronous copies
    between them becomes one operation, whose instructions are those of all iterations. So NVRTC's optimizer has nothing
    to do there, which is most of what it takes. A run stays as it is where it has few multiply-adds, where an
    instruction would not know which register an element of a thread's array is in, or where setting registers would be
    more than what is done with them. `unrolled_instructions` are what a loop is unrolled to.

    Requires: kernels (`lw-lower-loop-to-kernel`).
    """

    name = "lw-assemble-products"

    unrolled_instructions: int = UNROLLED_INSTRUCTIONS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).kind == "cuda":
            assemble_products(op, self.unrolled_instructions)


def assemble_products(module: ModuleOp, unrolled_instructions: int = UNROLLED_INSTRUCTIONS) -> None:
    """Write the products of a module's kernels as PTX, in place."""
    multiplying = {block for op in operations_in(module) if type(op) is maths.FmaOp for block in _blocks_around(op)}
    launches = {op for block in multiplying if isinstance(op := block.parent_op(), kernel.LaunchOp)}
    for launch in launches:
        _Runs(launch, multiplying, unrolled_instructions).assemble(launch.body.block)


def _blocks_around(op: Operation) -> Iterator[Block]:
    while (block := op.parent) is not None and (above := block.parent_op()) is not None:
        yield block
        op = above


class _Runs:
    """The runs of one launch, from its outermost operations in, so that no loop around one is unrolled whole."""

    def __init__(self, launch: kernel.LaunchOp, multiplying: Set[Block], limit: int) -> None:
        self._launch, self._multiplying, self._limit = launch, multiplying, limit
        self._trips: dict[Operation, range | None] = {}
        self._numbers: dict[SSAValue, int | None] = {}

    def assemble(self, block: Block) -> int:
        """Write the runs of a block, and of the blocks in what is left; returns the instructions that there are then.

        Those in loops that are unrolled count as often as they are there.
        """
        if block not in self._multiplying:
            return 0
        seen: set[Operation] = set()
        count = 0
        op = block.first_op
        while op is not None:
            found = self._assembled(op, seen) if type(op) in _BEGINNINGS and op not in seen else None
            if found is not None:
                count += len(found.code.data.instructions)
                op = found
            elif isinstance(op, scf.ForOp):
                count += self._loop(op)
            else:
                count += sum(self.assemble(inner) for region in op.regions for inner in region.blocks)
            op = op.next_op
        return count

    def _loop(self, op: scf.ForOp) -> int:
        """Write the runs of a loop, and settle by how much a loop around some is unrolled; returns all instructions.

        A compiler cannot weigh assembly, so that it would unroll too much.
        """
        asked, body = op.attributes.get(kernel.UNROLL), op.body.block
        if body not in self._multiplying:
            return 0
        trips = self._trips_known(op)
        before = unrolled_instructions(body) if asked is None else None
        instructions = self.assemble(body)
        if asked is not None:
            return instructions * (factor_of(asked) or trips or 1)
        if not instructions:
            return 0
        factor = 1
        if trips is not None and trips * instructions <= _MOST_INSTRUCTIONS:
            factor = trips
        elif trips is not None and before is not None:
            factor = even_factor(trips, before, self._limit)
        op.attributes[kernel.UNROLL] = UnitAttr() if factor == trips else IntAttr(factor)
        return instructions * factor

    def _trips_known(self, op: scf.ForOp) -> int | None:
        """Return how often a loop runs, where that is known."""
        first, end, by = map(self._number, (op.lb, op.ub, op.step))
        return len(range(first, end, by)) if first is not None and end is not None and by else None

    def _assembled(self, op: Operation, seen: set[Operation]) -> kernel.PtxOp | None:
        """Write the run that begins with an operation; None where none does."""
        run, indices = self._from(op)
        if sum(map(self._products, run)) < _LEAST:
            seen.update(run)  # a run that begins later has fewer
            return None
        within = set(run)
        last = next((each for each in reversed(run) if _is_read_later(each, within)), None)
        if last is not None:
            seen.update(run[: run.index(last) + 1])  # a run that begins with one of these has it, too
            return None
        if _is_initializer(op):
            return None
        kept = [each for each in run if isinstance(each, kernel.AllocOp) and _is_used_outside(each, within)]
        run = [each for each in run if each not in kept]
        assembly = Assembly(run, indices, self._number, self._trips)
        try:
            for each in run:
                assembly.add(each)
        except Unwritable:
            return None
        if not assembly.pays:
            seen.update(run)
            return None
        for each in (*indices, *kept):
            move_before(each, run[0])
        found = assembly.insert(run[0])
        for each in reversed(run):
            each.detach()  # type: ignore[no-untyped-call]
            each.erase(safe_erase=False)
        return found

    def _from(self, op: Operation) -> tuple[list[Operation], list[Operation]]:
        """Return the operations of the run that begins here, and the indices that are computed among them."""
        run: list[Operation] = []
        indices: list[Operation] = []
        between: list[Operation] = []
        each: Operation | None = op
        while each is not None:
            if self._is_writable(each) or _is_copy(each) or is_local_floats(each):
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
                if op.mask is not None or element_of_buffer(op.buffer) != f32:
                    return False
                scope = scope_of(op.buffer)
                return scope == "local" or (scope == "shared" and isinstance(op, kernel.LoadOp))
            case maths.FmaOp() | vector.BroadcastOp():
                return kernel.element_of(op.results[0].type) == f32
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
            self._is_writable(each) or isinstance(each, (scf.YieldOp, *_INDICES)) or is_local_floats(each)
            for each in body.ops
        )
        return trips if all(inner) else None

    def _products(self, op: Operation) -> int:
        if isinstance(op, scf.ForOp):
            return len(self._trips_of(op) or ()) * sum(map(self._products, op.body.block.ops))
        return kernel.lanes_of(op.results[0].type) if isinstance(op, maths.FmaOp) else 0

    def _number(self, index: SSAValue) -> int | None:
        """Return the value of an index that is the same in all threads and iterations."""
        if index not in self._numbers:
            self._numbers[index] = self._number_of(index)
        return self._numbers[index]

    def _number_of(self, index: SSAValue) -> int | None:
        match index.owner:
            case arith.ConstantOp():
                return const_evaluate_operand(index)
            case kernel.ThreadOp() as op:
                sizes = self._launch.grid_size if op.axis.data.startswith("block") else self._launch.block_size
                return 0 if sizes["xyz".index(op.axis.data[-1])] == 1 else None
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() as op:
                a, b = self._number(op.lhs), self._number(op.rhs)
                if a is None or b is None:
                    return None
                return a * b if isinstance(op, arith.MuliOp) else a + b if isinstance(op, arith.AddiOp) else a - b
            case Block() as block if isinstance(loop := block.parent_op(), scf.ForOp):
                return self._number(loop.lb) if self._trips_known(loop) == 1 else None
        return None


_BEGINNINGS = (scf.ForOp, kernel.LoadOp, kernel.StoreOp)
"""Operations that a run begins with."""


def _is_initializer(op: Operation) -> bool:
    """True for what stores constants to an array before all else, which may be written where that is declared."""
    stores = (each for each in op.walk() if isinstance(each, kernel.StoreOp))
    allocations = {each.buffer.owner for each in stores if isinstance(each.buffer.owner, kernel.AllocOp)}
    initial = (initial_value(each) for each in allocations if each.parent is op.parent)
    return any(found is not None and op in found.stores for found in initial)


def _is_copy(op: Operation) -> bool:
    """True for asynchronous copies, which may stand between products."""
    is_branch = isinstance(op, scf.IfOp) and kernel.holds_copies_alone(op)
    return is_branch or isinstance(op, kernel.AsyncCopyOp | kernel.CommitOp)


def _is_index(op: Operation) -> bool:
    """True for arithmetic on indices and truth values, which may as well be done before; no arrival, which waits."""
    kinds = [result.type for result in op.results]
    is_plain = all(isinstance(kind, IndexType) or kind == IntegerType(1) for kind in kinds)
    is_free = op.name.startswith(kernel.ARITHMETIC) or is_side_effect_free(op)
    return bool(kinds) and is_plain and not op.regions and is_free


def is_local_floats(op: Operation) -> bool:
    """True for an array of single precision of a thread, which is there until its block ends."""
    return isinstance(op, kernel.AllocOp) and kernel.is_local_floats(op.buffer)


def _is_read_later(op: Operation, run: Set[Operation]) -> bool:
    """True where something outside of a run uses a value that it computes."""
    return not isinstance(op, kernel.AllocOp) and _is_used_outside(op, run)


def _is_used_outside(op: Operation, run: Set[Operation]) -> bool:
    uses = (use.operation for result in op.results for use in result.uses)
    return any(around(use, op.parent) not in run for use in uses)
