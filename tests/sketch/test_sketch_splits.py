"""Long reductions to few results: split between the cores, right, and only where that pays."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi

CPU = "llvm cores=4 vector_bytes=32"


def _reduced(function: Callable[[te.Tensor], te.Tensor], *shape: int) -> Callable[[], list[te.Tensor]]:
    def tensors() -> list[te.Tensor]:
        data = te.placeholder(shape, name="data")
        return [data, function(data)]

    return tensors


def flat_product() -> list[te.Tensor]:
    a, b = te.placeholder((6, 20000), name="a"), te.placeholder((20000, 7), name="b")
    return [a, b, topi.matmul(a, b)]


LONG = {
    "all": _reduced(lambda x: topi.sum(x), 400, 401),
    "flat": _reduced(lambda x: topi.max(x), 150001),
    "columns": _reduced(lambda x: topi.sum(x, axis=0), 30001, 5),
    "argmax": _reduced(lambda x: topi.argmax(x, axis=1), 2, 140001),
    "norm": _reduced(lambda x: topi.divide(x, topi.sqrt(topi.sum(topi.multiply(x, x), keepdims=True))), 380, 370),
}
SHORT = {
    "few terms": _reduced(lambda x: topi.sum(x), 300, 40),
    "many rows": _reduced(lambda x: topi.sum(x, axis=1), 400, 401),
    "many columns": _reduced(lambda x: topi.sum(x, axis=0), 400, 401),
    "windows": _reduced(lambda x: topi.nn.avg_pool(x, 2, 2), 1, 9, 128, 128),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.few(3)
def test_long_reductions_are_split_between_cores(name: str) -> None:
    task = lw.SearchTask(LONG[name], target=CPU)
    (sketch,) = task.sketches
    assert sketch.name == "parts"
    assert "_rf" in sketch.template and "lw-parallel" in sketch.template
    assert [h.choices for h in sketch.holes if h.kind == "parts"] == [(4, 8, 16)]
    for row in [sketch.default, sketch.sample(np.random.default_rng(0), 1)[0]]:
        got = task.build(sketch.schedule(row))(*task.reference.inputs)
        expected, reference = task.reference.expected[0], task.reference
        np.testing.assert_allclose(got, expected, **reference.tolerances[0]._asdict())


@pytest.mark.parametrize("name", SHORT)
def test_others_are_not(name: str) -> None:
    task = lw.SearchTask(SHORT[name], target=CPU)
    assert all("parts" not in s.name for s in task.sketches)


def test_one_core_has_nobody_to_share_with() -> None:
    assert all("parts" not in s.name for s in lw.SearchTask(LONG["all"], target="llvm cores=1").sketches)


def test_products_of_flat_matrices_are_searched_both_ways() -> None:
    task = lw.SearchTask(flat_product, target="llvm cores=16 vector_bytes=32")
    split = [s for s in task.sketches if s.name.startswith("parts_")]
    assert split and len(split) < len(task.sketches)
    assert task.sketches[0] in split  # few tiles: the estimate favours parts
    for sketch in split:
        schedule = sketch.schedule(sketch.sample(np.random.default_rng(0), 1)[0])
        got = task.build(schedule)(*task.reference.inputs)
        np.testing.assert_allclose(got, task.reference.expected[0], **task.reference.tolerances[0]._asdict())
