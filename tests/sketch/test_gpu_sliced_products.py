"""Products in slices whose rows are read along their terms: right at ragged edges, and where rows begin anywhere."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from gpu_programs import check_interpreted
from gpu_sketches import check_candidates, sliced

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.pipeline_text import apply_schedule
from loopwright.search.named_workloads import matmul
from loopwright.search.rules import _gpu_sliced_products

CUDA = "cuda model=h200"


def layer(rows: int, terms: int, columns: int, act: str = "", residual: bool = False) -> list[te.Tensor]:
    x, w = te.placeholder((rows, terms), name="x"), te.placeholder((terms, columns), name="w")
    bias = te.placeholder((1, columns), name="bias")
    out, inputs = topi.add(topi.matmul(x, w), bias), [x, w, bias]
    if act:
        out = getattr(topi.nn, act)(out)
    if residual:
        inputs.append(te.placeholder((rows, columns), name="residual"))
        out = topi.add(out, inputs[-1])
    return [*inputs, out]


def batch() -> list[te.Tensor]:
    x, w = te.placeholder((3, 37, 64), name="x"), te.placeholder((3, 64, 36), name="w")
    return [x, w, topi.nn.relu(topi.nn.batch_matmul(x, w, transpose_b=False))]


def joined() -> list[te.Tensor]:
    """Products of one matrix with several, as of queries, keys and values."""
    x, w = te.placeholder((40, 256), name="x"), te.placeholder((256, 3, 64), name="w")
    bias, k = te.placeholder((3, 1, 64), name="bias"), te.reduce_axis((0, 256), "k")
    out = te.compute((3, 40, 64), lambda g, i, j: te.sum(x[i, k] * w[k, g, j], axis=k), name="products")
    return [x, w, bias, topi.add(out, bias)]


def of_rows(rows: int, terms: int, columns: int, act: str = "") -> list[te.Tensor]:
    """A layer whose weights have the terms of a column side by side."""
    x, w = te.placeholder((rows, terms), name="x"), te.placeholder((columns, terms), name="w")
    bias = te.placeholder((1, columns), name="bias")
    out = topi.add(topi.dense(x, w), bias)
    return [x, w, bias, getattr(topi.nn, act)(out) if act else out]


def scores() -> list[te.Tensor]:
    x, w = te.placeholder((3, 37, 64), name="x"), te.placeholder((3, 45, 64), name="w")
    return [x, w, topi.nn.batch_matmul(x, w, transpose_b=True)]


WORKLOADS = {
    "batch": batch,
    "joined": joined,
    "aligned": lambda: matmul(64, 96, 128),
    "ragged rows": lambda: matmul(50, 64, 256),
    "ragged columns": lambda: layer(64, 128, 100, "relu"),
    "ragged terms": lambda: layer(64, 132, 64, "gelu"),
    "all ragged": lambda: layer(45, 204, 68, residual=True),
    "columns of no whole vectors": lambda: layer(40, 132, 67, "relu"),
    "terms of no whole vectors": lambda: layer(45, 131, 68, residual=True),
    "rows that begin anywhere": lambda: matmul(50, 37, 203),
    "slices longer than terms": lambda: layer(36, 68, 64, "gelu", residual=True),
    "columns by their terms": lambda: of_rows(36, 128, 64, "relu"),
    "all ragged, columns by their terms": lambda: of_rows(45, 132, 67, "gelu"),
    "no whole vectors, columns by their terms": lambda: of_rows(45, 131, 68),
    "batch, columns by their terms": scores,
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(2)
def test_products_in_slices_are_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreted: no races between copies of all threads and sums of a slice's, nor where slices are added up."""
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(WORKLOADS[name], target=CUDA)
    found = sliced(task)
    assert found
    for sketch in found:
        check_candidates(task, sketch, 2)


