"""Nests that are one matrix instruction, written: factors, as fragments or as matrices in shared memory; products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects import kernel
from ...dialects.buffers import CHUNK_BYTES
from ...dialects.index import ZERO, IndexExpr, axis, constant
from ...dialects.intrinsics import Intrinsic, find_intrinsic
from ...dialects.intrinsics_cuda import ROW_BYTES
from ...dialects.loop import BlockOp, ForOp, LoadOp, blocks_in
from ..analysis.access import reads, writers
from ..analysis.matrix_product import TENSORIZE, MatrixProduct, Mismatch, match_product
from ..analysis.nest import buffer_name
from ._addresses import Addresses
from ._block_plan import Access, BlockPlan, reduce_loops
from ._product_waits import STARTED
from ._run_ahead import BULK


def is_product(op: ForOp) -> bool:
    """True for a nest that a schedule step marked."""
    return TENSORIZE in op.notes


@dataclass(frozen=True)
class _Factor:
    """A factor of a product: the place that each lane names when its fragment is loaded, over the loops around."""

    access: Access
    offset: IndexExpr
    registers: int
    element_bytes: int
    turned: bool


@dataclass(frozen=True)
class _Held:
    """A factor that threads hold: the place of each of a thread's elements, over the loops around."""

    access: Access
    places: tuple[IndexExpr, ...]


@dataclass(frozen=True)
class _Product:
    """A product: its intrinsic by name, its factors, and where each of a thread's sums is, over the loops around."""

    name: str
    factors: tuple[_Factor | _Held, ...]
    sums: Access
    places: tuple[IndexExpr, ...]


@dataclass(frozen=True)
class _InShared:
    """A factor that the instruction reads itself: the place of its first element, over the loops around."""

    access: Access
    offset: IndexExpr
    matrix: kernel.SharedMatrix
    element_bytes: int


@dataclass(frozen=True)
class _GroupProduct:
    """A product of a warp group: as `_Product`, with factors in shared memory, the first one perhaps in registers.

    It starts its sums where `steps` are at 0; nowhere where there are None.
    """

    name: str
    factors: tuple[_InShared | _Held, _InShared]
    sums: Access
    places: tuple[IndexExpr, ...]
    steps: tuple[str, ...] | None


