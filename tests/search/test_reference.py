"""What counts as right: rounding errors of long sums and of transforms do, a missing term does not."""

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.te import run_te
from loopwright.search.measure.buffers import Buffers
from loopwright.search.measure.reference import tolerance
from loopwright.search.measure.tolerance import Tolerance


def winograd(channels: int = 48) -> list[te.Tensor]:
    data, kernel = (
        te.placeholder((1, channels, 12, 12), name="data"),
        te.placeholder((8, channels, 3, 3), name="kernel"),
    )
    return [data, kernel, topi.nn.conv2d_winograd_nchw(data, kernel, 1, tile_size=4)]


def test_errors_of_transforms_are_allowed_and_missing_terms_are_not() -> None:
    task = lw.SearchTask(winograd, target="llvm cores=1")
    reference = task.reference
    assert reference.tolerances[0].atol > 4 * tolerance(task.compute_dag.func.body.block.ops).atol
    single = run_te(task.module, list(reference.inputs), "native")[0]
    bound = reference.tolerances[0].bounds(reference.expected[0])
    assert (np.abs(single - reference.expected[0]) <= bound).all()
    short = [reference.inputs[0].copy(), reference.inputs[1].copy()]
    short[1][:, -1, 1, 1] = 0  # one of 432 products is left out
    wrong = run_te(task.module, short)[0]
    assert (np.abs(wrong - reference.expected[0]) > bound).mean() > 0.9


@pytest.mark.parametrize("extent", [64, 4096])
def test_sums_are_bounded_by_their_length(extent: int) -> None:
    def row_sums() -> list[te.Tensor]:
        data = te.placeholder((4, extent), name="data")
        return [data, topi.sum(data, axis=1)]

    reference = lw.SearchTask(row_sums, target="llvm cores=1").reference
    assert reference.tolerances[0].atol == 4 * extent * 2.0**-23


def test_each_output_has_the_tolerance_of_what_it_is_computed_from() -> None:
    def tensors() -> list[te.Tensor]:
        data, half = te.placeholder((4, 4096), name="data"), te.placeholder((64, 64), "float16", name="half")
        sums = topi.sum(data, axis=1)
        return [data, half, topi.exp(data), sums, topi.sqrt(topi.abs(sums)), topi.matmul(half, half)]

    exact, long, longer, narrow = lw.SearchTask(tensors, target="llvm cores=1").reference.tolerances
    assert exact == (64 * 2.0**-23, 64 * 2.0**-23)
    assert long == longer == (4 * 4096 * 2.0**-23, 1024 * 2.0**-23)
    assert narrow.atol == 0.05 and narrow.rtol == 0.05


