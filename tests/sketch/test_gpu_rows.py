"""Reductions and chains of them over rows on GPUs: what fits in shared memory, how many blocks, how many kernels."""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from gpu_programs import check_interpreted, check_on_opencl
from gpu_rows import H200, SMALL, launches, normalised, schedules, softmax, task_of, unary
from sketch_rows import require_features_of_ir

from loopwright import te, topi
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.cuda import device as cuda_device
from loopwright.search.rules import gpu_split_reduction

# -- long rows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "longest"),
    [("cuda model=h200", 57800), ("cuda model=gtx1080ti", 32768), ("opencl model=mali-t860", 8192)],
)
@pytest.mark.parametrize("longer", [0, 2000, 60000])
@pytest.mark.few(5)
def test_rows_of_any_length_are_within_shared_memory(target: str, longest: int, longer: int) -> None:
    """Or in registers, 32 elements of each thread, where shared memory is less than that; of rows for most blocks."""
    task = task_of(softmax(67, longest + longer), target)
    for schedule in schedules(task):
        assert len(launches(task, schedule)) == 1
    assert ('lw-compute-inline{block="T_softmax_exp"}' in task.default_schedule) == (longer > 0)


def test_long_rows_compile_for_cuda() -> None:
    task = task_of(softmax(67, 60001), "cuda model=h200")
    artifact = Artifact.from_bytes(cuda_device.build(str(task.module), task.default_schedule), "cuda")
    (launch,) = artifact.kernel.launches
    assert launch.static_shared_bytes + launch.dynamic_shared_bytes < 4096


@pytest.mark.parametrize("extent", [1999, 2047, 3001])
@pytest.mark.few(1)
def test_long_rows_are_right(extent: int) -> None:
    task = task_of(softmax(5, extent), SMALL)
    check_on_opencl(task.module, task.reference, schedules(task))


def test_long_rows_are_right_where_the_rest_of_a_chain_is_inside() -> None:
    data = te.placeholder((5, 3001), name="data")
    weights = topi.nn.softmax(data)
    task = task_of([data, topi.sqrt(topi.nn.softmax(topi.exp(weights)))], SMALL)
    check_on_opencl(task.module, task.reference, schedules(task))


# -- few results ----------------------------------------------------------------------------------------------------


def dot(n: int) -> list[te.Tensor]:
    a, b, k = te.placeholder((n,), name="a"), te.placeholder((n,), name="b"), te.reduce_axis((0, n), "k")
    return [a, b, te.compute((), lambda: te.sum(a[k] * b[k], axis=k), name="dot")]


MANY = "opencl cores=132 max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=8"
"""As many multiprocessors as an H200 has: the same schedules, run on a CPU."""
FEW_RESULTS = {
    "sum_all": lambda: unary(topi.sum, 4096, 4096),
    "sum_columns": lambda: unary(lambda x: topi.sum(x, 0), 65536, 64),
    "argmax": lambda: unary(lambda x: topi.argmax(x, 1), 8, 1 << 20),
    "argmax_all": lambda: unary(lambda x: topi.argmax(x, 0), 1 << 22),
    "dot": lambda: dot(1 << 22),
    "sum_rows": lambda: unary(lambda x: topi.sum(x, 1), 4, 1 << 20),
    "mean_rows": lambda: unary(lambda x: topi.mean(x, 1), 4, 1 << 20),
    "softmax": lambda: softmax(4, 1 << 20),
    "norm_of_batch": lambda: unary(lambda x: topi.mean(x, (0, 2, 3)), 64, 3, 224, 224),
}
ODD = {
    "sum_all": lambda: unary(topi.sum, 517, 521),
    "sum_columns": lambda: unary(lambda x: topi.sum(x, 0), 4129, 67),
    "sum_columns_more": lambda: unary(lambda x: topi.sum(x, (0, 1)), 67, 79, 51),
    "argmax": lambda: unary(lambda x: topi.argmax(x, 1), 3, 90001),
    "argmin_columns": lambda: unary(lambda x: topi.argmin(x, 0), 8209, 33),
    "argmax_all": lambda: unary(lambda x: topi.argmax(x, 0), 262147),
    "dot": lambda: dot(262153),
    "mean_rows": lambda: unary(lambda x: topi.mean(x, 1), 3, 90011),
    "softmax": lambda: softmax(2, 131101),
    "mean_of_inner": lambda: unary(lambda x: topi.mean(x, (0, 2, 3)), 7, 3, 113, 117),
    "max_of_ends": lambda: unary(lambda x: topi.max(x, (0, 2)), 1031, 3, 97),
}