class ProductWriter:
    """Writes the marked nests of a function, each matched once, for all the places in which it stands."""

    def __init__(self, at: Addresses, buffers: Mapping[SSAValue, SSAValue], plans: Mapping[BlockOp, BlockPlan]) -> None:
        self.at, self.buffers, self.plans = at, buffers, plans
        self._known: dict[ForOp, _Product | _GroupProduct] = {}

    def write(self, op: ForOp) -> None:
        """Write a nest as one product of fragments; PassFailedException where it is none any more."""
        if op not in self._known:
            self._known[op] = self._planned(op)
        found = self._known[op]
        if isinstance(found, _GroupProduct):
            self._write_group(found)
            return
        here = self.at.here
        first, second = map(self._fragment, found.factors)
        base, places = self._places(found.sums, found.places)
        for key in [k for k in here.loads if k[0] is found.sums.buffer]:  # type: ignore[index]
            del here.loads[key]
        here.block.add_op(
            kernel.MatrixProductOp(found.name, first, second, self.buffers[found.sums.buffer], base, places)
        )

    def _write_group(self, found: _GroupProduct) -> None:
        first, second = found.factors
        a = self._packed_before_fence(first) if isinstance(first, _Held) else self._matrix(first)
        b, sums = self._matrix(second), self.buffers[found.sums.buffer]
        start = found.steps is not None and all(self.at.fixed(axis(name)) == ZERO for name in found.steps)
        self.at.here.block.add_op(
            kernel.WarpGroupProductOp(found.name, a, b, sums, *self._places(found.sums, found.places), start)
        )

    def _planned(self, op: ForOp) -> _Product | _GroupProduct:
        note = op.notes[TENSORIZE]
        assert isinstance(note, StringAttr)
        intrinsic, block = find_intrinsic(note.data), next(blocks_in(op))
        if intrinsic is None:
            raise _refusal(f"no intrinsic is called '{note.data}'")
        try:
            match = match_product(block, op, intrinsic)
        except Mismatch as mismatch:
            raise _refusal(f"loop '{op.loop_name}' is no {note.data}: {mismatch}") from None
        plan = self.plans[block]
        if intrinsic.reads_shared:
            for load in (match.a, match.b) if intrinsic.rounds else ():
                _require_rounded(intrinsic, plan.loads[load])
            read = _first(match, plan), _in_shared(match, "b", plan.loads[match.b], match.b_turned)
            steps = (
                tuple(sorted(reduce_loops(block) - {match.digits[-1].loop_name})) if STARTED in block.notes else None
            )
            return _GroupProduct(note.data, read, plan.writes[0], tuple(_sums(match, plan.writes[0])), steps)
        factors = [
            _held(match, operand, plan.loads[load])
            if plan.loads[load].place.scope == "local"
            else _factor(match, operand, plan.loads[load], turned)
            for operand, load, turned in match.factors()
        ]
        return _Product(note.data, tuple(factors), plan.writes[0], tuple(_sums(match, plan.writes[0])))

    def _fragment(self, factor: _Factor | _Held) -> SSAValue:
        """A factor's fragment: what another instruction loaded from the same place is used again."""
        if isinstance(factor, _Held):
            return self._packed(factor)
        at, access = self.at, factor.access
        offset = at.fixed(factor.offset)
        key = (access.buffer, offset, factor.registers, factor.turned)
        known: SSAValue | None = at.here.loads.get(key)
        if known is not None:
            return known
        address = at.address(offset, 0, access.place.layout.swizzle)
        if address.multiple * factor.element_bytes % ROW_BYTES:
            rule = f"rows of '{access.place.name}' start at no multiple of {ROW_BYTES} bytes, as a warp loads them"
            raise _refusal(f"{rule}: make them longer, or pad them (lw-storage-align)")
        buffer = self.buffers[access.buffer]
        load = kernel.FragmentLoadOp(buffer, address.base, address.offset, factor.registers, factor.turned)
        load.value.name_hint = f"{access.place.name}_part"
        at.here.loads[key] = at.here.add(load)
        return load.value

    def _packed(self, factor: _Held) -> SSAValue:
        """A fragment of what a thread holds; one that another instruction has made already is used again."""
        access, here = factor.access, self.at.here
        base, places = self._places(access, factor.places)
        key = (access.buffer, base, tuple(places))
        known = here.loads.get(key)
        if known is None:
            known = here.loads[key] = here.add(kernel.FragmentPackOp(self.buffers[access.buffer], base, places))
            known.name_hint = f"{access.place.name}_part"
        return known

    def _packed_before_fence(self, factor: _Held) -> SSAValue:
        """A fragment for a warp group: the fence before its products shows them the registers that are packed."""
        value, block = self._packed(factor), self.at.here.block
        pack = value.owner
        assert isinstance(pack, kernel.FragmentPackOp)
        fence = next((op for op in reversed(list(block.ops)) if isinstance(op, kernel.WarpGroupFenceOp)), None)
        if fence is None or pack.index.owner.parent_block() is block:
            rule = f"'{factor.access.place.name}' is read at a step of k that is no constant"
            raise _refusal(f"{rule}, and a fence shows registers to all products at once: unroll the loop of k")
        if fence.is_before_in_block(pack):
            pack.detach()  # type: ignore[no-untyped-call]
            block.insert_op_before(pack, fence)
        return value

    def _matrix(self, factor: _InShared) -> tuple[SSAValue, SSAValue, int, kernel.SharedMatrix]:
        """A factor in shared memory: its buffer, the place of its first element, and how it lies."""
        offset, matrix = self.at.fixed(factor.offset), factor.matrix
        atom = kernel.ATOM_ROWS * matrix.span // factor.element_bytes
        within = 0 if matrix.turned else matrix.span // factor.element_bytes
        if any(c % atom for _, c in offset.terms) or not 0 <= offset.const % atom <= max(0, within - 1):
            rule = f"matrices in '{factor.access.place.name}' start at no multiple of {kernel.ATOM_ROWS} rows"
            raise _refusal(f"{rule}: unroll the loop of k around the instruction, and tile rows by multiples of that")
        base = self.at.scalar(IndexExpr(offset.terms, 0))
        return self.buffers[factor.access.buffer], base, offset.const, matrix

    def _places(self, access: Access, places: tuple[IndexExpr, ...]) -> tuple[SSAValue, list[int]]:
        """Places of a thread's elements: what all of them share, and each one's own constant part."""
        fixed = [self.at.fixed(place) for place in places]
        shared = IndexExpr(fixed[0].terms, 0)
        if not all(place.terms == shared.terms or (place - shared).is_constant for place in fixed):
            name = access.place.name
            raise _refusal(f"the elements of one instruction in '{name}' are no constants apart: change its layout")
        return self.at.scalar(shared), [place.const for place in fixed]


def _first(match: MatrixProduct, plan: BlockPlan) -> _InShared | _Held:
    """The first factor of a product of a warp group, in registers or in shared memory."""
    access = plan.loads[match.a]
    if access.place.scope == "local":
        return _held(match, "a", access)
    return _in_shared(match, "a", access, match.a_turned)


def rounding_of(buffer: SSAValue) -> str:
    """The type that what is copied to a shared buffer is to be rounded to, by products that cut it off; "" for none."""
    found = {_rounding(load) for load in reads(buffer)}
    if len(found) > 1:
        rule = f"'{buffer_name(buffer)}' is rounded for a product, and something else reads it as it is"
        raise _refusal(f"{rule}: give that a cache_read of its own")
    return found.pop() if found else ""


