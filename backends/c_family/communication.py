"""Global buffers through which the threads of a block communicate: they need fences, and no `restrict`."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.walk import operations_in

_WRITES = (kernel.StoreOp, kernel.ScatterOp)


def passed_between_threads(launch: kernel.LaunchOp) -> frozenset[SSAValue]:
    """Return the buffers from outside that a launch with barriers, or arrivals of blocks, both writes and reads.

    They need a barrier that orders global memory, and pointers that are not `restrict`: compilers take that to mean
    that no other thread writes there, and move a load from behind the barrier to before it (NVRTC 13 does).
    """
    inside = list(operations_in(launch))
    if not any(isinstance(op, kernel.BarrierOp | kernel.ArriveOp | kernel.ClusterBarrierOp) for op in inside):
        return frozenset()
    written = {op.buffer for op in inside if type(op) is kernel.StoreOp or type(op) is kernel.ScatterOp}
    return frozenset(buffer for buffer in written if not _is_inside(buffer, launch) and _is_read_in(launch, buffer))


def _is_inside(buffer: SSAValue, launch: kernel.LaunchOp) -> bool:
    owner = buffer.owner
    return isinstance(owner, Operation) and launch.is_ancestor(owner)


def _is_read_in(launch: kernel.LaunchOp, buffer: SSAValue) -> bool:
    users = (use.operation for use in buffer.uses)
    return any(not isinstance(user, _WRITES) and launch.is_ancestor(user) for user in users)
