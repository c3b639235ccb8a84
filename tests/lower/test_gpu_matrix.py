"""Matrix instructions: the nest that is one is right without it, and is one instruction in CUDA C."""

import numpy as np
import pytest
from gpu_programs import compile_cuda, run_opencl
from lowered_runs import exact_inputs
from tensor_programs import CUDA, FORMS, OPENCL, Form, scheduled
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from loopwright.backends.cuda.compile import print_cuda
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.intrinsics import find_intrinsic
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel

SHAPE = (64, 32, 96)


def lowered(form: Form, target: str = CUDA, shape: tuple[int, int, int] = SHAPE) -> ModuleOp:
    module = scheduled(form, shape, target).module.clone()
    lower_loop_to_kernel(module)
    module.verify()
    return module


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.intrinsic)
@pytest.mark.few(1)
def test_without_the_instruction_the_nest_is_right(form: Form) -> None:
    """On OpenCL it is loops; swizzled buffers, and registers by digits, are as on CUDA."""
    sch = scheduled(form, SHAPE, OPENCL)
    inputs = exact_inputs(sch.workload)
    module = sch.module.clone()
    lower_loop_to_kernel(module)
    for got, wanted in zip(run_opencl(module, *inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-2)


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.intrinsic)
@pytest.mark.few(4)
def test_the_instruction_is_right(form: Form) -> None:
    """Copies are invisible until they are waited for, and fragments are those that the lanes of a warp name."""
    sch = scheduled(form, SHAPE)
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(lowered(form), inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-2)


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.intrinsic)
@pytest.mark.few(4)
def test_fragments_are_loaded_once(form: Form) -> None:
    module = lowered(form)
    products = [op for op in module.walk() if isinstance(op, kernel.MatrixProductOp)]
    loads = [op for op in module.walk() if isinstance(op, kernel.FragmentLoadOp)]
    rows, columns = form.tiles
    assert len(products) == rows * columns * form.k_steps
    assert len(loads) == (rows + columns) * form.k_steps
    assert {op.turned is not None for op in loads} == {form.transpose_a, not form.transpose_b}


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.intrinsic)
@pytest.mark.few(4)
def test_a_thread_has_as_many_registers_as_sums(form: Form) -> None:
    """Not as many as from the first of its sums to the last: those of other lanes lie in between."""
    found = find_intrinsic(form.intrinsic)
    assert found is not None
    (sums,) = [op for op in lowered(form).walk() if isinstance(op, kernel.AllocOp) and op.label.data == "T_matmul"]
    assert sums.buffer.type.get_shape() == (found.m * found.n // 32 * form.tiles[0] * form.tiles[1],)


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.intrinsic)
@pytest.mark.few(3)
def test_cuda_compiles_it_without_spills(form: Form) -> None:
    module = lowered(form)
    source = print_cuda(module).source
    assert f"ldmatrix.sync.aligned.m8n8.x4{'.trans' if form.transpose_a else ''}.shared.b16" in source
    assert "mma.sync.aligned.m16n8k" in source
    compile_cuda(module, (80, 90))


def test_kernels_parse_back() -> None:
    from gpu_programs import parse

    text = str(lowered(FORMS[0]))
    assert str(parse(text)) == text


def test_rows_that_start_between_16_bytes_are_refused() -> None:
    sch = scheduled(FORMS[0]._replace(span=0, stages=1), SHAPE)
    sch.storage_align("a_shared", axis=0, factor=8, offset=4)
    with pytest.raises(PassFailedException, match=r"rows of 'a_shared' start at no multiple of 16 bytes"):
        lower_loop_to_kernel(sch.module.clone())


def test_a_nest_that_later_steps_change_is_refused() -> None:
    sch = scheduled(FORMS[0]._replace(stages=1), SHAPE)
    sch.reorder("T_matmul", "j4", "k2", "i3")
    with pytest.raises(PassFailedException, match=r"loop 'j4' is no mma|loop '.*' is no mma.m16n8k16.f16: "):
        lower_loop_to_kernel(sch.module.clone())