def _rounding(load: LoadOp) -> str:
    """The type that a product in shared memory cuts off to what it loads; "" where it is none."""
    around = load.parent_op()
    while around is not None:
        if isinstance(around, ForOp) and isinstance(note := around.notes.get(TENSORIZE), StringAttr):
            intrinsic = find_intrinsic(note.data)
            return intrinsic.rounds if intrinsic is not None and intrinsic.reads_shared else ""
        around = around.parent_op()
    return ""


def _require_rounded(intrinsic: Intrinsic, factor: Access) -> None:
    """PassFailedException unless the copy engine brings a factor, and rounds it on the way."""
    if not all(BULK in block.notes for block in writers(factor.buffer)):
        rule = f"'{intrinsic.name}' cuts its factors off to {intrinsic.rounds}, and only the copy engine rounds them"
        raise _refusal(f"{rule}: pipeline the copies to '{factor.place.name}' with bulk=1, or take mma.sync")


def _factor(match: MatrixProduct, operand: str, access: Access, turned: bool) -> _Factor:
    intrinsic, lanes = match.intrinsic, match.lanes
    lane, step = ZERO, 1
    for loop in reversed(lanes):
        lane, step = lane + axis(loop.loop_name) * step, step * loop.size
    row, k = intrinsic.matrix_place(operand, lane, turned)
    row_name, k_name = intrinsic.axes(operand)
    element = dict.fromkeys(intrinsic.extents, ZERO) | {row_name: row, k_name: k}
    *held, last = (digit.loop_name for digit in match.digits)
    values = {name: digit.substitute(element) for name, digit in zip(held, intrinsic.c.held, strict=True)}
    holder = intrinsic.c.lane.substitute(element)
    for loop in reversed(lanes[1:]):
        values[loop.loop_name], holder = holder % loop.size, holder // loop.size
    values |= {lanes[0].loop_name: holder, last: k}
    size = intrinsic.fragment(operand).bytes
    return _Factor(access, access.offset.substitute(values), intrinsic.registers(operand), size, turned)


def _held(match: MatrixProduct, operand: str, access: Access) -> _Held:
    """Find where a thread holds the elements of a factor, in the order of the intrinsic."""
    intrinsic = match.intrinsic
    row_name, k_name = intrinsic.axes(operand)
    *held, last = (digit.loop_name for digit in match.digits)
    places = []
    for position in range(intrinsic.elements(operand) // intrinsic.threads):
        row, k = intrinsic.places(operand)[0, position]
        element = dict.fromkeys(intrinsic.extents, ZERO) | {row_name: constant(row), k_name: constant(k)}
        values = {name: digit.substitute(element) for name, digit in zip(held, intrinsic.c.held, strict=True)}
        places.append(access.offset.substitute(values | {last: constant(k)}))
    return _Held(access, tuple(places))


def _in_shared(match: MatrixProduct, operand: str, access: Access, turned: bool) -> _InShared:
    """Find how a factor lies in shared memory; PassFailedException unless it is as the instruction reads it."""
    layout, size = access.place.layout, match.intrinsic.fragment(operand).bytes
    moved = np.zeros_like(match.moved[operand][0])
    for stride, part in zip(layout.strides, match.moved[operand], strict=True):
        moved = moved + stride * part
    span = layout.swizzle.chunks * CHUNK_BYTES if layout.swizzle is not None else 0
    panel = int(moved[span // size, 0]) * size if turned and 0 < span // size < len(moved) else 0
    matrix = kernel.SharedMatrix(span, panel, turned)
    rows, steps = moved.shape
    wanted = [[matrix.place(row, k, size) for k in range(steps)] for row in range(rows)] if span else []
    if not span or not np.array_equal(moved, wanted):
        along = "rows of the matrix" if turned else "k"
        rule = f"'{access.place.name}' must lie in rows of 32, 64 or 128 bytes of {along}, as '{match.intrinsic.name}'"
        fix = "give its cache_read such a layout, or fill as many steps of k at once"
        raise _refusal(f"{rule} reads them, swizzled (lw-swizzle): {fix}")
    first = dict.fromkeys([x.loop_name for x in (*match.lanes, *match.digits)], ZERO)
    if match.groups > 1:
        warps = match.lanes[0]
        of_group = warps.size // match.groups
        first[warps.loop_name] = axis(warps.loop_name) // of_group * of_group
    return _InShared(access, access.offset.substitute(first), matrix, size)


def _sums(match: MatrixProduct, write: Access) -> list[IndexExpr]:
    """Places of a thread's sums, in the order of the intrinsic."""
    *held, last = match.digits
    found = []
    for point in product(*(range(digit.size) for digit in held)):
        values = {digit.loop_name: constant(n) for digit, n in zip(held, point, strict=True)}
        found.append(write.offset.substitute(values | {last.loop_name: ZERO}))
    return found


def _refusal(rule: str) -> PassFailedException:
    return PassFailedException(f"lw-lower-loop-to-kernel: {rule}")
