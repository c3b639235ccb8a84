"""Products of warp groups whose first factor is in registers: right by the interpreter; their CUDA C; refusals."""

from collections.abc import Sequence

import numpy as np
import pytest
from gpu_programs import parse
from lowered_runs import exact_inputs
from tensor_programs import HOPPER, Form, product
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from loopwright.backends.cuda.compile import compile_module, print_cuda
from loopwright.backends.cuda.nvrtc import compile_cubin
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.primitive import ScheduleError
from loopwright.schedule import Schedule

KINDS = {"float16": "f16", "bfloat16": "bf16"}


def scheduled(dtype: str = "float16", turned: bool = True, groups: int = 1, unrolled: bool = True) -> Schedule:
    """A product of 256 x 64 x 64 by warp groups of a block, each of 64 rows, of which its threads hold their part."""
    sch = Schedule(product(Form(dtype=dtype, result=dtype, transpose_b=not turned), 256, 64, 64), target=HOPPER)
    block = "T_matmul"
    sch.cache_read(block, "a", "local", label="a_own")
    sch.cache_read(block, "b", "shared", label="b_shared")
    i, j, k = sch.get_loops(block)
    task, warp, half, row = sch.split(block, i, [None, 4 * groups, 2, 8])
    matrix, column, pair = sch.split(block, j, [None, 4, 2])
    steps, within = sch.split(block, k, [None, 16])
    sch.reorder(block, task, warp, row, column, steps, matrix, half, pair, within)
    sch.bind(block, task, "blockIdx.x")
    _bind(sch, block, [warp, row, column])
    if unrolled:
        sch.unroll(block, steps)
    sch.reverse_compute_at("d", column)
    sch.set_scope(block, buffer="T_matmul", scope="local")
    _hold(sch, task)
    _fill(sch, task, groups)
    sch.tensorize(block, matrix, f"wgmma.m64n64k16.{KINDS[dtype]}")
    return sch


def _bind(sch: Schedule, block: str, loops: Sequence[str]) -> None:
    for loop, thread in zip(loops, "zyx", strict=True):
        sch.bind(block, loop, f"threadIdx.{thread}")


def _hold(sch: Schedule, task: str) -> None:
    """Read to registers what a thread holds of the first factor."""
    sch.compute_at("a_own", task, unit_loops=True)
    rows, columns = sch.get_loops("a_own")[-2:]
    warp, half, row = sch.split("a_own", rows, [None, 2, 8])
    part, column, pair = sch.split("a_own", columns, [None, 4, 2])
    sch.reorder("a_own", warp, row, column, part, half, pair)
    _bind(sch, "a_own", [warp, row, column])
    for loop in (part, half, pair):
        sch.unroll("a_own", loop)


def _fill(sch: Schedule, task: str, groups: int) -> None:
    sch.compute_at("b_shared", task, unit_loops=True)
    sch.swizzle("b_shared")
    both = sch.fuse("b_shared", *sch.get_loops("b_shared")[-2:])
    _, *threads, vector = sch.split("b_shared", both, [None, 4 * groups, 8, 4, 8])
    _bind(sch, "b_shared", threads)
    sch.vectorize("b_shared", vector)


def lowered(sch: Schedule) -> ModuleOp:
    module = sch.module.clone()
    lower_loop_to_kernel(module)
    module.verify()
    return module


FORMS = [("float16", True, 1), ("float16", False, 2), ("bfloat16", True, 4), ("bfloat16", False, 1)]


