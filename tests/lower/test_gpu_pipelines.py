"""Copies that run ahead of their loop: right through registers and by the device, with one barrier an iteration."""

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from gpu_programs import compile_cuda, run_opencl
from lowered_runs import exact_inputs
from pipelined_matmul import CUDA, OPENCL, lower, matmul, tile
from xdsl.dialects.builtin import ModuleOp

from loopwright import te, topi
from loopwright.backends.cuda.compile import print_cuda
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.primitive import ScheduleError
from loopwright.schedule import Schedule


def check(tensors: list[te.Tensor], steps: Callable[[Schedule], None], by_itself: bool) -> None:
    """Hold both ways to run ahead to the expressions: on OpenCL, and interpreted and compiled for CUDA."""
    sch, module = lower(tensors, steps, OPENCL)
    inputs = exact_inputs(sch.workload)
    wanted = run_te(sch.workload, inputs)
    _, ahead = lower(tensors, steps, CUDA)
    compile_cuda(ahead.clone(), (90,))
    assert any(isinstance(op, kernel.AsyncCopyOp) for op in ahead.walk()) == by_itself
    for results in (run_opencl(module.clone(), *inputs), run_kernel(module, inputs), run_kernel(ahead, inputs)):
        for got, right in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)


def barriers(module: ModuleOp) -> int:
    return sum(isinstance(op, kernel.BarrierOp) for op in module.walk())


@pytest.mark.parametrize("shape", [(32, 32, 32), (33, 35, 29)])
@pytest.mark.parametrize(
    ("stages", "registers", "vector", "turned"),
    [(2, 0, 1, True), (2, 1, 4, True), (3, 0, 4, False), (4, 1, 2, False), (3, 0, 2, True)],
)
@pytest.mark.few(1)
def test_matmul(shape: tuple[int, int, int], stages: int, registers: int, vector: int, turned: bool) -> None:
    check(matmul(*shape), lambda sch: tile(sch, stages, registers, vector, turned), by_itself=not registers)


@pytest.mark.parametrize(("stages", "registers"), [(2, 0), (2, 1), (3, 0)])
def test_one_barrier_an_iteration(stages: int, registers: int) -> None:
    for target in (OPENCL, CUDA):
        _, module = lower(matmul(64, 64, 64), lambda sch: tile(sch, stages, registers, 1, True), target)
        assert barriers(module) == 1


def test_stages_in_turn() -> None:
    """Every iteration waits for its own copies only, and three stages of both operands are kept."""
    _, module = lower(matmul(64, 64, 64), lambda sch: tile(sch, 3, 0, 1, True), CUDA)
    waits = [op.pending.data for op in module.walk() if isinstance(op, kernel.WaitOp)]
    commits = sum(isinstance(op, kernel.CommitOp) for op in module.walk())
    shared = {
        op.label.data: op.buffer.type.get_shape()[0]
        for op in module.walk()
        if isinstance(op, kernel.AllocOp) and op.label.data.endswith("_shared")
    }
    assert waits == [1]
    assert commits == 3  # two before the loop, one in it
    assert shared["b_shared"] == 3 * 4 * 32


def test_one_stage_is_no_pipeline() -> None:
    tensors = matmul(32, 32, 32)
    _, plain = lower(tensors, lambda sch: tile(sch, 1, 0, 1, True), OPENCL)
    assert barriers(plain) == 2


def test_older_devices_go_through_registers() -> None:
    old = CUDA.replace("=90", "=75")
    _, module = lower(matmul(32, 32, 32), lambda sch: tile(sch, 3, 0, 4, True), old)
    assert not any(isinstance(op, kernel.AsyncCopyOp) for op in module.walk())
    compile_cuda(module, (75,))


def test_halves_are_too_small_to_copy_one_by_one() -> None:
    """The device copies four bytes or more: single halves are stored by the threads, early enough."""
    tensors = matmul(32, 32, 32, "float16")
    _, module = lower(tensors, lambda sch: tile(sch, 3, 0, 1, False), CUDA)
    assert not any(isinstance(op, kernel.AsyncCopyOp) for op in module.walk())
    _, module = lower(tensors, lambda sch: tile(sch, 3, 0, 4, False), CUDA)
    assert {op.size_bytes for op in module.walk() if isinstance(op, kernel.AsyncCopyOp)} == {8}


def padded_conv(sch: Schedule, stages: int, registers: int) -> None:
    """A convolution whose padding is read as zeros on the way into shared memory."""
    block = "conv"
    for operand in ("pad", "w"):
        sch.cache_read(block, operand, "shared", label=f"{operand}_shared")
    sch.compute_inline("pad")
    f = sch.split(block, "f", [None, 4, 2])
    y = sch.split(block, "y", [None, 4])
    rc = sch.split(block, "rc", [None, 2])
    sch.reorder(block, f[0], y[0], f[1], y[1], rc[0], rc[1], "ry", "rx", f[2], "x")
    sch.bind(block, sch.fuse(block, f[0], y[0]), "blockIdx.x")
    sch.bind(block, sch.fuse(block, f[1], y[1]), "threadIdx.x")
    sch.unroll(block, f[2])
    sch.unroll(block, "x")
    out = sch.cache_write(block, "conv", "local")
    sch.reverse_compute_at(out, sch.get_loops(block)[1])
    for copy in ("pad_shared", "w_shared"):
        sch.compute_at(copy, rc[0], unit_loops=True)
        loops = sch.get_loops(copy)[3:]
        _, thread = sch.split(copy, sch.fuse(copy, *loops), [None, 16])
        sch.bind(copy, thread, "threadIdx.x")
    sch.software_pipeline(block, rc[0], stages, registers)


