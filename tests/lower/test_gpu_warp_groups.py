"""Products of warp groups and bulk copies: right by the interpreter, which names what is missing; their CUDA C."""

from collections.abc import Callable

import numpy as np
import pytest
from gpu_programs import parse
from lowered_runs import exact_inputs
from tensor_programs import GROUP_FORMS, HOPPER, OPENCL, Form, scheduled
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException, VerifyException

from loopwright import te, topi
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.c_family.kernel_source import TensorMap
from loopwright.backends.cuda.compile import compile_module, print_cuda
from loopwright.backends.unsupported import UnsupportedError
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.loop import AllocOp, ForOp, blocks_in
from loopwright.dialects.target import Target, TargetAttr
from loopwright.passes.analysis.matrix_product import TENSORIZE
from loopwright.passes.lower._matrix_product import rounding_of
from loopwright.passes.lower.expand_pipelines import ExpandPipelines
from loopwright.passes.lower.lower_loop_to_kernel import STEPS, lower_loop_to_kernel
from loopwright.passes.pipeline_text import apply_schedule, parse_schedule
from loopwright.passes.primitive import ScheduleError
from loopwright.schedule import Schedule

SHAPE = (128, 128, 256)
BULK, BY_THREADS = GROUP_FORMS[0], GROUP_FORMS[1]


def lowered(form: Form, shape: tuple[int, int, int] = SHAPE, target: str = HOPPER) -> ModuleOp:
    module = scheduled(form, shape, target).module.clone()
    lower_loop_to_kernel(module)
    module.verify()
    return module


def operations(module: ModuleOp, kind: type[Operation]) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, kind)]


@pytest.mark.parametrize("form", GROUP_FORMS, ids=lambda f: f"{f.intrinsic} {f.bulk}")
@pytest.mark.few(2)
def test_products_are_right(form: Form) -> None:
    """Sums are invisible until they are waited for, and so is what the copy engine brings."""
    sch = scheduled(form, SHAPE, HOPPER)
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(lowered(form), inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-2)


@pytest.mark.parametrize("form", GROUP_FORMS, ids=lambda f: f"{f.intrinsic} {f.bulk}")
@pytest.mark.few(2)
def test_cuda_compiles_it_for_this_architecture_alone(form: Form) -> None:
    artifact = compile_module(lowered(form))
    (resources,) = artifact.resources
    assert Artifact.from_bytes(artifact.to_bytes(), "cuda") == artifact
    assert artifact.architecture == "sm_90a" and artifact.binary[:4] == b"\x7fELF"
    assert resources.stack_bytes == 0 and resources.spill_store_bytes == 0


ROUNDED = next(form for form in GROUP_FORMS if form.rounded)


def test_the_copy_engine_rounds_to_tf32() -> None:
    """Ties to even, as `te.round_to` does; the product cuts off what is left."""
    sch, module = scheduled(ROUNDED, SHAPE, HOPPER), lowered(ROUNDED)
    inputs = [np.random.default_rng(n).standard_normal(SHAPE[1:]).astype(np.float32) for n in range(2)]
    inputs[0].view(np.int32)[::2] &= -1 << 12  # as far from one number of TF32 as from the other
    (right,) = run_te(sch.workload, inputs)
    np.testing.assert_allclose(run_kernel(module, inputs)[0], right, rtol=1e-5, atol=1e-4)
    for copy in operations(module, kernel.BulkCopyOp):
        assert isinstance(copy, kernel.BulkCopyOp) and copy.rounds is not None
        copy.rounds = None
    assert np.abs(run_kernel(module, inputs)[0] - right).max() > 1e-2
    (launch,) = print_cuda(lowered(ROUNDED)).launches
    assert [each.element for each in launch.maps] == ["tf32", "tf32"]


def test_copies_by_threads_do_not_round() -> None:
    with pytest.raises(
        PassFailedException, match=r"cuts its factors off to tf32, and only the copy engine rounds them"
    ):
        lowered(ROUNDED._replace(bulk=0))


