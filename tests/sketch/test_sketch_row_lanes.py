"""Products with lanes along their rows: the shorter of two factors is packed, results are turned in registers."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch.sketch import Sketch

CPU = "llvm cores=1 vector_bytes=32 vector_registers=16"
XEON = "llvm model=emeraldrapids cores=1 vector_bytes=64 vector_registers=32 l1_bytes=49152 l2_bytes=2097152"
Workload = Callable[[], list[te.Tensor]]


def dense(rows: int, terms: int, columns: int, dtype: str = "float32", constant: bool = False) -> list[te.Tensor]:
    data = te.placeholder((rows, terms), dtype, name="data")
    weight = te.placeholder((columns, terms), dtype, name="weight", constant=constant)
    bias = te.placeholder((columns,), dtype, name="bias")
    return [data, weight, bias, topi.nn.relu(topi.dense(data, weight, bias))]


def scores(heads: int, rows: int, columns: int) -> list[te.Tensor]:
    q, k = te.placeholder((heads, rows, 21), name="q"), te.placeholder((heads, columns, 21), name="k")
    return [q, k, topi.nn.batch_matmul(q, k, transpose_b=True)]


FITTING: dict[str, Workload] = {
    "odd": lambda: dense(37, 41, 53),
    "doubles": lambda: dense(15, 33, 30, "float64"),
    "one head": lambda: scores(1, 23, 45),
    "heads": lambda: scores(3, 15, 31),
    "many columns": lambda: dense(16, 20, 300),
}


def row_lanes(workload: Workload, target: str = CPU) -> tuple[lw.SearchTask, list[Sketch]]:
    task = lw.SearchTask(workload, target=target)
    return task, [sketch for sketch in task.sketches if sketch.name == "i_root"]


@pytest.mark.parametrize("target", [CPU, "llvm cores=2"])
@pytest.mark.parametrize("name", FITTING)
@pytest.mark.few(4)
def test_they_are_right(name: str, target: str) -> None:
    task, (sketch,) = row_lanes(FITTING[name], target)
    for row in [sketch.default, *sketch.sample(np.random.default_rng(0), 2)]:
        task.build(sketch.schedule(row), check=True)


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        (lambda: dense(64, 64, 48), "rows are more than columns"),
        (lambda: dense(8, 64, 48), "dot products are as fast"),
        (lambda: dense(17, 64, 48), "of 32 lanes half are idle"),
        (lambda: dense(32, 64, 48, constant=True), "weights are packed ahead"),
        (lambda: dense(32, 5, 48), "terms are written out"),
    ],
)
def test_others_have_none(workload: Workload, why: str) -> None:
    assert not row_lanes(workload, XEON)[1], why


@pytest.mark.parametrize("rows", [16, 64, 128])
def test_estimates_choose_them_where_packing_is_much_of_the_work(rows: int) -> None:
    task, (sketch,) = row_lanes(lambda: dense(rows, 512, 1024), XEON)
    assert sketch.sure and not any(other.name == "dots" for other in task.sketches)
    assert task.default_schedule == sketch.schedule(sketch.default)


def test_neighbouring_tiles_store_no_result_twice() -> None:
    _, (sketch,) = row_lanes(FITTING["odd"], XEON)
    columns = sketch.columns(sketch.sample(np.random.default_rng(0), 64))
    assert not np.any(columns["T_dense_j_rows"] * columns["T_dense_j_tile"] % 16)
