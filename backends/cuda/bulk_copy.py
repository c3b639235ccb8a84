"""Bulk copies in CUDA C: boxes that tensor maps name, and barriers that count their bytes (PTX ISA), from sm_90 on."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ..c_family.memory import place_text, places_of
from ..c_family.printer import Handler, KernelPrinter
from ..unsupported import UnsupportedError

_COPY = """\
// Begin to copy a box to shared memory; a barrier counts its bytes.
__device__ __forceinline__ void copy_box_{rank}(void* shared, const TensorMap* map, void* barrier, {parameters}) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned counted = (unsigned)__cvta_generic_to_shared(barrier);
    asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {{{places}}}], [%2];" ::"r"(place), "l"(map), "r"(counted), {given} : "memory");
}}"""
_COPY_ONCE = """\
// Begin to copy a box to shared memory, which the second-level cache lets go of first; a barrier counts its bytes.
__device__ __forceinline__ void copy_box_once_{rank}(void* shared, const TensorMap* map, void* barrier, {parameters}) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned counted = (unsigned)__cvta_generic_to_shared(barrier);
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {{{places}}}], [%2], %3;"
                 ::"r"(place), "l"(map), "r"(counted), "l"(policy), {given} : "memory");
}}"""
_COPY_TO_ALL = """\
// Begin to copy a box to the same place in several blocks of the cluster; a barrier of each counts its bytes.
__device__ __forceinline__ void copy_box_to_all_{rank}(void* shared, const TensorMap* map, void* barrier,
                                                  unsigned blocks, {parameters}) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned counted = (unsigned)__cvta_generic_to_shared(barrier);
    const unsigned short mask = (unsigned short)blocks;
    asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {{{places}}}], [%2], %3;"
                 ::"r"(place), "l"(map), "r"(counted), "h"(mask), {given} : "memory");
}}"""
_WALK = """\
// Begin to copy pixels along a window's positions to shared memory, moved by taps; a barrier counts their bytes.
__device__ __forceinline__ void copy_walk_{rank}(void* shared, const TensorMap* map, void* barrier,
                                            {parameters}, {moves}) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned counted = (unsigned)__cvta_generic_to_shared(barrier);
    asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {{{places}}}], [%2], {{{taps}}};" ::"r"(place), "l"(map), "r"(counted), {given}, {tapped}
                 : "memory");
}}"""
_WALK_TO_ALL = """\
// Begin to copy pixels to the same place in several blocks of the cluster; a barrier of each counts their bytes.
__device__ __forceinline__ void copy_walk_to_all_{rank}(void* shared, const TensorMap* map, void* barrier,
                                                   unsigned blocks, {parameters}, {moves}) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned counted = (unsigned)__cvta_generic_to_shared(barrier);
    const unsigned short mask = (unsigned short)blocks;
    asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {{{places}}}], [%2], {{{taps}}}, %3;"
                 ::"r"(place), "l"(map), "r"(counted), "h"(mask), {given}, {tapped} : "memory");
}}"""
_COPIES = {
    "copy_box": _COPY,
    "copy_box_once": _COPY_ONCE,
    "copy_box_to_all": _COPY_TO_ALL,
    "copy_walk": _WALK,
    "copy_walk_to_all": _WALK_TO_ALL,
}
_HELPERS = {
    "barrier_init": """\
// Start a barrier whose phases end with so many arrivals.
__device__ __forceinline__ void barrier_init(void* barrier, unsigned arrivals) {
    const unsigned place = (unsigned)__cvta_generic_to_shared(barrier);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\\nfence.mbarrier_init.release.cluster;"
                 ::"r"(place), "r"(arrivals) : "memory");
}""",
    "barrier_expect": """\
// Arrive at a barrier, whose phase ends when so many bytes more have come.
__device__ __forceinline__ void barrier_expect(void* barrier, unsigned bytes) {
    const unsigned place = (unsigned)__cvta_generic_to_shared(barrier);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place), "r"(bytes) : "memory");
}""",
    "barrier_await": """\