@pytest.mark.parametrize(("dtype", "turned", "groups"), FORMS)
@pytest.mark.few(2)
def test_products_are_right(dtype: str, turned: bool, groups: int) -> None:
    """One, two or four warp groups on threadIdx.z, each with rows of its own; the other factor lies either way."""
    sch = scheduled(dtype, turned, groups)
    inputs, module = exact_inputs(sch.workload), lowered(sch)
    for got, wanted in zip(run_kernel(module, inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-2)
    assert str(parse(str(module))) == str(module)


@pytest.mark.parametrize(("dtype", "turned", "groups"), FORMS[1:3])
@pytest.mark.few(1)
def test_cuda_compiles_it(dtype: str, turned: bool, groups: int) -> None:
    """Fragments are packed before the fence, and ptxas has no reason to wait between products (C7510 and others)."""
    module = lowered(scheduled(dtype, turned, groups))
    source = print_cuda(module).source
    name = f"wgmma_m64n64k16_{KINDS[dtype]}_held{'_nn' if turned else ''}("
    body = source[source.rindex("unsigned a_own_part") :]
    first = name.replace("(", "_start(")
    assert 0 < body.index("hold(") < body.index("wgmma.fence") < body.index(first) < body.index(name)
    assert (body.count(first), body.count(name)) == (1, 3), "the first one writes sums, which nobody sets to 0"
    assert "{%32, %33, %34, %35}, %36, p, 1, 1, " + f"{int(turned)}; }}" in source
    (resources,) = compile_module(module).resources
    assert resources.stack_bytes == resources.spill_store_bytes == 0
    assert "C75" not in compile_cubin(source, 90, exact=True).log


def test_a_fragment_that_is_packed_behind_the_fence_is_refused() -> None:
    sch = scheduled()
    module = lowered(sch)
    packs = [op for op in module.walk() if isinstance(op, kernel.FragmentPackOp)]
    (fence,) = [op for op in module.walk() if isinstance(op, kernel.WarpGroupFenceOp)]
    around = fence.parent_block()
    assert around is not None
    packs[-1].detach()
    around.insert_op_after(packs[-1], fence)
    with pytest.raises(InterpretationError, match=r"a fragment was packed since the last wgmma_fence"):
        run_kernel(module, exact_inputs(sch.workload))


def test_sums_that_nobody_started_are_refused() -> None:
    sch = scheduled()
    module = lowered(sch)
    first, *others = [op for op in module.walk() if isinstance(op, kernel.WarpGroupProductOp)]
    assert first.start is not None and not any(op.start for op in others)
    first.start = None
    with pytest.raises(InterpretationError, match=r"element 0 of local buffer 'T_matmul' .* was not written"):
        run_kernel(module, exact_inputs(sch.workload))


def test_steps_of_k_that_are_not_unrolled_are_refused() -> None:
    with pytest.raises(PassFailedException, match=r"'a_own' is read at a step of k that is no constant.*unroll"):
        lowered(scheduled(unrolled=False))


REFUSED = {
    (1, 6): r"a loop of 128 around it must be bound to threadIdx.x",
    (2, 6): r"loop '.*' must move '.*' in each group of 4 of its iterations as in the first",
}
"""Stretches of rows, and warps of each: six are no whole groups, and of twelve the second group is in both."""


@pytest.mark.parametrize("warps", REFUSED)
def test_warps_that_are_no_groups_are_refused(warps: tuple[int, int]) -> None:
    sch = Schedule(product(Form(), 384, 64, 64), target=HOPPER)
    sch.cache_read("T_matmul", "a", "shared", label="a_shared")
    sch.cache_read("T_matmul", "b", "shared", label="b_shared")
    i, j, k = sch.get_loops("T_matmul")
    stretch, task, warp, half, row = sch.split("T_matmul", i, [warps[0], None, warps[1], 2, 8])
    matrix, column, pair = sch.split("T_matmul", j, [None, 4, 2])
    steps, within = sch.split("T_matmul", k, [None, 16])
    sch.reorder("T_matmul", task, stretch, warp, row, column, steps, matrix, half, pair, within)
    _bind(sch, "T_matmul", [sch.fuse("T_matmul", stretch, warp), row, column])
    sch.set_scope("T_matmul", buffer="T_matmul", scope="local")
    with pytest.raises(ScheduleError, match=REFUSED[warps]):
        sch.tensorize("T_matmul", matrix, "wgmma.m64n64k16.f16")


def test_the_fragment_must_be_that_of_the_intrinsic() -> None:
    module = lowered(scheduled())
    op = next(op for op in module.walk() if isinstance(op, kernel.WarpGroupProductOp))
    assert op.held is not None and [name for name, *_ in op.factors()] == ["b"]
    pack = op.held.owner
    assert isinstance(pack, kernel.FragmentPackOp)
    half = kernel.FragmentPackOp(pack.buffer, pack.index, pack.offsets[:4])
    around = pack.parent_block()
    assert around is not None
    around.insert_op_after(half, pack)
    op.operands[0] = half.value
    with pytest.raises(VerifyException, match=r"a of 'wgmma.m64n64k16.f16' is vector<4xi32>, got vector<2xi32>"):
        module.verify()
