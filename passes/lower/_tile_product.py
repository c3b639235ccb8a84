"""Nests that are one matrix instruction of a CPU, written: tiles of the factors, loaded once, and their product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects import kernel
from ...dialects.index import ZERO, IndexExpr
from ...dialects.intrinsics import Intrinsic, find_intrinsic
from ...dialects.loop import BlockOp, ForOp, blocks_in
from ..analysis.matrix_product import TENSORIZE, Mismatch
from ..analysis.tile_product import Tile, TileProduct, match_tiles
from ._addresses import Addresses
from ._block_plan import Access, BlockPlan
from ._held_values import memory_is_read


def tile_intrinsic(op: ForOp) -> Intrinsic | None:
    """The intrinsic of a CPU that a schedule step marked a nest with; None where there is none."""
    note = op.notes.get(TENSORIZE)
    found = find_intrinsic(note.data) if isinstance(note, StringAttr) else None
    return found if found is not None and found.target == "llvm" else None


@dataclass(frozen=True)
class _Matrix:
    """A matrix of a product: its buffer, the place of its first element over the loops around, and its rows."""

    access: Access
    offset: IndexExpr
    tile: Tile


class TileWriter:
    """Writes the marked nests of a function, each matched once, for all the places in which it stands."""

    def __init__(self, at: Addresses, buffers: Mapping[SSAValue, SSAValue], plans: Mapping[BlockOp, BlockPlan]) -> None:
        self.at, self.buffers, self.plans = at, buffers, plans
        self._known: dict[ForOp, tuple[_Matrix, _Matrix, _Matrix]] = {}

    def write(self, op: ForOp, intrinsic: Intrinsic) -> None:
        """Write a nest as one product of tiles; PassFailedException where it is none any more."""
        if op not in self._known:
            self._known[op] = self._planned(op, intrinsic)
        a, b, sums = self._known[op]
        left, right = self._factor(intrinsic, "a", a), self._factor(intrinsic, "b", b)
        buffer = sums.access.buffer
        self._forget(buffer)
        at = self.at.address(sums.offset)
        place = at.offset, sums.tile.rows, sums.tile.step
        self.at.here.block.add_op(
            kernel.TileProductOp(intrinsic.name, left, right, self.buffers[buffer], at.base, *place)
        )

    def start(self, op: ForOp, intrinsic: Intrinsic) -> None:
        """Write the nest of what a product starts from, which is zero, as one tile."""
        access = self.plans[next(blocks_in(op))].writes[0]
        rows, columns = (loop.loop_name for loop in op.walk() if isinstance(loop, ForOp))
        offset = access.offset.substitute({rows: ZERO, columns: ZERO})
        at = self.at.address(offset)
        place = at.offset, intrinsic.rows("c"), access.offset.coefficient(rows)
        self._forget(access.buffer)
        self.at.here.block.add_op(kernel.TileStartOp(intrinsic.name, self.buffers[access.buffer], at.base, *place))

    def _forget(self, buffer: SSAValue) -> None:
        """Know no more what a buffer holds, as it is about to be written."""
        here = self.at.here
        for key in [k for k in here.loads if k[0] is buffer]:  # type: ignore[index]
            del here.loads[key]

    def _planned(self, op: ForOp, intrinsic: Intrinsic) -> tuple[_Matrix, _Matrix, _Matrix]:
        block = next(blocks_in(op))
        plan = self.plans[block]
        try:
            match = match_tiles(block, op, intrinsic)
            a, b = (_matrix(match, operand, plan.loads[load]) for operand, load in match.factors())
            return a, b, _matrix(match, "c", plan.writes[0])
        except Mismatch as mismatch:
            rule = f"loop '{op.loop_name}' is no {intrinsic.name}: {mismatch}"
            raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}") from None

    def _factor(self, intrinsic: Intrinsic, operand: str, matrix: _Matrix) -> SSAValue:
        """A factor's tile: what another instruction loaded from the same place is used again."""
        access, here = matrix.access, self.at.here
        key = (access.buffer, self.at.fixed(matrix.offset), intrinsic.name, operand, matrix.tile)
        known = here.loads.get(key)
        if known is None:
            at = self.at.address(matrix.offset)
            place = self.buffers[access.buffer], at.base, at.offset, matrix.tile.rows, matrix.tile.step
            load = kernel.TileLoadOp(intrinsic.name, operand, *place)
            memory_is_read(here, access.buffer)
            load.value.name_hint = f"{access.place.name}_tile"
            known = here.loads[key] = here.add(load)
        return known


def _matrix(match: TileProduct, operand: str, access: Access) -> _Matrix:
    first = {digit.loop_name: ZERO for digit in match.digits}
    return _Matrix(access, access.offset.substitute(first), match.tile(operand, access.buffer, access.offset))
