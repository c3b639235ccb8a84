"""Schedules by hand for a GPU, lowered: right on OpenCL and interpreted for CUDA, barriers just where needed."""

import numpy as np
import pytest
from gpu_lowered import CUDA, OPENCL, Steps, barriers, check, doubled, lower, matmul, placeholder
from gpu_programs import parse, run_opencl
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from loopwright import te, topi
from loopwright.backends.opencl.compile import print_opencl
from loopwright.dialects import kernel
from loopwright.dialects.buffers import scope_of
from loopwright.schedule import Schedule

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
