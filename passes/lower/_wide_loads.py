"""Loads from shared memory moved out of unrolled loops: equal ones once, those side by side as vectors."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from xdsl.dialects import arith, math, scf, vector
from xdsl.dialects.builtin import Float32Type, VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects import kernel
from ...dialects.buffers import buffer_type, scope_of
from ...dialects.kernel import UNROLL

WIDTHS = (4, 2)
"""Elements of 4 bytes that one load brings, the widest first (PTX ISA, ld.v4)."""
MOST_HELD = 64
"""Registers that what is loaded ahead of a loop takes, at most. A choice: a quarter of what a thread can have."""


def widen_loads(block: Block) -> None:
    """Rewrite the unrolled loops in a block, the innermost ones first.

    NVRTC does the same to their copies, and looks at all pairs of loads in them for that: 18 copies of 32 loads take it
    880 ms, and 8 vectors each 470 (Xeon at 2.1 GHz), for machine code of the same size.
    """
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                widen_loads(inner)
        if isinstance(op, scf.ForOp) and UNROLL in op.attributes and _is_quiet(op.body.block):
            _Loop(op).rewrite()


def _is_quiet(block: Block) -> bool:
    """True where nothing but registers is written, and no thread waits."""
    return all(_changes_nothing(op) for op in block.ops)


def _changes_nothing(op: Operation) -> bool:
    if isinstance(op, kernel.StoreOp):
        return scope_of(op.buffer) == "local"
    if isinstance(op, scf.ForOp | scf.IfOp):
        return all(_is_quiet(block) for region in op.regions for block in region.blocks)
    return isinstance(op, kernel.LoadOp | kernel.AllocOp | scf.YieldOp) or op.dialect_name() in _PURE


_PURE = {arith.Arith.name, math.Math.name, vector.Vector.name}


class _Loop:
    """An unrolled loop, from 0 by steps of 1, whose loads are rewritten."""

    def __init__(self, op: scf.ForOp) -> None:
        self.op = op
        self.body = op.body.block
        self.counter = self.body.args[0]
        self.held = 0

    def rewrite(self) -> None:
        trips = const_evaluate_operand(self.op.ub)
        for load in list(self.body.ops):
            if not isinstance(load, kernel.LoadOp) or load.mask is not None or scope_of(load.buffer) != "shared":
                continue
            if self._is_outside(load.index):
                load.detach()  # type: ignore[no-untyped-call]
                self._before(load)
            elif trips is not None and isinstance(load.value.type, Float32Type):
                self._widen(load, trips)

    def _before(self, op: Operation) -> None:
        block = self.op.parent
        assert block is not None
        block.insert_op_before(op, self.op)

    def _is_outside(self, value: SSAValue) -> bool:
        owner = value.owner
        if isinstance(owner, Block):
            return owner is not self.body
        return owner.parent is not self.body

    def _widen(self, load: kernel.LoadOp, trips: int) -> None:
        """Load what the iterations of a loop load one after the other by vectors, to an array of registers."""
        base = self._base(load.index)
        if base is None or self.held + trips > MOST_HELD:
            return
        multiple, first = _multiple_of(base), load.offset.data
        widths = list(_widths(trips, multiple, first))
        if max(widths) == 1:
            return
        self.held += trips
        kind = load.value.type
        array = kernel.AllocOp(f"{load.buffer.name_hint}_held", buffer_type(kind, [trips], "local"))
        self._before(array)
        at = 0
        for width in widths:
            wide = kernel.LoadOp(
                load.buffer,
                base,
                first + at,
                VectorType(kind, [width]) if width > 1 else kind,
                1 if width > 1 else 0,
                align=4 * width if width > 1 else 0,
            )
            self._before(wide)
            self._before(kernel.StoreOp(wide.value, array.buffer, self.op.lb, at, 1 if width > 1 else 0))
            at += width
        held = kernel.LoadOp(array.buffer, self.counter, 0, kind, 0)
        held.value.name_hint = load.value.name_hint
        self.body.insert_op_before(held, load)
        load.value.replace_all_uses_with(held.value)
        load.detach()  # type: ignore[no-untyped-call]
        load.erase()

    def _base(self, index: SSAValue) -> SSAValue | None:
        """An index less the loop's counter; None where it is no sum of that and of what is known outside."""
        if index is self.counter:
            return self.op.lb
        owner = index.owner
        if not isinstance(owner, arith.AddiOp):
            return None
        for one, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            if one is self.counter and self._is_outside(other):
                return other
        return None


def _widths(count: int, multiple: int, first: int) -> Iterator[int]:
    """Cut elements side by side into what one load can bring, where the first is at `first` beside a `multiple`."""
    at = 0
    while at < count:
        known = gcd(multiple, first + at)
        width = next((w for w in WIDTHS if at + w <= count and known % w == 0), 1)
        yield width
        at += width


def _multiple_of(value: SSAValue) -> int:
    """A number that an index is a multiple of; 0 for zero."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp):
        return abs(const_evaluate_operand(value) or 0)
    if isinstance(owner, arith.MuliOp):
        return _multiple_of(owner.lhs) * _multiple_of(owner.rhs)
    if isinstance(owner, arith.AddiOp):
        return gcd(_multiple_of(owner.lhs), _multiple_of(owner.rhs))
    return 1
