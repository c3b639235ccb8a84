"""Arrivals of thread blocks in CUDA C: counters of a module, which is zeroed when it is loaded, and fences."""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects import kernel
from ..c_family.expression import Expr
from ..c_family.memory import place_text, places_of
from ..c_family.printer import Handler, KernelPrinter
from ..unsupported import UnsupportedError

_ARRIVE = """\
// Arrive at a counter: true in the threads of the block that is the last of several, and sees what these have written.
// The counter is 0 again then. Barriers order the threads of a block, the atomic of its first one what blocks write.
__device__ __forceinline__ bool arrive(unsigned* counter, unsigned parts) {
    unsigned before = 0;
    __syncthreads();
    if ((threadIdx.x | threadIdx.y | threadIdx.z) == 0) {
        asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                     : "=r"(before) : "l"(__cvta_generic_to_global(counter)), "r"(parts - 1) : "memory");
    }
    return __syncthreads_or(before == parts - 1);
}"""
_CLUSTER_BARRIER = """\
// Let the threads of all blocks of a cluster wait for each other, and see what they have written.
__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\\n\\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}"""

_CLUSTER_MEET = """\
// Let the threads of all blocks of a cluster wait for each other, with no order among what they write.
__device__ __forceinline__ void cluster_meet() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\\n\\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}"""
HELPERS = {"arrive": _ARRIVE, "cluster_barrier": _CLUSTER_BARRIER, "cluster_meet": _CLUSTER_MEET}
"""The functions that these operations call."""


def arrive(p: KernelPrinter, op: Operation) -> None:
    """Print an arrival."""
    assert isinstance(op, kernel.ArriveOp)
    (place,) = places_of(p, op.counters, op.index, 0, 1, 1)
    p.settle_all()
    p.helpers.add("arrive -")
    name = p.names.fresh(op.last.name_hint or "last")
    p.line(f"const bool {name} = arrive({p.buffer(op.counters).name} + {place_text(place)}, {op.parts.data});")
    p.define_literal(op.last, [Expr(name)])


def cluster_barrier(p: KernelPrinter, op: Operation) -> None:
    """Print a barrier of a cluster."""
    if p.language.compute_capability < kernel.CLUSTERS_SINCE:  # type: ignore[attr-defined]
        raise UnsupportedError(f"sm_{kernel.CLUSTERS_SINCE} is the first architecture that has clusters of blocks")
    p.settle_all()
    name = "cluster_meet" if isinstance(op, kernel.ClusterMeetOp) else "cluster_barrier"
    p.helpers.add(f"{name} -")
    p.line(f"{name}();")


ARRIVALS: dict[type[Operation], Handler] = {
    kernel.ArriveOp: arrive,
    kernel.ClusterBarrierOp: cluster_barrier,
    kernel.ClusterMeetOp: cluster_barrier,
}
