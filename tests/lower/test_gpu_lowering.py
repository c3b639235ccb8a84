"""Schedules by hand for a GPU, lowered: right on OpenCL and interpreted for CUDA, barriers just where needed."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gpu_programs import compile_cuda, parse, run_opencl
from late_notes import noting
from lowered_runs import exact_inputs
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from loopwright import te, topi
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.opencl.compile import print_opencl
from loopwright.dialects import kernel
from loopwright.dialects.buffers import scope_of
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.primitive import ScheduleError
from loopwright.schedule import Schedule
from loopwright.te.reduce import Reduce

OPENCL = "opencl max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=8"
CUDA = "cuda max_threads_per_block=1024 max_shared_bytes=49152 warp_size=32 max_vthreads=8 compute_capability=90"
Steps = Callable[[Schedule], Any]


def lower(tensors: Sequence[te.Tensor], steps: Steps, target: str = OPENCL) -> tuple[Schedule, ModuleOp]:
    sch = Schedule(tensors, target=target)
    steps(sch)
    module = sch.module.clone()
    lower_loop_to_kernel(module)
    module.verify()
    return sch, module


def check(tensors: Sequence[te.Tensor], steps: Steps, rtol: float = 1e-5) -> ModuleOp:
    """Hold the kernels for OpenCL, run and interpreted, and for CUDA, interpreted and compiled, to the expressions.

    Their barriers are in no branch.
    """
    sch, module = lower(tensors, steps)
    for_cuda = lower(tensors, steps, CUDA)[1]
    for op in module.walk():
        if isinstance(op, kernel.BarrierOp):
            parent = op.parent_op()
            while not isinstance(parent, kernel.LaunchOp):
                assert not isinstance(parent, scf.IfOp), "a barrier in a branch"
                assert parent is not None
                parent = parent.parent_op()
    inputs = exact_inputs(sch.workload)
    runs = (run_opencl(module.clone(), *inputs), run_kernel(module, inputs), run_kernel(for_cuda, inputs))
    for results in runs:
        for got, wanted in zip(results, run_te(sch.workload, inputs), strict=True):
            with noting(module):
                np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)
    compile_cuda(for_cuda, (90,))
    return module


def refuse(tensors: Sequence[te.Tensor], steps: Steps, rule: str) -> None:
    with pytest.raises(PassFailedException, match=rule):
        lower(tensors, steps)


def barriers(module: ModuleOp) -> int:
    return sum(isinstance(op, kernel.BarrierOp) for op in module.walk())


def placeholder(name: str, *shape: int) -> te.Tensor:
    return te.placeholder(shape, "float32", name)


def matmul(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b, r = placeholder("a", m, k), placeholder("b", k, n), te.reduce_axis((0, k), "k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def doubled(*shape: int) -> list[te.Tensor]:
    x = placeholder("x", *shape)
    return [x, te.compute(shape, lambda *i: x[i] * 2.0, name="y")]


# -- tails ------------------------------------------------------------------------------------------------------------

KINDS = ("blockIdx.x", "vthread", "threadIdx.x")


@pytest.mark.parametrize("extent", [1, 31, 32, 97])
@pytest.mark.parametrize("factors", [(2, 8, 4), (1, 32, 1), (3, 5, 3)])
@pytest.mark.few(6)
def test_tails(extent: int, factors: tuple[int, int, int]) -> None:
    def steps(sch: Schedule) -> None:
        *loops, last = sch.split("y", "i0", [None, *factors])
        for loop, kind in zip(loops, KINDS, strict=True):
            sch.bind(loop, kind)
        sch.vectorize(last)

    check(doubled(extent), steps)


@pytest.mark.parametrize("size", [(1, 1, 1), (8, 8, 8), (13, 11, 7), (16, 33, 9)])
@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.few(2)
def test_tiled_matmul(size: tuple[int, int, int], step: int, padded: bool) -> None:
    """Copies by more threads than elements, tails on all axes, rows padded."""

    def steps(sch: Schedule) -> None:
        copy = sch.cache_write("c", "c", "local")
        shared = [sch.cache_read("c", name, "shared") for name in "ab"]
        i, j, k = sch.get_loops("c")
        i0, iv, i1, i2 = sch.split("c", i, [None, 2, 4, 2])
        j0, j1, j2 = sch.split("c", j, [None, 8, 2])
        k0, k1 = sch.split("c", k, [None, step])
        sch.reorder("c", i0, j0, iv, i1, j1, k0, k1, i2, j2)
        for loop, kind in (
            (i0, "blockIdx.y"),
            (j0, "blockIdx.x"),
            (iv, "vthread"),
            (i1, "threadIdx.y"),
            (j1, "threadIdx.x"),
        ):
            sch.bind("c", loop, kind)
        sch.vectorize("c", j2)
        sch.reverse_compute_at(copy, j1)
        for block in shared:
            sch.compute_at(block, k0, unit_loops=True)
            fused = sch.fuse(block, *sch.get_loops(block)[-2:])
            _, y, x, v = sch.split(block, fused, [None, 4, 8, 2])
            sch.bind(block, y, "threadIdx.y")
            sch.bind(block, x, "threadIdx.x")
            sch.vectorize(block, v)
            if padded:
                sch.storage_align(block, axis=0, factor=8, offset=3)

    module = check(matmul(*size), steps)
    if -(-size[2] // step) > 1:
        assert barriers(module) == 2


def test_block_only_and_thread_only() -> None:
    check(doubled(13, 5), lambda sch: sch.bind("y", "i0", "blockIdx.x"))
    check(doubled(13, 5), lambda sch: sch.bind("y", "i1", "threadIdx.x"))
    check(doubled(13, 5), lambda sch: None)


def test_nests_of_one_launch_with_fewer_threads() -> None:
    """Two stages in each block: the first has more threads than the second."""
    x = placeholder("x", 6, 40)
    a = te.compute((6, 40), lambda i, j: x[i, j] + 1.0, name="a")
    b = te.compute((6, 20), lambda i, j: a[i, 39 - j] * a[i, j], name="b")

    def steps(sch: Schedule) -> None:
        sch.bind("b", "i", "blockIdx.x")
        sch.compute_at("a", "i")
        sch.set_scope("a", "shared")
        sch.bind("b", "j", "threadIdx.x")
        sch.bind("a", sch.get_loops("a")[-1], "threadIdx.x")

    assert barriers(check([x, b], steps)) == 1


def test_launches_with_an_intermediate_between() -> None:
    x = placeholder("x", 9, 33)
    a = te.compute((9, 33), lambda i, j: te.exp(x[i, j] * 0.1), name="a")
    b = te.compute((33,), lambda j: a[8, j] - a[0, 32 - j], name="b")

    def steps(sch: Schedule) -> None:
        sch.bind("a", "i", "blockIdx.x")
        sch.bind("a", "j", "threadIdx.x")
        sch.bind("b", "j", "threadIdx.x")

    module = check([x, b], steps)
    assert sum(isinstance(op, kernel.LaunchOp) for op in module.walk()) == 2
    assert barriers(module) == 0


# -- reductions across threads ----------------------------------------------------------------------------------------


def rows(function: Callable[..., Reduce], m: int, n: int) -> list[te.Tensor]:
    x, r = placeholder("x", m, n), te.reduce_axis((0, n), "k")
    return [x, te.compute((m,), lambda i: function(x[i, r], axis=r), name="s")]


def across(threads: int) -> Steps:
    def steps(sch: Schedule) -> None:
        _, k1 = sch.split("s", "k", [None, threads])
        sch.rfactor("s", k1)
        sch.bind("s", "i", "blockIdx.x")
        sch.compute_at("s_rf", "i")
        sch.set_scope("s_rf", "local")
        loops = sch.get_loops("s_rf")
        mine = next(x for x in loops if x.startswith("k1"))
        if loops[1:] != [mine]:
            sch.reorder("s_rf", mine, *[x for x in loops[1:] if x != mine])
        sch.bind("s_rf", mine, "threadIdx.x")
        sch.bind("s", sch.get_loops("s")[-1], "threadIdx.x")

    return steps


@pytest.mark.parametrize("threads", [32, 64, 256, 1024])
@pytest.mark.parametrize("extent", [1, 31, 1024, 1500])
@pytest.mark.few(3)
def test_sums_across_threads(threads: int, extent: int) -> None:
    module = check(rows(te.sum, 3, extent), across(threads))
    assert barriers(module) == threads.bit_length() + 1


@pytest.mark.parametrize("target", [OPENCL, CUDA])
def test_rows_that_a_split_leaves_over_are_not_stored(target: str) -> None:
    """Of 7 rows, two a block, the last block has one; what would be the eighth was stored behind the buffer."""

    def steps(sch: Schedule) -> None:
        _, k1 = sch.split("s", "k", [None, 64])
        sch.rfactor("s", k1)
        sch.split("s", "i", [None, 2])
        sch.bind("s", "i0", "blockIdx.x")
        sch.compute_at("s_rf", "i0")
        sch.set_scope("s_rf", "local")
        sch.reorder("s_rf", "k1", "i")
        sch.bind("s_rf", "k1", "threadIdx.x")
        sch.bind("s", "k1", "threadIdx.x")

    tensors = rows(te.sum, 7, 128)
    sch, module = lower(tensors, steps, target)
    inputs = exact_inputs(sch.workload)
    np.testing.assert_allclose(run_kernel(module, inputs)[0], run_te(sch.workload, inputs)[0], rtol=1e-5)


def test_a_thread_holds_its_part_of_a_local_buffer_alone() -> None:
    """One register of 64 partial sums, and every eighth element of a row: none that other threads have."""
    _, module = lower(rows(te.sum, 3, 1000), across(64))
    assert [alloc.buffer.type.get_shape() for alloc in local_buffers(module)] == [(1,)]
    x = placeholder("x", 4, 30)
    a = te.compute((4, 30), lambda i, j: x[i, j] + 1.0, name="a")
    tensors = [x, te.compute((4, 30), lambda i, j: a[i, j] * 2.0, name="b")]

    def steps(sch: Schedule) -> None:
        sch.bind("b", "i", "blockIdx.x")
        sch.compute_at("a", "i")
        sch.set_scope("a", "local")
        for block in ("a", "b"):
            sch.bind(sch.split(block, sch.get_loops(block)[-1], [None, 8])[1], "threadIdx.x")

    assert [alloc.buffer.type.get_shape() for alloc in local_buffers(check(tensors, steps))] == [(4,)]


def local_buffers(module: ModuleOp) -> list[kernel.AllocOp]:
    allocs = [op for op in module.walk() if isinstance(op, kernel.AllocOp)]
    return [op for op in allocs if scope_of(op.buffer) == "local"]


def test_largest_across_threads() -> None:
    check(rows(te.max, 2, 77), across(32))


@pytest.mark.parametrize("threads", [32, 128])
@pytest.mark.few(1)
def test_virtual_threads_each_join_their_own(threads: int) -> None:
    """A row for each virtual thread, and the threads of the block joined once a row."""
    x, k = placeholder("x", 3, threads), te.reduce_axis((0, threads), "k")
    tensors = [x, te.compute((3,), lambda i: te.sum(x[i, k], axis=k), name="c")]

    def steps(sch: Schedule) -> None:
        sch.bind("c", "i", "vthread")
        sch.bind("c", "k", "threadIdx.x")

    check(tensors, steps)


@pytest.mark.parametrize("threads", [24, 16])
def test_threads_to_join_are_a_power_of_two(threads: int) -> None:
    refuse(rows(te.sum, 2, 48), across(threads), "a power of two of at least 32 threads")


def test_split_reduction() -> None:
    """Partial sums on blocks of their own, joined by a second launch."""

    def steps(sch: Schedule) -> None:
        part, _ = sch.split("c", "k", [4, None])
        sch.reorder("c", part, "i", "j")
        sch.rfactor("c", part)
        sch.bind("c_rf", part, "blockIdx.y")
        for block in ("c_rf", "c"):
            sch.bind(block, "i", "blockIdx.x")
            sch.bind(block, "j", "threadIdx.x")

    module = check(matmul(5, 9, 30), steps)
    assert sum(isinstance(op, kernel.LaunchOp) for op in module.walk()) == 2


# -- who sees what another thread wrote -------------------------------------------------------------------------------


def mirrored() -> list[te.Tensor]:
    x = placeholder("x", 4, 16)
    a = te.compute((4, 16), lambda i, j: x[i, j] + 1.0, name="a")
    return [x, te.compute((4, 16), lambda i, j: a[i, 15 - j] * 2.0, name="b")]


def passing(scope: str, thread: str = "threadIdx.x") -> Steps:
    def steps(sch: Schedule) -> None:
        sch.bind("b", "i", "blockIdx.x")
        sch.compute_at("a", "i")
        sch.set_scope("a", scope)
        sch.bind("b", "j", thread)
        sch.bind("a", sch.get_loops("a")[-1], thread)

    return steps


def test_registers_are_not_passed_between_threads() -> None:
    assert barriers(check(mirrored(), passing("shared"))) == 1
    refuse(mirrored(), passing("local"), "'a' is written by block 'a' and used by block 'b' at another threadIdx.x")


def test_own_registers_need_no_barrier() -> None:
    x = placeholder("x", 4, 16)
    a = te.compute((4, 16), lambda i, j: x[i, j] + 1.0, name="a")
    b = te.compute((4, 16), lambda i, j: a[i, j] * 2.0, name="b")
    assert barriers(check([x, b], passing("local"))) == 0


def test_one_thread_reduces_into_shared_memory() -> None:
    """The same few sums are needed by all threads: one adds them up, the others wait."""
    x, r = placeholder("x", 3, 20), te.reduce_axis((0, 20), "k")
    s = te.compute((3,), lambda i: te.sum(x[i, r], axis=r), name="s")
    y = te.compute((3, 20), lambda i, j: x[i, j] - s[i], name="y")

    def steps(sch: Schedule) -> None:
        sch.bind("y", "i", "blockIdx.x")
        sch.bind("y", "j", "threadIdx.x")
        sch.compute_at("s", "j")
        sch.set_scope("s", "shared")

    assert barriers(check([x, y], steps)) == 1


def transposed(thread: str) -> Steps:
    """Threads write eight neighbours of an output each and read four."""

    def steps(sch: Schedule) -> None:
        sch.bind("a", "i", "blockIdx.x")
        sch.reverse_compute_at("b", "i")
        eights, _ = sch.split("a", "j", [None, 8])
        fours, _ = sch.split("b", sch.get_loops("b")[-1], [None, 4])
        sch.bind(eights, thread)
        sch.bind(fours, thread)

    return steps


def with_output_between() -> list[te.Tensor]:
    x = placeholder("x", 4, 16)
    a = te.compute((4, 16), lambda i, j: x[i, j] + 1.0, name="a")
    return [x, a, te.compute((4, 16), lambda i, j: a[i, j] * 2.0, name="b")]


def test_outputs_read_by_other_threads() -> None:
    assert barriers(check(with_output_between(), transposed("threadIdx.x"))) == 1


def test_blocks_do_not_wait_for_each_other() -> None:
    refuse(with_output_between(), transposed("blockIdx.y"), "at another blockIdx.y, and blocks do not wait")


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_parallel_loops() -> None:
    refuse(doubled(4, 8), lambda sch: sch.parallel("y", "i0"), "'i0' is parallel, which a GPU does not have")


def test_blocks_inside_of_serial_loops() -> None:
    rule = "'i1' is bound to blockIdx.x inside of 'i0'; reorder it outside"
    refuse(doubled(4, 8), lambda sch: sch.bind("y", "i1", "blockIdx.x"), rule)


def test_global_buffers_of_one_launch() -> None:
    def steps(sch: Schedule) -> None:
        sch.bind("b", "i", "blockIdx.x")
        sch.compute_at("a", "i")

    refuse(mirrored(), steps, "buffer 'a' is used inside of one launch only")


@pytest.mark.parametrize("scope", ["local", "shared"])
def test_buffers_of_several_launches_are_global(scope: str) -> None:
    rule = f"buffer 'a' of scope {scope} is used by several launches: give it scope global"
    refuse(mirrored(), lambda sch: sch.set_scope("a", scope), rule)


# -- printing ---------------------------------------------------------------------------------------------------------


def test_names_hold_in_the_braces_they_are_given_in() -> None:
    """A literal that is named in one branch is spelt out again in the other one."""
    text = """
