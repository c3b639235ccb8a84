"""A reduction over the threads of a block: within warps by passing values on, across warps through shared memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects import kernel
from ...dialects.index import IndexExpr
from ...dialects.loop import BlockOp, ForOp, element_of_buffer
from ...dialects.target import WARP
from ..analysis.nest import only_child
from ._block_body import BodyWriter
from ._block_plan import BlockPlan
from ._branches import branch, under
from ._launch import Launch
from ._thread_dependence import joins_threads

Copies = Sequence[Callable[[], AbstractContextManager[None]]]
"""The instances of a statement in a thread, by what lets their places be known."""


def joined_alone(nest: ForOp, plans: Mapping[BlockOp, BlockPlan]) -> tuple[list[ForOp], BlockPlan] | None:
    """The loops of a nest of nothing but a reduction over threads, and its plan; None for others."""
    loops, inner = list[ForOp](), only_child(nest)
    while isinstance(inner, ForOp):
        loops.append(inner)
        inner = only_child(inner)
    plan = plans[inner] if isinstance(inner, BlockOp) else None
    return ([nest, *loops], plan) if plan is not None and joins_threads(plan) else None


def join_threads(
    launch: Launch, writer: BodyWriter, plan: BlockPlan, warps: bool, copies: Copies = (nullcontext,)
) -> None:
    """Write the instances that each thread has of `plan`, join what the threads have, and store the results.

    With `warps` the threads of a warp pass values on by shuffles. All copies then wait for each other's warps once.

    PassFailedException where the reduction is not over all threads of one axis, with a named combiner and nothing else.
    """
    size = _size(launch, plan, warps)
    position = launch.threads["threadIdx.x"]
    for number, access in enumerate(plan.writes):
        own = []
        for known in copies:
            with known():
                own.append(_own_value(launch, writer, plan, number, element_of_buffer(access.buffer)))
        if warps:
            of_warps = _within_warp(launch, writer, plan, own, size)
            totals = _across_warps(launch, writer, plan, of_warps, size, position)
        else:
            totals = [_through_memory(launch, writer, plan, value, size, position) for value in own]
        for known, joined in zip(copies, totals, strict=True):
            with known():
                _finish_where_needed(launch, writer, plan, number, joined, launch.is_below(position, size, 1))


def _finish_where_needed(
    launch: Launch, writer: BodyWriter, plan: BlockPlan, number: int, joined: SSAValue, is_first: SSAValue
) -> None:
    finish = partial(_finish, launch, writer, plan, number, joined, is_first)
    rows = [c for c in _open_conditions(launch, plan) if "threadIdx.x" not in c.axes()]
    if rows and plan.writes[number].place.scope != "local":
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


def _within_warp(
    launch: Launch, writer: BodyWriter, plan: BlockPlan, values: Sequence[SSAValue], size: int
) -> Sequence[SSAValue]:
    """Each value joined within warps, all of them step by step, as a step takes long to answer."""
    distance = min(size, WARP) // 2
    while distance:
        others = [launch.at.here.add(kernel.ShuffleOp(value, distance)) for value in values]
        values = [writer.combine(plan, value, other) for value, other in zip(values, others, strict=True)]
        distance //= 2
    return values


def _across_warps(
    launch: Launch,
    writer: BodyWriter,
    plan: BlockPlan,
    values: Sequence[SSAValue],
    size: int,
    position: SSAValue,
) -> Sequence[SSAValue]:
    """Values of each warp through shared memory; every thread joins them all."""
    warps = size // WARP
    if warps <= 1:
        return values
    element = values[0].type
    shared = launch.allocate(f"{plan.name}_warps", element, warps * len(values), "shared")
    at = launch.at
    warp, lane = launch.quotient(position, WARP, size)

    def store() -> None:
        for number, value in enumerate(values):
            at.here.block.add_op(kernel.StoreOp(value, shared, warp, number * warps, 0))

    launch.barrier()
    branch(launch.at, launch.is_below(lane, WARP, 1), store)
    launch.barrier()
    return [_total(launch, writer, plan, shared, number * warps, warps) for number in range(len(values))]


def _total(launch: Launch, writer: BodyWriter, plan: BlockPlan, shared: SSAValue, start: int, warps: int) -> SSAValue:
    """The total of the values of all warps, which are neighbours from a place on."""
    assert isinstance(shared.type, MemRefType)
    found = [
        launch.at.here.add(kernel.LoadOp(shared, launch.at.constant(0), start + number, shared.type.element_type, 0))
        for number in range(warps)
    ]
    total, *others = found
    for other in others:
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