// Wait until the phase of a parity has ended; one that never does stops the kernel.
__device__ __forceinline__ void barrier_await(void* barrier, unsigned parity) {
    const unsigned place = (unsigned)__cvta_generic_to_shared(barrier);
    for (unsigned tries = 0; tries < 10000000u; ++tries) {
        unsigned done;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(place), "r"(parity) : "memory");
        if (done) return;
    }
    asm volatile("trap;");
}""",
}


def helper(name: str, rank: str) -> str:
    """Return a function that these operations call."""
    if name in _HELPERS:
        return _HELPERS[name]
    count, first = int(rank), 4 if name.endswith(("to_all", "once")) else 3
    return _COPIES[name].format(
        rank=rank,
        parameters=", ".join(f"int x{n}" for n in range(count)),
        places=", ".join(f"%{first + n}" for n in range(count)),
        given=", ".join(f'"r"(x{n})' for n in range(count)),
        moves=", ".join(f"int t{n}" for n in range(count - 2)),
        taps=", ".join(f"%{first + count + n}" for n in range(count - 2)),
        tapped=", ".join(f'"h"((unsigned short)t{n})' for n in range(count - 2)),
    )


def copy(p: KernelPrinter, op: Operation) -> None:
    """Print the beginning of a bulk copy; the innermost dimension comes first."""
    assert isinstance(op, kernel.BulkCopyOp)
    if p.language.compute_capability < kernel.BULK_COPIES_SINCE:  # type: ignore[attr-defined]
        raise UnsupportedError(f"sm_{kernel.BULK_COPIES_SINCE} is the first architecture that copies in bulk")
    (write,) = places_of(p, op.target, op.target_index, op.target_offset.data, 1, 1)
    p.stored.add(op.target)
    p.settle(write)
    rank, name, blocks = len(op.extents), "copy_walk" if op.pixel_walk is not None else "copy_box", ""
    if op.axes:
        name, blocks = f"{name}_to_all", f"{_mask_of_blocks(op)}, "
    elif op.once is not None and op.pixel_walk is None:
        name = f"{name}_once"
    p.helpers.add(f"{name} {rank}")
    target = f"{p.buffer(op.target).name} + {place_text(write)}"
    place = ", ".join(p.scalar(each).text for each in (*reversed(op.place), *reversed(op.taps)))
    barrier = _barrier(p, op.barrier, op.barrier_index)
    p.line(f"{name}_{rank}({target}, &{p.maps[op.map_key]}, {barrier}, {blocks}{place});")


def _mask_of_blocks(op: kernel.BulkCopyOp) -> str:
    """Text of a mask of the blocks of a cluster along the axes of a copy, by their numbers there, x the fastest."""
    launch = op.parent_op()
    while not isinstance(launch, kernel.LaunchOp):
        assert launch is not None
        launch = launch.parent_op()
    numbers, others, step = [0], list[str](), 1
    for axis, size in zip(kernel.BLOCK_AXES, launch.cluster_size, strict=True):
        if axis in op.axes:
            numbers = [number + step * place for place in range(size) for number in numbers]
        elif size > 1:
            others.append(f"{axis} % {size} * {step}")
        step *= size
    mask = f"{sum(1 << number for number in numbers)}u"
    return f"{mask} << ({' + '.join(others)})" if others else mask


def _barrier(p: KernelPrinter, barrier: SSAValue, index: SSAValue) -> str:
    (place,) = places_of(p, barrier, index, 0, 1, 1)
    p.stored.add(barrier)
    return f"{p.buffer(barrier).name} + {place_text(place)}"


def init(p: KernelPrinter, op: Operation) -> None:
    """Print the start of a barrier."""
    assert isinstance(op, kernel.BarrierInitOp)
    p.helpers.add("barrier_init -")
    p.line(f"barrier_init({_barrier(p, op.barrier, op.index)}, {op.number.data});")


def expect(p: KernelPrinter, op: Operation) -> None:
    """Print an arrival that expects bytes."""
    assert isinstance(op, kernel.BarrierExpectOp)
    p.helpers.add("barrier_expect -")
    p.line(f"barrier_expect({_barrier(p, op.barrier, op.index)}, {op.number.data});")


def await_phase(p: KernelPrinter, op: Operation) -> None:
    """Print the wait for a phase."""
    assert isinstance(op, kernel.BarrierAwaitOp)
    p.settle_all()
    p.helpers.add("barrier_await -")
    p.line(f"barrier_await({_barrier(p, op.barrier, op.index)}, {p.scalar(op.parity).text});")


BULK_COPIES: dict[type[Operation], Handler] = {
    kernel.BulkCopyOp: copy,
    kernel.BarrierInitOp: init,
    kernel.BarrierExpectOp: expect,
    kernel.BarrierAwaitOp: await_phase,
}
