"""Products of few rows on a GPU, as dot products of warps."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import build, lower_to_kernel
from loopwright.backends.cuda.compile import print_cuda
from loopwright.dialects import kernel
from loopwright.dialects.target import parse_target
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel

H200 = "cuda model=h200"


def dense(rows: int, columns: int, terms: int, dtype: str = "float32") -> ModuleOp:
    a, w = te.placeholder((rows, terms), name="a", dtype=dtype), te.placeholder((columns, terms), name="w", dtype=dtype)
    return te.create_module([a, w, topi.nn.dense(a, w)])


def with_epilogue() -> ModuleOp:
    a, w = te.placeholder((2, 256), name="a"), te.placeholder((30, 256), name="w")
    bias = te.placeholder((30,), name="bias")
    return te.create_module([a, w, bias, topi.nn.relu(topi.nn.bias_add(topi.nn.dense(a, w), bias, axis=1))])


def scores() -> ModuleOp:
    q, k = te.placeholder((3, 1, 128), name="q"), te.placeholder((3, 21, 128), name="k")
    return te.create_module([q, k, topi.batch_matmul(q, k, transpose_b=True)])


def squeezed(*shape: int, filters: int = 12, last: bool = True) -> ModuleOp:
    """A layer of one tap of images of one pixel, as of squeeze and excitation, with constant filters."""
    images, channels = shape
    data = te.placeholder((images, 1, 1, channels) if last else (images, channels, 1, 1), name="data")
    taps = (1, 1, channels, filters) if last else (filters, channels, 1, 1)
    kernel = te.placeholder(taps, name="kernel", constant=True)
    conv = topi.nn.conv2d_nhwc if last else topi.nn.conv2d_nchw
    return te.create_module([data, kernel, topi.sigmoid(conv(data, kernel, 1, 0))])


def matrix_by_vector(terms: int, columns: int) -> ModuleOp:
    a, w = te.placeholder((1, terms), name="a"), te.placeholder((terms, columns), name="w")
    return te.create_module([a, w, topi.matmul(a, w)])


def one_filter(channels: int, size: int) -> ModuleOp:
    data = te.placeholder((1, channels, size, size), name="data")
    kernel = te.placeholder((1, channels, 1, 1), name="kernel")
    return te.create_module([data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 0)])


def sketches_of(module: ModuleOp, target: str = H200) -> list[str]:
    return [sketch.name for sketch in lw.SearchTask(module, target=target).sketches]


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(dense(1, 37, 512), id="one row, columns left over"),
        pytest.param(dense(3, 10, 500), id="terms left over"),
        pytest.param(dense(4, 8, 201), id="rows of no whole vectors"),
        pytest.param(dense(1, 24, 1024, "float16"), id="halves"),
        pytest.param(dense(16, 20, 256), id="many rows"),
        pytest.param(with_epilogue(), id="bias and relu"),
        pytest.param(scores(), id="scores of one token"),
        pytest.param(squeezed(1, 264), id="one pixel, filters packed ahead"),
        pytest.param(squeezed(3, 132, last=False), id="one pixel, filters first"),
    ],
)
@pytest.mark.few(2)
def test_any_candidate_is_right(module: ModuleOp) -> None:
    task = lw.SearchTask(module, target=H200)
    (sketch, *_) = (s for s in task.sketches if s.name.endswith("_dots"))
    inputs, expected = task.reference.inputs, task.reference.expected
    rows = sketch.sample(np.random.default_rng(1), 3)
    for schedule in {sketch.schedule(row) for row in rows[sketch.legal(rows)]}:
        found = lw.interpret(task.schedule_module(schedule), *inputs)
        np.testing.assert_allclose(found, expected[0], **task.reference.tolerances[0]._asdict())


def test_weights_are_read_in_vectors_and_kept_out_of_shared_memory() -> None:
    for dtype, vectors in (("float32", "float4"), ("float16", "half_x8")):
        task = lw.SearchTask(dense(1, 4096, 4096, dtype), target=H200)
        (sketch,) = task.sketches
        source = build(task.schedule_module(task.known_schedule()), parse_target(H200)).source
        assert sketch.name == "T_dense_dots" and f"reinterpret_cast<const {vectors}*>(&w[" in source
        assert "w_shared" not in source


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_sums_of_several_columns_wait_for_other_warps_once(columns: int) -> None:
    """Each waited for by itself: 18 barriers behind 4 columns of two products and a norm."""
    task = lw.SearchTask(dense(1, 24, 1024, "float16"), target=H200)
    (sketch,) = task.sketches
    taken = {"threads": 128, "columns": columns, "steps": 1}
    row = [hole.choices.index(taken[hole.name.rsplit("_", 1)[1]]) for hole in sketch.holes]
    module = task.schedule_module(sketch.schedule(np.array(row)))
    lower_loop_to_kernel(module)
    assert sum(isinstance(op, kernel.BarrierOp) for op in module.walk()) == 2


@pytest.mark.parametrize("rows", [1, 6])
def test_a_thread_each_finishes_the_results_of_several_rows(rows: int) -> None:
    """Of one row a thread finishes all: it has them in registers."""
    a, w = te.placeholder((rows, 256), name="a"), te.placeholder((30, 256), name="w")
    task = lw.SearchTask(te.create_module([a, w, topi.nn.gelu(topi.nn.dense(a, w))]), target=H200)
    (sketch, *_) = (s for s in task.sketches if s.name.endswith("_dots"))
    numbers = {"threads": 32, "columns": 4, "steps": 1}
    row = np.array([hole.choices.index(numbers[hole.name.rsplit("_", 1)[1]]) for hole in sketch.holes])
    assert sketch.legal(row[None])[0]
    source = print_cuda(lower_to_kernel(task.schedule_module(sketch.schedule(row)), task.target)).source
    assert ("__shared__" in source) == (rows > 1)  # one warp has the sums of all its threads without
    found = lw.interpret(task.schedule_module(sketch.schedule(row)), *task.reference.inputs)
    np.testing.assert_allclose(found, task.reference.expected[0], rtol=1e-4, atol=1e-5)


def test_up_to_four_rows_nothing_else_is_tried() -> None:
    assert sketches_of(dense(4, 64, 256)) == ["T_dense_dots"]
    both = sketches_of(dense(16, 64, 256))
    assert "T_dense_dots" in both and len(both) > 1


@pytest.mark.parametrize("module", [dense(17, 64, 256), dense(1, 64, 100)])
def test_many_rows_and_few_terms_are_left_to_tiles(module: ModuleOp) -> None:
    assert not any(name.endswith("_dots") for name in sketches_of(module))


def test_a_weight_across_the_terms_is_left_to_tiles() -> None:
    a, w = te.placeholder((2, 256), name="a"), te.placeholder((256, 64), name="w")
    assert not any("dots" in name for name in sketches_of(te.create_module([a, w, topi.matmul(a, w)])))


@pytest.mark.parametrize("last", [True, False], ids=["channels last", "channels first"])
def test_constant_filters_of_one_pixel_are_packed_along_the_terms(last: bool) -> None:
    task = lw.SearchTask(squeezed(1, 480, last=last), target=H200)
    (sketch,) = task.sketches
    assert sketch.name == "compute_dots" and ("lw-transform-layout" in sketch.template) is last
    source = build(task.schedule_module(task.known_schedule()), parse_target(H200)).source
    assert source.count("reinterpret_cast<const float4*>") >= 2 and "kernel_shared" not in source


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(squeezed(1, 28, filters=672), id="few terms"),
        pytest.param(matrix_by_vector(96, 512), id="no constant"),
        pytest.param(one_filter(40, 9), id="one filter"),
    ],
)
@pytest.mark.few(2)
def test_a_matrix_that_is_read_once_is_not_copied(module: ModuleOp) -> None:
    """48 to 1152 channels of one pixel were tiles in shared memory, 96 to 512 parts of such, added up by a kernel."""
    task = lw.SearchTask(module, target=H200)
    (sketch,) = task.sketches
    assert sketch.name == "plain" or sketch.name.endswith("_rows")
    assert "lw-cache-read" not in sketch.template
    schedule = task.known_schedule()
    found = lw.interpret(task.schedule_module(schedule), *task.reference.inputs)
    np.testing.assert_allclose(found, task.reference.expected[0], **task.reference.tolerances[0]._asdict())


def test_windows_of_one_channel_are_tiled_or_in_registers() -> None:
    """Each element is read by several taps."""
    data, kernel = te.placeholder((16, 4098), name="data"), te.placeholder((16, 3), name="kernel")
    k = te.reduce_axis((0, 3), name="k")
    conv = te.compute((16, 4096), lambda c, x: te.sum(data[c, x + k] * kernel[c, k], axis=k), name="conv")
    assert sketches_of(te.create_module([data, kernel, conv])) == ["in_registers", "x"]


def test_other_devices_have_no_such_sketch() -> None:
    assert not any("dots" in name for name in sketches_of(dense(1, 64, 256), "opencl model=mali-g610"))