@pytest.mark.parametrize(("stages", "registers"), [(2, 0), (2, 1), (3, 0), (3, 1)])
@pytest.mark.few(1)
def test_padding_becomes_zeros(stages: int, registers: int) -> None:
    data, w = te.placeholder((6, 7, 5), name="data"), te.placeholder((9, 6, 3, 3), name="w")
    pad = topi.nn.pad(data, (0, 1, 1), (0, 1, 1), name="pad")
    rc, ry, rx = (te.reduce_axis((0, n), name=name) for n, name in ((6, "rc"), (3, "ry"), (3, "rx")))
    conv = te.compute(
        (9, 7, 5),
        lambda f, y, x: te.sum(pad[rc, y + ry, x + rx] * w[f, rc, ry, rx], axis=[rc, ry, rx]),
        name="conv",
    )
    check([data, w, conv], lambda sch: padded_conv(sch, stages, registers), by_itself=not registers)
    source = print_cuda(lower([data, w, conv], lambda sch: padded_conv(sch, stages, registers), CUDA)[1]).source
    assert registers or not re.search(r"if \(.*\{\s*(const .*\s*)*copy_async", source), "a copy in a branch"


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.few(1)
def test_each_virtual_thread_copies_through_registers_of_its_own(stages: int) -> None:
    a = te.placeholder((3, 14), name="a")
    b = te.compute((3, 14), lambda i, j: a[i, j] * 2.0, name="b")

    def steps(sch: Schedule) -> None:
        copy = sch.cache_read(b, a, "shared")
        i, j = sch.get_loops(copy)
        sch.bind(copy, i, "vthread")
        sch.reverse_compute_at(b, j)
        sch.software_pipeline(copy, j, stages, 1)

    check([a, b], steps, by_itself=False)


def test_registers_is_yes_or_no() -> None:
    with pytest.raises(ScheduleError, match="registers must be 0 or 1, got 2"):
        lower(matmul(32, 32, 32), lambda sch: tile(sch, 2, 2, 1, True), OPENCL)


def test_lanes_that_agree_on_a_tail_stay_a_vector() -> None:
    """32 threads by 4 elements overshoot a copy of 4 x 16: all lanes of a vector are in it, or none."""

    def steps(sch: Schedule) -> None:
        a_shared = sch.cache_read("c", "a", "shared")
        i0, i1 = sch.split("c", "i", [None, 32])
        k0, k1 = sch.split("c", "k", [None, 4])
        sch.reorder("c", i0, i1, k0, k1, "j")
        sch.bind("c", i0, "blockIdx.x")
        sch.bind("c", i1, "threadIdx.x")
        b_shared = sch.cache_read("c", "b", "shared")
        for copy in (a_shared, b_shared):
            sch.compute_at(copy, k0)
            _, thread, lanes = sch.split(copy, sch.fuse(copy, *sch.get_loops(copy)[-2:]), [None, 32, 4])
            sch.bind(copy, thread, "threadIdx.x")
            sch.vectorize(copy, lanes)

    sch, module = lower(matmul(32, 16, 8), steps, OPENCL)
    widths = [
        kernel.lanes_of(op.value.type)
        for op in module.walk()
        if isinstance(op, kernel.StoreOp) and op.buffer.name_hint == "b_shared"
    ]
    assert widths == [4]
    inputs = exact_inputs(sch.workload)
    np.testing.assert_allclose(run_opencl(module, *inputs)[0], run_te(sch.workload, inputs)[0], rtol=1e-5)


def test_copies_of_shared_memory_go_through_registers() -> None:
    """The device copies to shared memory from global memory alone; another source was an invalid address space."""
    x = te.placeholder((4, 8, 32), name="x")
    y = te.compute((4, 8, 32), lambda i, j, k: x[i, j, 31 - k] + 1.0, name="y")

    def steps(sch: Schedule) -> None:
        first = sch.cache_read("y", "x", "shared")
        second = sch.cache_read("y", first, "shared")
        sch.bind("y", "i", "blockIdx.x")
        sch.bind("y", "k", "threadIdx.x")
        for copy, loop in ((second, "j"), (first, "i")):
            sch.compute_at(copy, loop)
            sch.bind(copy, sch.get_loops(copy)[-1], "threadIdx.x")
        sch.software_pipeline("y", "j", 2, 0)

    check([x, y], steps, by_itself=False)