def test_what_something_else_reads_is_not_rounded() -> None:
    module = scheduled(ROUNDED, SHAPE, HOPPER).module.clone()
    nest = next(op for op in module.walk() if isinstance(op, ForOp) and TENSORIZE in op.notes)
    buffer = next(blocks_in(nest)).loads[0].buffer
    assert rounding_of(buffer) == "tf32"
    other = nest.clone()
    other.annotations = None
    around = nest.parent_block()
    assert around is not None
    around.insert_op_before(other, nest)
    with pytest.raises(PassFailedException, match=r"'a_shared' is rounded for a product, and something else reads it"):
        rounding_of(buffer)


def test_what_is_rounded_is_of_single_precision() -> None:
    module = lowered(BULK)
    (copy, *_) = operations(module, kernel.BulkCopyOp)
    copy.properties["rounds"] = UnitAttr()
    with pytest.raises(VerifyException, match="what is rounded to TF32 is of f32"):
        copy.verify()


RAGGED = BULK._replace(padded=64)


def test_the_copy_engine_fills_what_is_outside_of_an_array_with_zeros() -> None:
    """Boxes at the ends reach beyond the arrays, which no thread tests."""
    sch, module = scheduled(RAGGED, (100, 120, 200), HOPPER), lowered(RAGGED, (100, 120, 200))
    assert {op.box_extents for op in module.walk() if isinstance(op, kernel.BulkCopyOp)} == {(64, 64)}
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(module, inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-2)


def masked(shift: int) -> Schedule:
    """A product of what lies `shift` rows before in `a`, zeros before its first row; of less of `a` where that is 0."""
    a, b = (te.placeholder((64, 128), "float16", name=name) for name in "ab")
    rows = te.compute(
        (64, 128),
        lambda i, k: te.if_then_else(i >= max(shift, 8), a[i - shift, k], te.const(0, "float16")),
        name="rows",
    )
    c = topi.nn.matmul(rows, b, transpose_b=True, out_dtype="float32")
    sch = Schedule([a, b, te.compute((64, 64), lambda i, j: c[i, j] * 1, name="d")], target=HOPPER)
    for operand in ("rows", "b"):
        sch.cache_read("T_matmul", operand, "shared", label=f"{operand}_shared")
    sch.compute_inline("rows")
    tile = sch.tensor_tile("T_matmul", "wgmma.m64n64k16.f16", (1, 1), (1, 1), 4)
    for operand in ("rows_shared", "b_shared"):
        sch.compute_at(operand, tile.fill, unit_loops=True)
        sch.swizzle(operand)
    sch.reverse_compute_at("d", tile.lane)
    sch.software_pipeline("T_matmul", tile.fill, 2, bulk=1)
    return sch


