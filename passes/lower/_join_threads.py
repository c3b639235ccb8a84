"""A reduction over the threads of a block: within warps by passing values on, across warps through shared memory."""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects import kernel
from ...dialects.index import IndexExpr
from ...dialects.target import WARP
from ._block_body import BodyWriter
from ._block_plan import BlockPlan
from ._branches import branch, under
from ._launch import Launch


def join_threads(launch: Launch, writer: BodyWriter, plan: BlockPlan, warps: bool) -> None:
    """Write the instance that each thread has of `plan`, join what the threads have, and store the result.

    With `warps` the threads of a warp pass values on by shuffles.

    PassFailedException where the reduction is not over all threads of one axis, with a named combiner and nothing else.
    """
    size = _size(launch, plan, warps)
    position = launch.threads["threadIdx.x"]
    for number, access in enumerate(plan.writes):
        element = _element(access.buffer)
        joined = _own_value(launch, writer, plan, number, element)
        if warps:
            of_warp = _within_warp(launch, writer, plan, joined, size)
            joined = _across_warps(launch, writer, plan, of_warp, size, position)
        else:
            joined = _through_memory(launch, writer, plan, joined, size, position)
        finish = partial(_finish, launch, writer, plan, number, joined, launch.is_below(position, size, 1))
        rows = [c for c in _open_conditions(launch, plan) if "threadIdx.x" not in c.axes()]
        if rows and access.place.scope != "local":
            under(launch.at, rows, finish)
        else:
            finish()


def _finish(
    launch: Launch, writer: BodyWriter, plan: BlockPlan, number: int, joined: SSAValue, is_first: SSAValue
) -> None:
    """Store a result, in each thread's own memory or by the first thread; of rows that do not exist there is none."""
    result, access = joined, plan.writes[number]
    if not plan.block.has_init:
        result = writer.combine(plan, writer.output(plan, number), joined)
    if access.place.scope == "local":
        writer.store(access, result)
    else:
        branch(launch.at, is_first, partial(writer.store, access, result))


def _size(launch: Launch, plan: BlockPlan, warps: bool) -> int:
    rule = ""
    if plan.reduce_loops != {"threadIdx.x"}:
        rule = "a reduction over threads is over threadIdx.x alone: rfactor its other loops first"
    elif plan.block.combiner.data == "custom":
        rule = "a reduction over threads has a named combiner"
    size = launch.sizes["threadIdx.x"]
    loop = next((x for x in plan.block.enclosing_loops if x.loop_kind == "threadIdx.x"), None)
    others = launch.sizes.get("threadIdx.y", 1) * launch.sizes.get("threadIdx.z", 1)
    in_warp = warps and size <= WARP and size * others % WARP == 0
    if not rule and (loop is None or loop.size != size or (others != 1 and not in_warp)):
        rule = "a reduction over threads takes all threads of the launch, on one axis, or neighbours in a warp"
    if not rule and (size & (size - 1) or (size < WARP and not in_warp)):
        rule = f"a reduction over threads takes a power of two of at least {WARP} threads, got {size}"
    if rule:
        raise PassFailedException(f"lw-lower-loop-to-kernel: block '{plan.name}': {rule}")
    return size


def _open_conditions(launch: Launch, plan: BlockPlan) -> list[IndexExpr]:
    """The conditions of a block that are not known to hold where its code is written."""
    return [c for c in plan.conditions if launch.at.condition(c) is not True]


def _element(buffer: SSAValue) -> Attribute:
    assert isinstance(buffer.type, MemRefType)
    element: Attribute = buffer.type.element_type
    return element


def _own_value(launch: Launch, writer: BodyWriter, plan: BlockPlan, number: int, element: Attribute) -> SSAValue:
    """Return the value that this thread adds; the identity where its instance does not run."""
    open_conditions = _open_conditions(launch, plan)
    if not open_conditions:
        return writer.value(plan, number)
    held = launch.allocate(f"{plan.name}_own", element, 1, "local")
    zero = launch.at.constant(0)
    here = launch.at.here.block
    here.add_op(kernel.StoreOp(writer.identity(plan, number), held, zero, 0, 0))

    def write() -> None:
        value = writer.value(plan, number)
        launch.at.here.block.add_op(kernel.StoreOp(value, held, zero, 0, 0))

    under(launch.at, open_conditions, write)
    return launch.at.here.add(kernel.LoadOp(held, zero, 0, element, 0))


def _within_warp(launch: Launch, writer: BodyWriter, plan: BlockPlan, value: SSAValue, size: int) -> SSAValue:
    distance = min(size, WARP) // 2
    while distance:
        other = launch.at.here.add(kernel.ShuffleOp(value, distance))
        value = writer.combine(plan, value, other)
        distance //= 2
    return value


def _across_warps(
    launch: Launch, writer: BodyWriter, plan: BlockPlan, value: SSAValue, size: int, position: SSAValue
) -> SSAValue:
    """One value of each warp through shared memory; every thread joins them all."""
    warps = size // WARP
    if warps <= 1:
        return value
    element = value.type
    shared = launch.allocate(f"{plan.name}_warps", element, warps, "shared")
    at = launch.at
    warp, lane = launch.quotient(position, WARP, size)
    launch.barrier()
    branch(
        launch.at,
        launch.is_below(lane, WARP, 1),
        lambda: at.here.block.add_op(kernel.StoreOp(value, shared, warp, 0, 0)),
    )
    launch.barrier()
    zero = at.constant(0)
    total = at.here.add(kernel.LoadOp(shared, zero, 0, element, 0))
    for number in range(1, warps):
        other = at.here.add(kernel.LoadOp(shared, zero, number, element, 0))
        total = writer.combine(plan, total, other)
    return total


def _through_memory(
    launch: Launch, writer: BodyWriter, plan: BlockPlan, value: SSAValue, size: int, position: SSAValue
) -> SSAValue:
    """Halve the number of values in shared memory until one is left."""
    element = value.type
    shared = launch.allocate(f"{plan.name}_threads", element, size, "shared")
    at = launch.at
    zero = at.constant(0)
    launch.barrier()
    at.here.block.add_op(kernel.StoreOp(value, shared, position, 0, 0))
    distance = size // 2
    while distance:
        launch.barrier()

        def halve(d: int = distance) -> None:
            own = at.here.add(kernel.LoadOp(shared, position, 0, element, 0))
            other = at.here.add(kernel.LoadOp(shared, position, d, element, 0))
            joined = writer.combine(plan, own, other)
            at.here.block.add_op(kernel.StoreOp(joined, shared, position, 0, 0))

        branch(launch.at, launch.is_below(position, size, distance), halve)
        distance //= 2
    launch.barrier()
    return at.here.add(kernel.LoadOp(shared, zero, 0, element, 0))
