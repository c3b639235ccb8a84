"""Place buffers: each where its loop's iterations have one, with the layout of the region that one iteration needs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.layout import LayoutAttr
from ...dialects.loop import AllocOp, ForOp, buffer_shape, nested_in, scope_of
from ...dialects.target import Target, target_of
from ..analysis import placement
from ..analysis.nest import functions_on_loops
from ..analysis.placement import Placement, place_arguments
from ..build_limits import USUAL_LIMITS
from ._spare import with_spare
from ._steps import note_step, require_none
from .tell_loops_apart import are_told_apart


@dataclass(frozen=True)
class PlaceBuffers(ModulePass):
    """`%b = alloc : 64x64` used in one iteration of `i` by 16 rows -> in that loop, `placed [i * 16, 0] of [16, 64]`.

    Each allocation moves to the start of the innermost loop around all that uses it (but not into lanes), and is given
    its layout: which element is the first one kept, how many there are, their strides in elements. On a GPU, threads
    keep the part of a local buffer that is their own; a buffer that virtual threads tell apart has copies for them. In
    shared memory some elements are to spare behind a buffer, and behind each stage of a pipeline, where registers
    beyond an edge are filled from there.

    Requires: loops told apart by name (`lw-tell-loops-apart`). No schedule step is legal on the result.
    """

    name = "lw-place-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for func in functions_on_loops(op):
            require_none(func, self.name)
        USUAL_LIMITS.require_code(op)
        for func in functions_on_loops(op):
            if not are_told_apart(func, target.is_gpu):
                rule = f"function '{func.sym_name.data}' has loops that share a name: run lw-tell-loops-apart first"
                raise PassFailedException(f"{self.name}: {rule}")
            place_buffers(func, target)


def place_buffers(func: FuncOp, target: Target) -> None:
    """Place the buffers of a function on loops, in place."""
    last: dict[ForOp | None, AllocOp] = {}
    places = placement.place_buffers(func, target.is_gpu)
    if target.is_gpu:
        places = with_spare(func, places, target.max_shared_bytes)
    for buffer, place in places.items():
        alloc = buffer.owner
        if not isinstance(alloc, AllocOp):
            continue
        alloc.place = LayoutAttr(place.layout)
        alloc.detach()  # type: ignore[no-untyped-call]
        block = func.body.block if place.owner is None else place.owner.body.block
        before = last.get(place.owner)
        if before is not None:
            block.insert_op_after(alloc, before)
        elif block.first_op is not None:
            block.insert_op_before(alloc, block.first_op)
        last[place.owner] = alloc
    note_step(func, PlaceBuffers.name)


def placements_of(func: FuncOp) -> dict[SSAValue, Placement]:
    """Return the memories of a function's buffers by arguments and allocations; those not placed are left out."""
    found = place_arguments(func)
    for op in nested_in(func):
        if type(op) is AllocOp and op.layout is not None:
            around = op.parent_op()
            owner = around if isinstance(around, ForOp) else None
            shape = buffer_shape(op.buffer)
            found[op.buffer] = Placement(op.label.data, scope_of(op.buffer), owner, False, shape, op.layout)
    return found