@pytest.mark.parametrize("name", FEW_RESULTS)
@pytest.mark.few(5)
def test_long_reductions_go_to_many_blocks(name: str) -> None:
    """A chosen schedule has a block for each multiprocessor at least, a drawn one may have half as many."""
    task = task_of(FEW_RESULTS[name](), H200)
    for least, schedule in ((132, task.default_schedule), *((64, drawn) for drawn in schedules(task))):
        sizes = [np.prod(grid) for grid, _ in launches(task, schedule)]
        assert max(sizes) >= least
        assert len(sizes) <= {"softmax": 3, "argmax_all": 3}.get(name, 2)


@pytest.mark.parametrize(
    ("shape", "axis", "parts"),
    [
        ((10608, 19), 0, True),
        ((2500, 19), 0, False),
        ((5000, 230), 0, True),
        ((3, 60000), 1, True),
        ((3, 25000), 1, False),
        ((60, 6000), 1, False),
    ],
)
def test_parts_are_taken_where_the_terms_of_a_result_are_many(shape: tuple[int, int], axis: int, parts: bool) -> None:
    task = task_of(unary(lambda x: topi.mean(x, axis), *shape), H200)
    assert [sketch.name.endswith("_parts") for sketch in task.sketches] == [parts]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.few(1)
def test_parts_on_many_blocks_are_right(name: str) -> None:
    task = task_of(ODD[name](), MANY)
    assert all("_parts" in sketch.name for sketch in task.sketches)
    check_on_opencl(task.module, task.reference, schedules(task, count=1))