def test_what_lies_before_an_array_is_zero_too() -> None:
    sch = masked(8)
    module = sch.module.clone()
    lower_loop_to_kernel(module)
    assert operations(module, kernel.BulkCopyOp)
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(module, inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_zeros_in_the_place_of_elements_are_refused() -> None:
    """The copy engine makes zeros of what is outside of an array alone."""
    with pytest.raises(PassFailedException, match=r"is no copy of boxes.*it has a predicate"):
        lower_loop_to_kernel(masked(0).module.clone())


def test_the_printed_pipeline() -> None:
    """One thread begins the copies; a product goes on while the next one begins, and what it has read is filled behind
    it.
    """
    source = print_cuda(lowered(BULK)).source
    body = source[source.index("for (int k0") :]
    parts = [
        "barrier_await(k0_arrivals + k0_mod3, ",
        "wgmma.fence.sync.aligned",
        "wgmma_m64n32k16_f16(T_matmul[0], T_matmul[1], ",
        "shared_matrix(b_shared + ",
        "wgmma.commit_group.sync.aligned",
        "wgmma.wait_group.sync.aligned 1;",
        "__syncthreads();",
        "if (thread_x == 0 && thread_y == 0) {",
        "barrier_expect(k0_arrivals + ",
        "copy_box_2(a_shared + ",
        "wgmma.wait_group.sync.aligned 0;",
        "hold(T_matmul[n]);",
        "d[",
    ]
    places = [body.index(part) for part in parts]
    assert places == sorted(places)
    assert "const __grid_constant__ TensorMap a_boxes, const __grid_constant__ TensorMap b_boxes, __half*" in source
    assert "__align__(1024) unsigned char shared_memory[]" in source or "__align__(1024) __half a_shared" in source


def expanded(form: Form) -> list[str]:
    """The operations of the pipelined loop and what stands around it, once pipelines are expanded."""
    module = scheduled(form, SHAPE, HOPPER).module.clone()
    for step in STEPS[: STEPS.index(ExpandPipelines) + 1]:
        step().apply(Context(), module)
    module.verify()
    assert str(parse(str(module))) == str(module)
    (loop,) = [
        op for op in module.walk() if isinstance(op, ForOp) and op.loop_name == "k0" and "pipeline_stages" in op.notes
    ]
    around = loop.parent_block()
    assert around is not None
    first = list(around.ops).index(loop)
    outside = [op for op in list(around.ops)[first - 2 : first + 2] if op is not loop]
    return [str(op).split(" {")[0] for op in (*loop.body.block.ops, *outside) if not isinstance(op, AllocOp)]


def test_the_expanded_pipeline_of_bulk_copies() -> None:
    """Products of an iteration go on while the next ones begin, and those before have their place filled again."""
    assert expanded(BULK) == [
        "lw_loop.arrivals k0 of 3",
        "lw_kernel.wgmma_fence",
        "lw_loop.for k1 in 4 unrolled",
        "lw_kernel.wgmma_commit",
        "lw_kernel.wgmma_wait 1",
        "lw_loop.barrier",
        "lw_loop.at k0 = k0 + 2 where (1 - k0 >= 0)",
        "lw_loop.at k0 = 0",
        "lw_loop.at k0 = 1",
        "lw_kernel.wgmma_wait 0",
    ]


def test_the_expanded_pipeline_of_copies_by_threads() -> None:
    """What threads copied is shown to the products by a fence before the barrier."""
    assert expanded(BY_THREADS)[:5] == [
        "lw_kernel.wait 0",
        "lw_kernel.proxy_fence",
        "lw_loop.barrier",
        "lw_kernel.wgmma_fence",
        "lw_loop.for k1 in 4 unrolled",
    ]


def test_a_kernel_says_which_boxes_it_copies() -> None:
    (launch,) = print_cuda(lowered(BULK)).launches
    assert launch.maps == (
        TensorMap(0, "f16", (128, 256), (64, 64), 128),
        TensorMap(1, "f16", (128, 256), (64, 64), 128),
    )
    assert launch.buffers == (2,)


def test_kernels_parse_back() -> None:
    for form in (BULK, BY_THREADS, ROUNDED):
        text = str(lowered(form))
        assert str(parse(text)) == text


@pytest.mark.slow(1.2)
def test_other_targets_run_the_loops() -> None:
    """Without the copy engine threads copy; without the instruction they multiply."""
    module = lowered(BULK._replace(stages=2), (64, 64, 128), OPENCL)
    assert not operations(module, kernel.WarpGroupProductOp) and not operations(module, kernel.BulkCopyOp)
    sch = scheduled(BULK._replace(stages=2), (64, 64, 128), OPENCL)
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(module, inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-2)


# -- what the interpreter finds ---------------------------------------------------------------------------------------


def erased(kind: type[Operation], number: int = -1) -> Callable[[ModuleOp], None]:
    def erase(module: ModuleOp) -> None:
        op = operations(module, kind)[number]
        op.detach()
        op.erase()

    return erase


def waits_for_less(module: ModuleOp) -> None:
    first, _ = operations(module, kernel.WarpGroupWaitOp)
    assert isinstance(first, kernel.WarpGroupWaitOp)
    parent = first.parent_block()
    assert parent is not None
    parent.insert_op_before(kernel.WarpGroupWaitOp(2), first)
    first.detach()
    first.erase()


def expects_more(module: ModuleOp) -> None:
    op = operations(module, kernel.BarrierExpectOp)[0]
    assert isinstance(op, kernel.BarrierExpectOp)
    op.number = type(op.number)(op.number.data + 16)


MISTAKES = {
    "no wait for the last product": (
        BULK,
        erased(kernel.WarpGroupWaitOp),
        r"element 0 of local buffer 'T_matmul' .* is touched before the product that adds to it was waited for",
    ),
    "a wait for too few": (BULK, waits_for_less, r"is written while a product in flight reads it"),
    "no fence of the sums": (
        BULK,
        erased(kernel.WarpGroupFenceOp),
        r"was stored since the last wgmma_fence, and a product adds to it",
    ),
    "no commit": (BULK, erased(kernel.WarpGroupCommitOp), r"is touched before the product|is written while a product"),
    "no wait for copies": (
        BULK,
        erased(kernel.BarrierAwaitOp),
        r"is read before the copy to it was waited for",
    ),
    "bytes that never come": (BULK, expects_more, r"a phase of a barrier never ends: 0 arrivals are left, \d+ bytes"),
    "no barrier": (BULK, erased(kernel.BarrierInitOp), r"barrier \d of shared buffer 'k0_arrivals' .* was not started"),
    "no fence of the proxy": (
        BY_THREADS,
        erased(kernel.ProxyFenceOp),
        r"was stored, and no proxy_fence shows it to a product",
    ),
    "no barrier before the product": (BY_THREADS, erased(kernel.BarrierOp, 0), r"data race|no proxy_fence|in flight"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.few(5)
def test_what_is_missing_is_named(mistake: str) -> None:
    form, change, message = MISTAKES[mistake]
    module = lowered(form)
    inputs = exact_inputs(scheduled(form, SHAPE, HOPPER).workload)
    change(module)
    with pytest.raises(InterpretationError, match=message):
        run_kernel(module, inputs)


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_other_capabilities_are_refused_with_a_sentence() -> None:
    with pytest.raises(ScheduleError, match=r"is of compute capability 90 alone \(sm_90a\), the target has 100"):
        scheduled(BULK, SHAPE, HOPPER.replace("=90", "=100"))
    module = lowered(BULK)
    module.attributes["lw.target"] = TargetAttr(Target(kind="cuda", compute_capability=100))
    with pytest.raises(UnsupportedError, match=r"wgmma.m64n32k16.f16 is of sm_90a alone, not of sm_100"):
        print_cuda(module)


def test_factors_that_are_not_swizzled_are_refused() -> None:
    with pytest.raises(PassFailedException, match=r"'a_shared' must lie in rows of 32, 64 or 128 bytes of k"):
        lowered(BY_THREADS._replace(span=0))


def test_rows_longer_than_the_swizzle_are_refused() -> None:
    with pytest.raises(PassFailedException, match=r"must lie in rows of 32, 64 or 128 bytes of k"):
        lowered(BY_THREADS._replace(k_steps=8))


def test_steps_of_k_that_are_not_unrolled_are_refused() -> None:
    sch = scheduled(BY_THREADS._replace(stages=1), SHAPE, HOPPER)
    text = sch.pipeline.replace('lw-unroll{block="T_matmul" loop="k1"},', "")
    assert text != sch.pipeline
    module = sch.workload
    apply_schedule(module, list(parse_schedule(text)))
    with pytest.raises(PassFailedException, match=r"start at no multiple of 8 rows: unroll the loop of k"):
        lower_loop_to_kernel(module)


def test_copies_by_threads_are_no_boxes() -> None:
    with pytest.raises(
        PassFailedException, match=r"block 'a_shared\$?\d*' is no copy of boxes.*pipeline it without bulk"
    ):
        form = BY_THREADS._replace(stages=1)
        sch = scheduled(form, SHAPE, HOPPER)
        sch.software_pipeline("T_matmul", sch.get_loops("T_matmul")[3], stages=2, bulk=1)
        lower_loop_to_kernel(sch.module.clone())


def test_bulk_and_registers_exclude_each_other() -> None:
    sch = scheduled(BULK._replace(stages=1), SHAPE, HOPPER)
    with pytest.raises(ScheduleError, match=r"bulk must be 0, or 1 where registers is 0, got 1"):
        sch.software_pipeline("T_matmul", sch.get_loops("T_matmul")[3], stages=2, registers=1, bulk=1)
