"""Reductions across the threads of a GPU: partial sums are joined, and each element is added once."""

import numpy as np
import pytest
from gpu_lowered import CUDA, OPENCL, Steps, barriers, check, lower, matmul, placeholder, refuse, rows
from lowered_runs import exact_inputs
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects import kernel
from loopwright.dialects.buffers import scope_of
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.schedule import Schedule


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


def test_softmax_rows() -> None:
    x = placeholder("x", 5, 70)
    tensors = [x, topi.nn.softmax(x)]

    def steps(sch: Schedule) -> None:
        for block in sch.blocks:
            sch.bind(block, sch.get_loops(block)[0], "blockIdx.x")

    check(tensors, steps)


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


@pytest.mark.parametrize("threads", [64, 256])
def test_places_of_few_results_are_found_by_the_first_thread_which_keeps_their_keys(threads: int) -> None:
    """No thread is told apart, and what is written is partly in global memory, partly in the first one's registers."""
    x = te.placeholder((1, 2, 5), "float16", name="x")
    sch = lw.Schedule([x, topi.argmax(x, 2)], target="cuda model=h200")
    sch.split("T_argmax", "ax1", [0, 2])
    sch.reorder("T_argmax", ["ax0", "ax10", "k2", "ax11"])
    sch.fuse("T_argmax", ["ax0", "ax10"])
    sch.split("T_argmax", "ax0_ax10", [0, threads])
    sch.bind("T_argmax", "ax0_ax100", "blockIdx.x")
    sch.bind("T_argmax", "ax0_ax101", "threadIdx.x")
    sch.set_scope("T_argmax", "local", buffer="T_argmax1")
    sch.vectorize("T_argmax", "ax11")
    data = np.array([[[1, np.nan, 3, np.nan, 5], [-0.0, 0, -1, 0, -2]]], "float16")
    assert np.array_equal(lw.interpret(sch, data), [[1, 0]])