@pytest.mark.parametrize("target", ["cuda model=gtx1080ti", "opencl model=mali-t860"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_parts_are_within_the_limits_of_small_devices(target: str) -> None:
    for tensors in FEW_RESULTS.values():
        task = task_of(tensors(), target)
        for schedule in schedules(task, count=1):
            assert launches(task, schedule)


@pytest.mark.parametrize("shape", [(1,), (64,), (1, 5000), (5000,)])
@pytest.mark.few(1)
def test_a_single_argmax_is_right(shape: tuple[int, ...]) -> None:
    for kept in (False, True):
        task = task_of(unary(partial(topi.argmax, axis=len(shape) - 1, keepdims=kept), *shape), MANY)
        check_on_opencl(task.module, task.reference, schedules(task, count=1))


# -- one kernel -----------------------------------------------------------------------------------------------------


def variance(*shape: int) -> list[te.Tensor]:
    data = te.placeholder(shape, name="data")
    centred = data - topi.mean(data, -1, True)
    return [data, topi.mean(centred * centred, -1)]


FUSED = {
    "instance_norm": (lambda: normalised((2, 3), 1, 64, 56, 56), lambda: normalised((2, 3), 2, 5, 13, 11)),
    "batch_norm": (lambda: normalised((0, 2, 3), 8, 256, 14, 14), lambda: normalised((0, 2, 3), 3, 7, 5, 9)),
    "norm_nhwc": (lambda: normalised((1, 2), 4, 28, 28, 96), lambda: normalised((1, 2), 2, 7, 5, 35)),
    "softmax_inner": (lambda: softmax(8, 128, 196, axis=1), lambda: softmax(3, 37, 45, axis=1)),
    "softmax_first": (lambda: softmax(300, 100, axis=0), lambda: softmax(37, 19, axis=0)),
    "softmax_1d": (lambda: softmax(40000), lambda: softmax(2003)),
    "softmax_short": (lambda: softmax(100000, 7), lambda: softmax(5003, 7)),
    "softmax_short_4d": (lambda: softmax(64, 12, 50, 20), lambda: softmax(17, 3, 101, 21)),
    "variance": (lambda: variance(1024, 1024), lambda: variance(13, 131)),
    "global_pool": (
        lambda: unary(lambda x: topi.mean(x, (2, 3)), 1, 512, 7, 7),
        lambda: unary(lambda x: topi.mean(x, (2, 3)), 3, 17, 7, 7),
    ),
    "global_pool_nhwc": (
        lambda: unary(lambda x: topi.mean(x, (1, 2)), 1, 7, 7, 512),
        lambda: unary(lambda x: topi.mean(x, (1, 2)), 3, 7, 7, 45),
    ),
    "argmax_rows": (
        lambda: unary(lambda x: topi.argmax(x, 1), 512, 1000),
        lambda: unary(lambda x: topi.argmax(x, 1), 33, 1001),
    ),
}


# -- several rows a block -------------------------------------------------------------------------------------------

SHARED_BLOCKS: dict[str, Callable[[], list[te.Tensor]]] = {
    "softmax": lambda: softmax(301, 37),
    "log_softmax": lambda: unary(topi.nn.log_softmax, 277, 150),
    "layer_norm": lambda: unary(topi.nn.layer_norm, 303, 96),
    "long": lambda: unary(topi.nn.rms_norm, 265, 600),
    "pool": lambda: unary(topi.nn.global_avg_pool, 3, 95, 7, 7),
    "scaled": lambda: unary(lambda x: topi.multiply(x, topi.rsqrt(topi.sum(x * x, -1, True))), 281, 45),
}
FEW_CORES = "cuda model=h200 cores=32"


@pytest.mark.parametrize("name", [name for name in SHARED_BLOCKS if name != "long"])
def test_short_rows_share_blocks_of_threads(name: str) -> None:
    """A block of a warp for each of 65536 rows of 49 elements took 40.9 us on an H200, for each eight of them 6.5."""
    tensors = SHARED_BLOCKS[name]()
    task = task_of(tensors, FEW_CORES)
    rows = 285 if name == "pool" else tensors[0].shape[0]
    for sketch in task.sketches:
        ((grid, block),) = launches(task, sketch.schedule(sketch.default))
        assert np.prod(grid) <= -(-rows // 8) and block[0] <= 32 and block[1] == 8


@pytest.mark.parametrize("name", SHARED_BLOCKS)
@pytest.mark.few(3)
def test_rows_that_share_a_block_are_as_many_as_its_threads_allow(name: str) -> None:
    """Two of a warp are what 64 threads take, as a block of a device had them; the rule was left out with a warning."""
    task = task_of(SHARED_BLOCKS[name](), f"{FEW_CORES} max_threads_per_block=64")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sketches = task.sketches
    for sketch in sketches:
        ((_, block),) = launches(task, sketch.schedule(sketch.default))
        assert 32 <= np.prod(block) <= 64


@pytest.mark.parametrize("name", SHARED_BLOCKS)
@pytest.mark.few(2)
def test_rows_that_share_a_block_are_right(name: str) -> None:
    task = task_of(SHARED_BLOCKS[name](), FEW_CORES)
    check_interpreted(task.module, task.reference, schedules(task, seed=1, count=2))
    for sketch in task.sketches:
        drawn = sketch.sample(np.random.default_rng(2), 3)
        require_features_of_ir(task.module, task.target, sketch, drawn)


def test_blocks_of_several_rows_have_whole_warps() -> None:
    (sketch,) = task_of(softmax(3000, 50), H200).sketches
    threads, rows = (hole.choices for hole in sketch.holes)
    assert set(threads) == {8, 16, 32} and set(rows) == {8, 16}
    found = sketch.columns(sketch.sample(np.random.default_rng(0), 50))
    threads_of_block = np.prod(list(found.values()), axis=0)
    assert (threads_of_block % 32 == 0).all() and (threads_of_block >= 32).all()


@pytest.mark.parametrize("target", ["opencl model=mali-t860", "cuda model=h200"])
def test_a_row_has_a_block_where_rows_are_few_or_warps_cannot_join(target: str) -> None:
    task = task_of(softmax(90 if "cuda" in target else 9000, 100), target)
    assert all("_block_rows" not in hole.name for sketch in task.sketches for hole in sketch.holes)


# -- through a reshape ----------------------------------------------------------------------------------------------


def group_norm(groups: int, c: int, size: int) -> list[te.Tensor]:
    data = te.placeholder((1, c, size, size), name="data")
    rows = topi.reshape(data, (1, groups, c // groups * size * size))
    return [data, topi.nn.relu(topi.reshape(topi.nn.layer_norm(rows), (1, c, size, size)))]


def test_reductions_through_a_reshape_are_shared_by_threads() -> None:
    """A thread for each of 32 groups of 40960 elements took 120 times as long as PyTorch on an H200."""
    task = task_of(group_norm(32, 320, 64), H200)
    for schedule in schedules(task):
        threads = [int(np.prod(grid) * np.prod(block)) for grid, block in launches(task, schedule)]
        assert sum(n >= 32 * 1024 for n in threads) >= 3  # both reductions' parts, and the elements


@pytest.mark.parametrize("shape", [(4, 8, 12), (8, 8, 30), (2, 6, 37)])
@pytest.mark.few(2)
def test_reductions_through_a_reshape_are_right(shape: tuple[int, int, int]) -> None:
    task = task_of(group_norm(*shape), H200)
    check_interpreted(task.module, task.reference, schedules(task, count=1))


LEAST_THREADS = {"softmax_1d": 1024, "global_pool_nhwc": 4 * 512}
"""The pool's 512 results have four threads each: 1.72 us on an H200, where what the estimates choose takes 1.68."""


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.few(2)
def test_chains_are_one_kernel(name: str) -> None:
    task = task_of(FUSED[name][0](), H200)
    for schedule in schedules(task):
        assert len(launches(task, schedule)) == 1
    ((grid, block),) = launches(task, task.default_schedule)
    assert np.prod(grid) * np.prod(block) >= LEAST_THREADS.get(name, 4096)


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.few(1)
def test_chains_in_one_kernel_are_right(name: str) -> None:
    task = task_of(FUSED[name][1](), "opencl cores=2 max_threads_per_block=256 max_shared_bytes=32768 max_vthreads=8")
    assert task.sketches[0].name.endswith("_rows")
    check_on_opencl(task.module, task.reference, schedules(task, count=2))


@pytest.mark.parametrize("name", ["softmax_inner", "softmax_short", "instance_norm", "argmax_rows"])
@pytest.mark.few(2)
def test_chains_in_one_kernel_compile_for_cuda(name: str) -> None:
    task = task_of(FUSED[name][1](), H200)
    artifact = Artifact.from_bytes(cuda_device.build(str(task.module), task.default_schedule), "cuda")
    assert len(artifact.kernel.launches) == 1


@pytest.mark.parametrize("target", [SMALL, H200])
@pytest.mark.parametrize("name", FUSED)
@pytest.mark.few(2)
def test_chains_in_one_kernel_are_right_when_interpreted(name: str, target: str) -> None:
    task = task_of(FUSED[name][1](), target)
    check_interpreted(task.module, task.reference, schedules(task, seed=1, count=1))


@pytest.mark.parametrize("name", ["argmax", "sum_columns", "max_of_ends", "dot"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_parts_on_many_blocks_are_right_when_interpreted(name: str) -> None:
    task = task_of(ODD[name](), H200)
    check_interpreted(task.module, task.reference, schedules(task, count=1))


@pytest.mark.parametrize("shape", [(1, 1999), (3, 600), (2003,)])
@pytest.mark.few(1)
def test_chains_in_parts_are_right_when_interpreted(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_split_reduction, "FOLDED_KERNEL_S", 0.0)
    task = task_of(softmax(*shape), H200)
    assert len(launches(task, task.default_schedule)) == 3
    check_interpreted(task.module, task.reference, schedules(task, count=2))


def scaled_norm(groups: int, channels: int, pixels: int) -> list[te.Tensor]:
    """Group normalisation as networks have it: a scale of each channel, and an activation."""
    data, gamma = (
        te.placeholder((1, groups, channels, pixels), name="data"),
        te.placeholder((groups, channels, 1), name="g"),
    )
    scaled = topi.multiply(topi.nn.layer_norm(data, axis=(2, 3)), gamma)
    return [data, gamma, topi.multiply(scaled, topi.sigmoid(scaled))]


def log_of_sum(*shape: int) -> list[te.Tensor]:
    """A chain that ends in a reduction, with a block that takes its results one by one."""
    largest = partial(topi.max, axis=-1, keepdims=True)
    return unary(lambda x: topi.log(topi.sum(topi.exp(x - largest(x)), -1)), *shape)


def three_reductions(*shape: int) -> list[te.Tensor]:
    """The last block reads all of them, and the third the two before."""
    data = te.placeholder(shape, name="data")
    largest = topi.max(data, -1, True)
    total = topi.sum(topi.exp(data - largest), -1, True)
    squares = topi.sum((data - largest) * (data - largest) * total, -1, True)
    return [data, data * squares + total + largest]


CHAINS = {
    "group_norm": (lambda: scaled_norm(3, 5, 201), 3),
    "group_norm_of_one": (lambda: scaled_norm(1, 2, 997), 3),
    "log_of_sum": (lambda: log_of_sum(2, 1301), 3),
    "three_reductions": (lambda: three_reductions(3, 701), 4),
    "rms_norm": (lambda: unary(topi.nn.rms_norm, 2, 1201), 2),
}
"""Chains of a few long rows, and the kernels that they are in parts."""


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.few(3)
def test_parts_are_joined_by_those_who_read_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_split_reduction, "FOLDED_KERNEL_S", 0.0)
    make, kernels = CHAINS[name]
    task = task_of(make(), H200)
    assert len(launches(task, task.default_schedule)) == kernels
    check_interpreted(task.module, task.reference, schedules(task, count=1))


def test_long_parts_of_rows_are_written_in_vectors() -> None:
    task = task_of(scaled_norm(2, 4, 8192), "cuda model=h200 cores=8")
    assert "lw-vectorize" in task.default_schedule and len(launches(task, task.default_schedule)) == 3
    check_interpreted(task.module, task.reference, [task.default_schedule])


@pytest.mark.parametrize("name", [*FUSED, *ODD])
@pytest.mark.few(3)
def test_matrix_features_equal_those_of_the_ir(name: str) -> None:
    task = task_of(FUSED[name][1]() if name in FUSED else ODD[name](), H200)
    for sketch in task.sketches:
        rows = sketch.sample(np.random.default_rng(2), 2)
        require_features_of_ir(task.module, task.target, sketch, rows)


def test_rows_of_some_length_are_as_before() -> None:
    for shape in ((512, 1000), (1, 1000), (8192, 8192), (3, 5, 64)):
        assert [sketch.name for sketch in task_of(softmax(*shape), H200).sketches] == ["plain"]


def test_windows_of_an_average_pool_are_summed_by_a_thread_each() -> None:
    """Short contiguous windows were joined across 32 threads, one result after the other: 13 times as slow."""
    data = te.placeholder((1, 8, 12, 12), name="data")
    task = task_of([data, topi.nn.avg_pool(data, 3, 1, 1, count_include_pad=True)], H200)
    assert [sketch.name for sketch in task.sketches] == ["plain"]
    assert "lw-rfactor" not in task.default_schedule
    check_interpreted(task.module, task.reference, schedules(task, count=1))


def pooled(shape: tuple[int, ...], window: int | None = None, layout: str = "NCHW") -> list[te.Tensor]:
    """An average pool: global, or of windows side by side."""
    if window is None:
        return unary(partial(topi.nn.global_avg_pool, layout=layout), *shape)
    return unary(lambda x: topi.nn.avg_pool(x, window, window, 0), *shape)


@pytest.mark.parametrize(
    ("tensors", "terms_of_thread"),
    [
        (pooled((1, 240, 28, 28)), 8),
        (pooled((1, 2048, 7, 7)), 2),
        (pooled((8, 64, 112, 112)), 64),
        (pooled((1, 320, 7, 7, 7), layout="NCDHW"), 6),
        (pooled((1, 24, 56, 56), 28), 56),  # windows, but too few of them for a thread each
        (unary(lambda x: topi.nn.adaptive_avg_pool(x, 1), 1, 240, 28, 28), 8),
        (unary(topi.nn.global_max_pool, 1, 240, 28, 28), 28),
    ],
)
def test_results_of_many_terms_are_shared_by_threads(tensors: list[te.Tensor], terms_of_thread: int) -> None:
    """A pool that leaves one window a channel was a thread for each channel: 28 times as slow on 240x28x28."""
    task = task_of(tensors, H200)
    results, terms = np.prod(tensors[-1].shape), np.prod(tensors[0].shape) / np.prod(tensors[-1].shape)
    for schedule in (sketch.schedule(sketch.default) for sketch in task.sketches):
        threads = max(np.prod(grid) * np.prod(block) for grid, block in launches(task, schedule))
        assert results * terms <= threads * terms_of_thread


@pytest.mark.parametrize("shape", [(1, 5, 9, 11), (3, 4, 13, 7), (1, 2, 1, 70), (2, 3, 3, 3)])
def test_pools_of_one_window_are_right(shape: tuple[int, ...]) -> None:
    task = task_of(pooled(shape), H200)
    check_interpreted(task.module, task.reference, schedules(task, count=1))


@pytest.mark.parametrize("target", [SMALL, "cuda model=h200"])
@pytest.mark.parametrize("shape", [(6, 9, 13), (16, 27, 13)])
@pytest.mark.few(2)
def test_rows_that_a_reshape_reads_elsewhere_are_shared(target: str, shape: tuple[int, ...]) -> None:
    """The thread of column 17 reads element 4 of a row of 13, which another one has computed."""
    data, weights = softmax(*shape)
    task = task_of([data, topi.reshape(weights, (shape[0], shape[1] * shape[2]))], target)
    check_interpreted(task.module, task.reference, schedules(task))


@pytest.mark.parametrize("target", ["cuda model=h200", SMALL])
@pytest.mark.parametrize("shape", [(3, 6, 18), (2, 1, 40), (4, 70, 33)])
@pytest.mark.few(3)
def test_columns_of_rows_of_several_dimensions_are_summed_of_what_all_threads_see(
    target: str, shape: tuple[int, ...]
) -> None:
    """Threads have elements along the last dimension: sums along the one before take those of others."""
    data, most, more = (te.placeholder(s, name=n) for s, n in ((shape, "x"), ((shape[0], shape[2]), "m"), (shape, "y")))
    powers = topi.exp(topi.subtract(data, topi.expand_dims(most, 1)))
    total = topi.add(topi.log(topi.sum(powers, 1)), most)
    for tensors in ([data, most, total], [data, most, more, topi.multiply(more, topi.expand_dims(total, 1))]):
        task = task_of(tensors, target)
        check_interpreted(task.module, task.reference, schedules(task))
