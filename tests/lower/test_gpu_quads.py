"""Results of matrix instructions that four threads transpose: right by the interpreter, in stores of 16 bytes."""

import numpy as np
import pytest
from gpu_programs import parse
from lowered_runs import exact_inputs
from tensor_programs import GROUP_FORMS, HOPPER, OPENCL, Form, join_parts, scheduled
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import IfOp
from xdsl.ir import Operation

from loopwright import te, topi
from loopwright.backends.cuda.compile import compile_module, print_cuda
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.schedule import Schedule

SHAPE = (128, 128, 256)
HALVES = [form for form in GROUP_FORMS if form.result in ("float16", "bfloat16")]


def transposed(form: Form, shape: tuple[int, int, int] = SHAPE, target: str = HOPPER) -> Schedule:
    """The product, four parts of eight columns of whose results are written as one vector."""
    return scheduled(form._replace(parts=4), shape, target)


def lowered(sch: Schedule) -> ModuleOp:
    module = sch.module.clone()
    lower_loop_to_kernel(module)
    module.verify()
    return module


def transposes(module: ModuleOp) -> list[kernel.TransposeQuadOp]:
    return [op for op in module.walk() if isinstance(op, kernel.TransposeQuadOp)]


def require_right(sch: Schedule, module: ModuleOp) -> None:
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(module, inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-2)


@pytest.mark.parametrize("form", HALVES, ids=lambda f: f"{f.intrinsic} {f.transpose_a}{f.transpose_b}{f.bulk}")
@pytest.mark.few(2)
def test_transposed_results_are_right(form: Form) -> None:
    """All that is written to the result are eight neighbours, at multiples of 16 bytes."""
    sch = transposed(form)
    module = lowered(sch)
    d = next(op for op in module.walk() if isinstance(op, func.FuncOp)).body.block.args[2]
    stored = [use.operation for use in d.uses]
    assert stored and {op.operands[0] for op in stored} == {op.result for op in transposes(module)}
    assert all(isinstance(op, kernel.StoreOp) and op.align is not None and op.align.data == 16 for op in stored)
    require_right(sch, module)


def test_cuda_prints_and_compiles_it() -> None:
    module = lowered(transposed(HALVES[0]))
    assert str(parse(str(module))) == str(module)
    source = print_cuda(module).source
    assert source.count("transpose_quad(parts") == 1 and "*reinterpret_cast<half_x8*>(&d[" in source
    (resources,) = compile_module(module).resources
    assert resources.stack_bytes == 0 and resources.spill_store_bytes == 0


def test_what_is_read_beside_the_sums_is_read_where_they_are_held() -> None:
    """A bias is gathered for the pairs of a thread; a row of it that ends in a tile is read as far as it goes."""
    a, b, bias = (
        te.placeholder(shape, "float16", name) for shape, name in (((64, 128), "a"), ((56, 128), "b"), ((56,), "bias"))
    )
    c = topi.nn.matmul(a, b, transpose_b=True, out_dtype="float32")
    d = te.compute((64, 56), lambda i, j: (c[i, j] + bias[j].astype("float32")).astype("float16"), name="d")
    sch = Schedule([a, b, bias, d], target=HOPPER)
    sch.pad("T_matmul", sch.get_loops("T_matmul")[1], 64)
    for operand, rows in (("a", "i"), ("b", "j")):
        sch.cache_read("T_matmul", operand, "shared", layout=(rows, "k"), label=f"{operand}_shared")
    tile = sch.tensor_tile("T_matmul", "wgmma.m64n64k16.f16", (1, 1), (1, 1), 4)
    for operand in ("a_shared", "b_shared"):
        sch.compute_at(operand, tile.fill, unit_loops=True)
        sch.swizzle(operand)
    sch.reverse_compute_at("d", tile.lane)
    join_parts(sch, 4)
    sch.vectorize("d", sch.get_loops("d")[-1])
    sch.software_pipeline("T_matmul", tile.fill, 2, bulk=1)
    module = lowered(sch)
    assert transposes(module)
    require_right(sch, module)
    assert compile_module(module).architecture == "sm_90a"


def is_conditional(op: Operation) -> bool:
    """True within a branch."""
    around = op.parent_op()
    return around is not None and (isinstance(around, IfOp) or is_conditional(around))


def test_rows_that_are_no_rows_of_the_result_are_not_written() -> None:
    """The four threads of a row have it, or none of them."""
    sch = transposed(HALVES[0]._replace(padded=64), (100, 128, 256))
    module = lowered(sch)
    assert all(is_conditional(op) for op in transposes(module)) and transposes(module)
    require_right(sch, module)


def test_rows_that_end_in_a_tile_are_written_as_far_as_they_go() -> None:
    """All four threads exchange what they hold, and those beyond the end of a row store nothing."""
    sch = transposed(HALVES[0]._replace(padded=64), (100, 120, 256))
    module = lowered(sch)
    assert transposes(module)
    require_right(sch, module)


def test_rows_that_end_within_a_store_are_written_one_by_one() -> None:
    sch = transposed(HALVES[0]._replace(padded=64, bulk=0, transpose_b=True), (128, 124, 256))
    module = lowered(sch)
    assert not transposes(module)
    require_right(sch, module)


def test_results_of_four_bytes_are_not_transposed() -> None:
    assert not transposes(lowered(transposed(HALVES[0]._replace(result="float32"))))


@pytest.mark.slow(1.2)
def test_other_targets_write_elements_one_by_one() -> None:
    sch = transposed(HALVES[0]._replace(stages=2), (64, 64, 128), OPENCL)
    module = lowered(sch)
    assert not transposes(module)
    require_right(sch, module)
