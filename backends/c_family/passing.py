"""Global buffers through which the threads of a block communicate: they need fences, and no `restrict`."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ...dialects import kernel

_WRITES = (kernel.StoreOp, kernel.ScatterOp)


def passed_between_threads(launch: kernel.LaunchOp) -> frozenset[SSAValue]:
    """Return the buffers from outside that a launch with barriers both writes and reads.

    They need a barrier that orders global memory, and pointers that are not `restrict`: compilers take that to mean
    that no other thread writes there, and move a load from behind the barrier to before it (NVRTC 13 does).
    """
    inside = list(launch.walk())
    if not any(isinstance(op, kernel.BarrierOp) for op in inside):
        return frozenset()
    written = {op.buffer for op in inside if isinstance(op, _WRITES)}
    read = {operand for op in inside if not isinstance(op, _WRITES) for operand in op.operands}
    return frozenset(buffer for buffer in written & read if not _is_inside(buffer, launch))


def _is_inside(buffer: SSAValue, launch: kernel.LaunchOp) -> bool:
    owner = buffer.owner
    return isinstance(owner, Operation) and launch.is_ancestor(owner)