@pytest.mark.parametrize(("stages", "registers"), [(2, 1), (3, 0), (4, 1)])
@pytest.mark.few(2)
def test_each_stage_has_elements_to_spare_behind_it(stages: int, registers: int) -> None:
    """Threads beyond column 33 read on behind row 8 of their stage: not what is copied for the next one, a data race.

    A stage is 8 rows of 36 and the 28 behind them that are read, and begins at a multiple of 32 as it did.
    """

    def steps(sch: Schedule) -> None:
        b_shared = sch.cache_read("c", "b", "shared", label="b_shared")
        held = sch.cache_read("c", b_shared, "local")
        sch.storage_align(b_shared, axis=0, factor=4, offset=0)
        _, thread, lanes = sch.split("c", "j", [None, 32, 2])
        k0, k1 = sch.split("c", "k", [None, 8])
        sch.reorder("c", thread, k0, k1, "i", lanes)
        sch.bind("c", thread, "threadIdx.x")
        sch.vectorize("c", lanes)
        sch.reverse_compute_at(sch.cache_write("c", "c", "local"), thread)
        sch.compute_at(held, k1)
        sch.vectorize(held, sch.get_loops(held)[-1])
        sch.compute_at(b_shared, k0, unit_loops=True)
        _, own = sch.split(b_shared, sch.fuse(b_shared, *sch.get_loops(b_shared)[-2:]), [None, 32])
        sch.bind(b_shared, own, "threadIdx.x")
        sch.software_pipeline("c", k0, stages, registers)

    check(matmul(3, 33, 29), steps, by_itself=not registers)
    _, module = lower(matmul(3, 33, 29), steps, CUDA)
    (size,) = (
        op.buffer.type.get_shape()[0]
        for op in module.walk()
        if isinstance(op, kernel.AllocOp) and op.label.data == "b_shared"
    )
    assert size == (stages - 1) * 320 + 316


def written_out(sch: Schedule, stages: int, vector: int, turned: bool, depth: int, rows: int = 4) -> None:
    """A pipeline whose steps are written one after the other."""
    tile(sch, stages, 0, vector, turned, depth, rows)
    sch.pragma("c", "k1", auto_unroll_max_step=256)


def is_spread(module: ModuleOp) -> bool:
    """True where steps and copies alternate; a commit of all copies stands behind the last step then."""
    source = print_cuda(module).source
    lines = source[source.index("wait_group") :].splitlines()
    found = filter(None, (re.search(r"copy_async|cp\.async\.c[ag]|fma", line) for line in lines))
    kinds = ["work" if each[0] == "fma" else "copy" for each in found]
    alternates = sum(pair == ("work", "copy") for pair in pairwise(kinds)) > 0
    commit = next(number for number, line in enumerate(lines) if "commit_group" in line)
    assert alternates != any("fma" in line for line in lines[commit:])
    assert barriers(module) == 1
    return alternates


@pytest.mark.parametrize("shape", [(32, 32, 64), (33, 36, 29), (50, 72, 61)])
@pytest.mark.parametrize(
    ("stages", "vector", "turned", "depth"), [(2, 4, True, 16), (3, 4, False, 8), (2, 4, True, 8), (4, 4, False, 8)]
)
@pytest.mark.few(2)
def test_copies_spread_over_steps(
    shape: tuple[int, int, int], stages: int, vector: int, turned: bool, depth: int
) -> None:
    """Rounds of both copies stand ahead of the steps of the first half, under predicates alone.

    Rows of terms that are copied as they lie are whole vectors where they are spread.
    """
    steps = partial(written_out, stages=stages, vector=vector, turned=turned, depth=depth)
    check(matmul(*shape), steps, by_itself=True)
    assert is_spread(lower(matmul(*shape), steps, CUDA)[1]) == (turned or shape[2] % 4 == 0)


def test_copies_are_spread_where_that_pays() -> None:
    """Not for few results of a thread, rows that are no whole vectors, or steps that are counted."""
    many = partial(written_out, stages=2, turned=True, depth=16)
    whole, ragged = matmul(64, 64, 64), matmul(63, 65, 61)
    assert is_spread(lower(whole, partial(many, vector=1), CUDA)[1])
    assert is_spread(lower(matmul(63, 68, 61), partial(many, vector=1), CUDA)[1])
    assert not is_spread(lower(ragged, partial(many, vector=1), CUDA)[1])
    assert not is_spread(lower(ragged, partial(many, vector=4), CUDA)[1])
    assert not is_spread(lower(whole, partial(many, vector=4, rows=2), CUDA)[1])
    counted = partial(tile, stages=2, registers=0, vector=4, turned=True, depth=16, rows=4)
    assert not is_spread(lower(whole, counted, CUDA)[1])


def test_copies_are_not_spread_over_steps_that_the_compiler_is_left_to_unroll() -> None:
    """Each of them would ask which copies are theirs, as they are counted."""

    def left(sch: Schedule) -> None:
        written_out(sch, stages=2, vector=1, turned=True, depth=16)
        sch.pragma("c", "k1", unroll_explicit=0)

    check(matmul(64, 64, 64), left, by_itself=True)
    assert not is_spread(lower(matmul(64, 64, 64), left, CUDA)[1])