def test_an_output_is_checked_within_its_own_tolerance(tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 100.0)):
        np.save(tmp_path / f"{name}.npy", np.full(3, value, np.float32))
    tolerances = [Tolerance(1e-6), Tolerance(0.5)]
    buffers = Buffers([], [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")], tolerances)
    for output, value in zip(buffers.outputs, (1.0, 100.4), strict=True):
        output[...] = value
    assert buffers.wrong() is None
    buffers.outputs[0][1] += 0.4
    assert str(buffers.wrong()).startswith("output 0: 1 of 3 elements differ by more than atol=1e-06, rtol=0; ")


def product(k: int, dtype: str, m: int = 24, n: int = 40) -> lw.SearchTask:
    def tensors() -> list[te.Tensor]:
        a, b = te.placeholder((m, k), dtype, name="a"), te.placeholder((k, n), dtype, name="b")
        return [a, b, topi.matmul(a, b)]

    return lw.SearchTask(tensors, target="llvm cores=1")


def wrong_share(task: lw.SearchTask, output: object) -> float:
    """The share of elements that do not count as right."""
    reference = task.reference
    right = np.asarray(reference.expected[0], np.float64)
    distance = np.abs(np.asarray(output, np.float64) - right)
    return float((distance > reference.tolerances[0].bounds(right)).mean())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("k", [16, 64, 256, 512, 1024, 2048, 4096])
@pytest.mark.few(1)
def test_sums_kept_in_16_bits_are_right(k: int, dtype: str) -> None:
    task = product(k, dtype)
    schedules = [task.default_schedule, *(s.schedule(s.default) for s in task.sketches[1:2])]
    for schedule in schedules:
        assert wrong_share(task, task.build(schedule)(*task.reference.inputs)) == 0, schedule


def test_a_missing_term_of_512_in_half_precision_is_wrong() -> None:
    task = product(512, "float16")
    a, b = task.reference.inputs
    short = a.copy()
    short[:, 77] = 0
    assert wrong_share(task, run_te(task.module, [short, b])[0]) > 0.1
    again = a.copy()
    again[:, 77] = a[:, 78]  # one term twice, another one not at all
    assert wrong_share(task, run_te(task.module, [again, b])[0]) > 0.1


@pytest.mark.parametrize(("dtype", "k"), [("float16", 512), ("float16", 4096), ("bfloat16", 512), ("bfloat16", 2048)])
def test_swapped_and_missing_results_are_wrong_in_16_bits(dtype: str, k: int) -> None:
    task = product(k, dtype)
    right = np.asarray(task.reference.expected[0], np.float64)
    assert wrong_share(task, right[::-1]) > 0.5
    assert wrong_share(task, np.zeros_like(right)) > 0.25
    a, b = task.reference.inputs
    half = a.copy()
    half[:, ::2] = 0
    assert wrong_share(task, run_te(task.module, [half, b])[0]) > 0.25


@pytest.mark.slow(1.2)
def test_sums_of_sums_in_16_bits_are_right() -> None:
    def attention() -> list[te.Tensor]:
        q, k, v = (te.placeholder((2, 32, 64), "bfloat16", name=name) for name in "qkv")
        return [q, k, v, topi.batch_matmul(topi.nn.softmax(topi.batch_matmul(q, k, transpose_b=True), -1), v)]

    task = lw.SearchTask(attention, target="llvm cores=1")
    assert wrong_share(task, task.build()(*task.reference.inputs)) == 0
    right = np.asarray(task.reference.expected[0], np.float64)
    assert wrong_share(task, right[:, :, ::-1]) > 0.2


def test_what_is_computed_from_sums_in_16_bits_is_right() -> None:
    def doubled() -> list[te.Tensor]:
        a, b = te.placeholder((12, 61, 37), "bfloat16", "a"), te.placeholder((12, 37, 65), "bfloat16", "b")
        weighed = topi.nn.silu(topi.batch_matmul(a, b))
        return [a, b, topi.tanh(topi.add(weighed, weighed))]

    task = lw.SearchTask(doubled, target="llvm cores=1")
    assert wrong_share(task, run_te(task.module, list(task.reference.inputs), "native")[0]) == 0
    assert wrong_share(task, np.asarray(task.reference.expected[0], np.float64)[::-1]) > 0.5


def test_truth_values_of_sums_in_16_bits_are_held_to_what_is_right() -> None:
    """Few are another way in 16 bits, by which all that is not so would be off by no more than is allowed."""
    a, b = te.placeholder((16, 64), "bfloat16", "a"), te.placeholder((64, 32), "bfloat16", "b")
    task = lw.SearchTask([a, b, topi.greater(topi.matmul(a, b), 0.5)], target="llvm cores=1")
    (right,) = task.reference.expected
    (rounded,) = run_te(task.module, list(task.reference.inputs), "native")
    assert 0 < np.count_nonzero(rounded != right) < right.size // 50
    assert wrong_share(task, right) == 0
    assert wrong_share(task, ~right) == 1


def test_a_product_in_half_precision_is_tuned(quick_measuring: None) -> None:
    task = product(512, "float16")
    result = task.tune(lw.TuningOptions(num_measure_trials=3, progress=False, final_laps=1))
    assert not result.state.errors


def test_sums_of_sums_have_the_terms_of_all() -> None:
    """Parts of a cumulative sum of 4,000 are of 16 terms each; what a product adds up counts for itself."""
    x = te.placeholder((4000, 5), name="x")
    summed = lw.SearchTask([x, topi.cumsum(x, 0)], target="llvm").reference.tolerances[0]
    assert summed.atol >= 4 * 4000 * 2.0**-23
    a, b = te.placeholder((8, 300), name="a"), te.placeholder((300, 8), name="b")
    pooled = lw.SearchTask([a, b, topi.sum(topi.matmul(a, b), 1)], target="llvm").reference.tolerances[0]
    assert pooled.atol == 4 * 300 * 2.0**-23