@pytest.mark.parametrize("of", [partial(layer, residual=True), of_rows], ids=["columns", "terms"])
def test_long_sums_are_also_divided_among_blocks(
    of: Callable[[int, int, int, str], list[te.Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    task = lw.SearchTask(lambda: of(45, 512, 68, "gelu"), target=CUDA)
    (sketch,) = (sketch for sketch in sliced(task) if "split" in sketch.name)
    check_candidates(task, sketch, 2)


def test_parts_of_columns_by_their_terms_begin_at_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1036 terms four parts have 259, whose columns would be copied one by one, as rows of 1037 are at any rate."""
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    x, w = te.placeholder((8, 1037), name="x"), te.placeholder((33, 1036), name="w")
    k = te.reduce_axis((0, 1036), "k")
    out = te.compute((8, 33), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="out")
    task = lw.SearchTask([x, w, out], target=CUDA)
    (sketch,) = (sketch for sketch in sliced(task) if "split" in sketch.name)
    (place,) = (place for place, hole in enumerate(sketch.holes) if hole.name.endswith("_parts"))
    drawn = sketch.sample(np.random.default_rng(1), 40)[:, place]
    assert {sketch.holes[place].choices[choice] for choice in drawn} == {7}


def test_constant_weights_are_laid_out_by_their_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    x, w = te.placeholder((50, 512), name="x"), te.placeholder((64, 512), name="w", constant=True)
    task = lw.SearchTask(lambda: [x, w, topi.dense(x, w)], target=CUDA)
    inputs, (expected,) = task.reference.inputs, task.reference.expected
    assert {"split" in sketch.name for sketch in sliced(task)} == {False, True}
    for sketch in sliced(task):
        assert 'lw-transform-layout{block="T_dense" buffer="w"' in sketch.schedule(sketch.default)
        module = task.module.clone()
        apply_schedule(module, sketch.schedule(sketch.default))
        np.testing.assert_allclose(lw.interpret(module, *inputs), expected, atol=1e-4)


def test_constant_rows_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read along their terms: laid out by rows, they would be no rows of a product in slices."""
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)
    a, b = te.placeholder((36, 64), name="a", constant=True), te.placeholder((64, 40), name="b")
    task = lw.SearchTask(lambda: [a, b, topi.matmul(a, b)], target=CUDA)
    (sketch,) = sliced(task)
    assert "lw-transform-layout" not in sketch.template
    check_interpreted(task.module, task.reference, [sketch.schedule(sketch.default)])


def test_rows_that_begin_anywhere_are_copied_one_by_one() -> None:
    """Those of the other factor, which begin at multiples of a vector, by vectors."""
    task = lw.SearchTask(lambda: matmul(512, 512, 501), target=CUDA)
    (sketch,) = (sketch for sketch in sliced(task) if "split" not in sketch.name)
    steps = [step for step in sketch.template.split(",lw-") if step.startswith('split{block="') and "_shared" in step]
    widths = {name: step.strip("}")[-1] for step in steps for name in "ab" if f'block="{name}_shared"' in step}
    assert widths == {"a": "1", "b": "4"}


def test_others_have_none() -> None:
    """Small ones, and more results than keep all multiprocessors busy: fewer where columns are read along terms."""
    x, w = te.placeholder((1100, 256), name="x"), te.placeholder((1024, 256), name="w")
    assert not sliced(lw.SearchTask(lambda: [x, w, topi.dense(x, w)], target=CUDA))
    for rows, columns, terms in ((64, 64, 64), (4096, 4096, 512)):
        task = lw.SearchTask(lambda m=rows, n=columns, k=terms: matmul(m, n, k), target=CUDA)
        assert not sliced(task)


def test_rows_of_neighbouring_threads_are_neighbours() -> None:
    """A warp then reads rows in different banks: threads with 4 or 8 rows of their own would meet in the same ones."""
    task = lw.SearchTask(lambda: matmul(128, 768, 768), target=CUDA)
    for sketch in sliced(task):
        steps = sketch.template.split(",lw-")
        (split,) = (step for step in steps if step.startswith("split") and "shared_rows_inner>" in step)
        (inner, threads) = split.split("factors=")[1].strip("}").split(",")
        assert inner.endswith("rows_inner>") and threads.endswith("rows_threads>")