func.func @k(%x : memref<8xf32> {lw.name = "x"}, %y : memref<8xf32> {lw.name = "y", lw.output}) {
  %low = arith.constant 0xff800000 : f32
  %c4 = arith.constant 4 : index
  lw_kernel.launch grid [1, 1, 1] block [8, 1, 1] {
    %t = lw_kernel.thread "threadIdx.x" : index
    %v = lw_kernel.load %x[%t] stride 0 : memref<8xf32> -> f32
    %p = arith.cmpi slt, %t, %c4 : index
    scf.if %p {
      %a = vector.broadcast %low : f32 to vector<2xf32>
      %m = arith.maximumf %low, %v : f32
      %q = arith.maximumf %m, %low : f32
      lw_kernel.store %q, %y[%t] stride 0 : f32, memref<8xf32>
    } else {
      %n = arith.maximumf %low, %v : f32
      lw_kernel.store %n, %y[%t] stride 0 : f32, memref<8xf32>
    }
  }
  func.return
}
"""
    module = parse(text)
    x = np.arange(8, dtype=np.float32) - 4
    np.testing.assert_array_equal(run_opencl(module, x)[0], x)
    assert "(-INFINITY)" in print_opencl(module).source


def test_softmax_rows() -> None:
    x = placeholder("x", 5, 70)
    tensors = [x, topi.nn.softmax(x)]

    def steps(sch: Schedule) -> None:
        for block in sch.blocks:
            sch.bind(block, sch.get_loops(block)[0], "blockIdx.x")

    check(tensors, steps)


def test_limits_of_a_block_are_exact() -> None:
    """A launch that the device cannot start is refused when it is lowered, before a kernel is built."""
    small = OPENCL.replace("max_shared_bytes=49152", "max_shared_bytes=1024")
    a = te.placeholder((64, 64), name="a")
    b = te.compute((64, 64), lambda i, j: a[j, i] + 1.0, name="b")

    def steps(sch: Schedule) -> None:
        copy = sch.cache_read("b", "a", "shared")
        i, j = sch.get_loops("b")
        i0, i1 = sch.split("b", i, [None, 16])
        sch.reorder("b", i0, j, i1)
        sch.bind("b", i0, "blockIdx.x")
        sch.bind("b", i1, "threadIdx.x")
        sch.compute_at(copy, i0)

    lower([a, b], steps)
    with pytest.raises(PassFailedException, match="takes 4096 bytes of shared memory, the target has 1024"):
        lower([a, b], steps, small)


def test_what_threads_pass_on_in_global_memory_is_ordered_and_may_change() -> None:
    """One thread adds up a row that is an output, too, and all of them divide by the sum behind a barrier.

    A pointer that is `restrict` would let a compiler load the sum before the barrier, as NVRTC did.
    """
    x, k = placeholder("x", 3, 17), te.reduce_axis((0, 17), "k")
    total = te.compute((3,), lambda i: te.sum(x[i, k], axis=k), name="total")
    share = te.compute((3, 17), lambda i, j: x[i, j] / total[i], name="share")

    def steps(sch: Schedule) -> None:
        sch.reverse_compute_at("share", "i", "total")
        sch.bind("total", "i", "blockIdx.x")
        sch.bind("share", "j", "threadIdx.x")

    module = check([x, share, total], steps)
    assert barriers(module) == 1
    opencl = print_opencl(module).source
    assert "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);" in opencl
    cuda = print_cuda(lower([x, share, total], steps, CUDA)[1]).source
    for source, word in ((opencl, "restrict"), (cuda, "__restrict__")):
        assert re.search(rf"float\* {word} share\b", source) and re.search(r"float\* total\b", source), source


def largest(x: te.Tensor) -> list[te.Tensor]:
    """The largest element of each row, and its position."""
    larger = te.comm_reducer(
        lambda a, b: (te.select(a[0] >= b[0], a[0], b[0]), te.select(a[0] >= b[0], a[1], b[1])),
        lambda v, p: (te.min_value(v), te.const(-1, p)),
        name="larger",
    )
    k = te.reduce_axis((0, x.shape[1]), "k")
    outputs: Any = te.compute((x.shape[0],), lambda i: larger((x[i, k], k + 0), axis=k), name="top")
    return list(outputs)


def test_registers_that_one_thread_would_fill_for_all_are_refused() -> None:
    """The place of the largest element in scope local, its value shared: the threads that wait would have no place."""
    x, y = placeholder("x", 5, 7), placeholder("y", 5, 16)
    value, place = largest(x)
    tensors = [x, y, te.compute((5, 16), lambda i, j: y[i, j] * value[i] + te.cast(place[i], "float32"), name="out")]

    def steps(sch: Schedule) -> None:
        sch.bind("out", "j", "threadIdx.x")
        sch.compute_at(value, "i")
        sch.set_scope(value, "shared", "top")
        sch.set_scope(value, "local", "top1")

    refuse(tensors, steps, "what one thread writes for all, others have not in registers")


def test_shared_memory_that_one_block_of_threads_would_fill_for_all_is_refused() -> None:
    """The other result is in global memory, which the first block writes: the others would have an empty row."""
    x = placeholder("x", 3, 9)
    twice, more = te.compute((3, 9), lambda i, j: (x[i, j] * 2.0, x[i, j] + 1.0), name="y")

    def steps(sch: Schedule) -> None:
        sch.bind("y", "i", "blockIdx.x")
        copy = sch.cache_write("y", "y", "shared")
        sch.reverse_compute_at(copy, "i")
        sch.bind(copy, sch.get_loops(copy)[-1], "blockIdx.z")

    refuse([x, twice, more], steps, "what one block of threads writes for all, others have not in shared memory")


def test_an_axis_is_bound_twice_only_to_fill_shared_memory() -> None:
    """A row that all threads fill and each of them reads: in memory other than shared each would fill a part."""
    x = placeholder("x", 16)
    a = te.compute((16,), lambda j: x[j] + 1.0, name="a")
    b = te.compute((16, 16), lambda i, j: a[15 - j] * i.astype("float32"), name="b")

    def steps(sch: Schedule) -> None:
        sch.bind("b", "i", "threadIdx.x")
        sch.compute_at("a", "i")
        sch.set_scope("a", "shared")
        sch.bind("a", sch.get_loops("a")[-1], "threadIdx.x")

    check([x, b], steps)
    sch, _ = lower([x, b], steps)
    for scope in ("global", "local"):
        with pytest.raises(ScheduleError, match=r"all threads fill 'a', loop '\w+' is threadIdx.x inside of another"):
            sch.set_scope("a", scope)


def test_an_axis_bound_twice_in_the_text_is_refused() -> None:
    sch = Schedule(doubled(4, 8), target=OPENCL)
    sch.bind("y", "i1", "threadIdx.x")
    module = parse(str(sch.module).replace("for i0 in 4", "for i0 in 4 threadIdx.x"))
    with pytest.raises(PassFailedException, match=r"'i1' and 'i0' around it are both bound to threadIdx.x"):
        lower_loop_to_kernel(module)


@pytest.mark.parametrize("thread", ["vthread", "threadIdx.x"])
@pytest.mark.parametrize("scope", ["shared", "local"])
@pytest.mark.few(2)
def test_a_sum_that_a_tail_alone_tells_apart_is_added_up_once(thread: str, scope: str) -> None:
    """Each of two columns needs the sum of the row, if it is there: it must not be added to what the other one has."""
    a, k = placeholder("a", 8, 7, 13), te.reduce_axis((0, 13), "k")
    total = te.compute((8, 7), lambda i, j: te.sum(a[i, j, k], axis=k), name="total")
    b, s = placeholder("b", 7, 5), te.reduce_axis((0, 7), "s")
    out = te.compute((8, 5), lambda i, j: te.sum(total[i, s] * b[s, j], axis=s), name="out")

    def steps(sch: Schedule) -> None:
        sch.compute_at("total", "j")
        _, inner = sch.split("out", "j", [None, 2])
        sch.bind("out", inner, thread)
        sch.set_scope("total", scope)

    check([a, b, out], steps)


def test_the_tail_of_fused_axes_holds_no_sum_in_registers_back() -> None:
    """Tiles of 16 of 10 x 10 points: those beyond the last row are added up for nobody, and only not stored."""
    data, weight = te.placeholder((1, 6, 10, 10), name="data"), te.placeholder((4, 6, 3, 3), name="weight")
    conv = topi.nn.conv2d_nchw(data, weight, 1, 1, 1)

    def steps(sch: Schedule) -> None:
        name = "compute"
        for operand in ("pad_temp", "weight"):
            sch.cache_read(name, operand, "shared")
        sch.compute_inline("pad_temp")
        point = sch.fuse(name, "yy", "xx")
        p0, virtual, p1, p2 = sch.split(name, point, [None, 2, 4, 2])
        f0, f1 = sch.split(name, "ff", [None, 2])
        r0, r1 = sch.split(name, "rc", [None, 2])
        sch.reorder(name, "nn", f0, p0, virtual, p1, r0, r1, "ry", "rx", f1, p2)
        sch.bind(name, virtual, "vthread")
        sch.bind(name, sch.fuse(name, "nn", f0, p0), "blockIdx.x")
        sch.bind(name, p1, "threadIdx.x")
        sch.unroll(name, f1)
        sch.vectorize(name, p2)
        tile = sch.cache_write(name, name)
        sch.reverse_compute_at(tile, p1)
        for copy in ("pad_temp_shared", "weight_shared"):
            sch.compute_at(copy, r0, unit_loops=True)
            _, thread = sch.split(copy, sch.fuse(copy, *sch.get_loops(copy)[-4:]), [None, 4])
            sch.bind(copy, thread, "threadIdx.x")

    module = check([data, weight, conv], steps)
    kept = [op for op in module.walk() if isinstance(op, kernel.StoreOp) and scope_of(op.buffer) == "local"]
    assert kept and not any(isinstance(op.parent_op(), scf.IfOp) for op in kept)


def test_a_tail_within_lanes_leaves_vectors_of_registers_whole() -> None:
    """11 columns in pairs: the pair at the end is read from shared memory and added up whole, and stored in part."""

    def steps(sch: Schedule) -> None:
        tile = sch.cache_write("c", "c", "local")
        shared = [sch.cache_read("c", name, "shared") for name in "ab"]
        held = sch.cache_read("c", "b_shared", "local")
        i0, i1, i2 = sch.split("c", "i", [None, 4, 2])
        j0, j1, j2 = sch.split("c", "j", [None, 4, 2])
        k0, k1 = sch.split("c", "k", [None, 2])
        sch.reorder("c", i0, j0, i1, j1, k0, k1, i2, j2)
        for loop, kind in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"), (j1, "threadIdx.x")):
            sch.bind("c", loop, kind)
        sch.unroll("c", i2)
        sch.vectorize("c", j2)
        sch.reverse_compute_at(tile, j1)
        sch.vectorize(tile, sch.get_loops(tile)[-1])
        sch.compute_at(held, k1, unit_loops=True)
        sch.vectorize(held, sch.get_loops(held)[-1])
        for copy in shared:
            sch.compute_at(copy, k0, unit_loops=True)
            _, y, x = sch.split(copy, sch.fuse(copy, *sch.get_loops(copy)[-2:]), [None, 4, 4])
            sch.bind(copy, y, "threadIdx.y")
            sch.bind(copy, x, "threadIdx.x")

    module = check(matmul(16, 11, 6), steps)
    read = [op for op in module.walk() if isinstance(op, kernel.LoadOp) and op.buffer.name_hint == "b_shared"]
    assert {kernel.lanes_of(op.value.type) for op in read} == {2}
    stored = [op for op in module.walk() if isinstance(op, kernel.StoreOp) and scope_of(op.buffer) == "local"]
    assert stored and not any(isinstance(op.parent_op(), scf.IfOp) for op in stored)


def test_windows_beyond_the_edge_part_no_threads() -> None:
    """Tiles of 4 x 4 of 7 x 7 pixels: all windows are read and added up without a question, and stored in part."""
    data, weight = te.placeholder((1, 4, 7, 7), name="data"), te.placeholder((4, 4, 3, 3), name="weight")
    conv = topi.nn.conv2d_nchw(data, weight, 1, 1, 1)

    def steps(sch: Schedule) -> None:
        name = "compute"
        shared = [sch.cache_read(name, operand, "shared") for operand in ("pad_temp", "weight")]
        held = [sch.cache_read(name, copy, "local") for copy in shared]
        sch.compute_inline("pad_temp")
        y0, y1 = sch.split(name, "yy", [None, 4])
        x0, x1, x2 = sch.split(name, "xx", [None, 2, 2])
        r0, r1 = sch.split(name, "rc", [None, 2])
        sch.reorder(name, "nn", y0, x0, y1, x1, r0, r1, "ry", "rx", "ff", x2)
        sch.bind(name, sch.fuse(name, "nn", y0, x0), "blockIdx.x")
        sch.bind(name, y1, "threadIdx.y")
        sch.bind(name, x1, "threadIdx.x")
        sch.unroll(name, "ff")
        sch.vectorize(name, x2)
        sch.pragma(name, r1, auto_unroll_max_step=512)
        tile = sch.cache_write(name, name)
        sch.reverse_compute_at(tile, x1)
        for copy in held:
            sch.compute_at(copy, "rx", unit_loops=True)
            sch.vectorize(copy, sch.get_loops(copy)[-1])
        for copy in shared:
            sch.compute_at(copy, r0, unit_loops=True)
            _, y, x = sch.split(copy, sch.fuse(copy, *sch.get_loops(copy)[-4:]), [None, 4, 2])
            sch.bind(copy, y, "threadIdx.y")
            sch.bind(copy, x, "threadIdx.x")

    module = check([data, weight, conv], steps)
    kept = [op for op in module.walk() if isinstance(op, kernel.StoreOp) and scope_of(op.buffer) == "local"]
    assert kept and not any(isinstance(op.parent_op(), scf.IfOp) for op in kept)


def two_pixels_a_thread(held: bool) -> tuple[list[te.Tensor], Steps]:
    """A convolution of 7 x 7 pixels by 32 threads, whose last windows lie behind the one in shared memory."""
    data, weight = placeholder("data", 1, 4, 7, 7), placeholder("weight", 4, 4, 3, 3)

    def steps(sch: Schedule) -> None:
        name = "compute"
        shared = [sch.cache_read(name, operand, "shared") for operand in ("pad_temp", "weight")]
        copies = [sch.cache_read(name, copy, "local") for copy in shared] if held else []
        sch.compute_inline("pad_temp")
        virtual, own = sch.split(name, sch.fuse(name, "yy", "xx"), [None, 32])
        r0, r1 = sch.split(name, "rc", [None, 2])
        sch.reorder(name, "nn", virtual, own, r0, r1, "ry", "rx", "ff")
        for loop, thread in (("nn", "blockIdx.x"), (virtual, "vthread"), (own, "threadIdx.x")):
            sch.bind(name, loop, thread)
        sch.unroll(name, "ff")
        sch.pragma(name, r1, auto_unroll_max_step=512)
        sch.reverse_compute_at(sch.cache_write(name, name), own)
        for copy in copies:
            sch.compute_at(copy, "rx", unit_loops=True)
        for copy in shared:
            sch.compute_at(copy, r0, unit_loops=True)
            sch.bind(copy, sch.split(copy, sch.fuse(copy, *sch.get_loops(copy)[-4:]), [None, 32])[1], "threadIdx.x")

    return [data, weight, topi.nn.conv2d_nchw(data, weight, 1, 1, 1)], steps


def asked_in_registers(module: ModuleOp) -> list[bool]:
    """For each store to registers, True where it is in a branch."""
    stored = [op for op in module.walk() if isinstance(op, kernel.StoreOp) and scope_of(op.buffer) == "local"]
    return [isinstance(op.parent_op(), scf.IfOp) for op in stored]


@pytest.mark.parametrize("held", [False, True])
def test_threads_beyond_the_edge_read_what_shared_memory_has_to_spare(held: bool) -> None:
    asked = asked_in_registers(check(*two_pixels_a_thread(held)))
    assert asked and not any(asked)


def test_without_room_in_shared_memory_threads_ask_for_the_edge() -> None:
    """162 elements of the image and 72 of the weight are 944 bytes, as buffers start at multiples of 16."""
    tight = CUDA.replace("max_shared_bytes=49152", "max_shared_bytes=944")
    assert any(asked_in_registers(lower(*two_pixels_a_thread(False), tight)[1]))
    assert not any(asked_in_registers(lower(*two_pixels_a_thread(False), CUDA)[1]))
