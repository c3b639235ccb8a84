"""Values that threads of a GPU pass on: who sees what another one wrote, barriers just where needed, and refusals."""

import re
from typing import Any

import pytest
from gpu_lowered import CUDA, OPENCL, Steps, barriers, check, doubled, lower, placeholder, refuse
from gpu_programs import parse
from xdsl.utils.exceptions import PassFailedException

from loopwright import te
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.opencl.compile import print_opencl
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.primitive import ScheduleError
from loopwright.schedule import Schedule


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
