"""Tiles of large products on GPUs: found for products alone, right at ragged edges, and of factors with threes."""

import numpy as np
import pytest
from effort import usual
from gpu_programs import check_interpreted

import loopwright as lw
from loopwright import te, topi
from loopwright.search.named_workloads import conv2d, matmul
from loopwright.search.rules import _gpu_large_tiles
from loopwright.search.sketch.sketch import Sketch

CUDA = "cuda model=h200"


def turned_weight() -> list[te.Tensor]:
    x, w = te.placeholder((100, 72), name="x"), te.placeholder((108, 72), name="w")
    bias = te.placeholder((108,), name="bias")
    return [x, w, bias, topi.nn.relu(topi.dense(x, w, bias))]


WORKLOADS = {
    "aligned": lambda: matmul(96, 192, 64),
    "ragged rows": lambda: matmul(97, 100, 70),
    "turned weight": turned_weight,
}


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of any size count as large."""
    monkeypatch.setattr(_gpu_large_tiles, "LEAST_PRODUCTS", 0)


def large(name: str) -> tuple[lw.SearchTask, list[Sketch]]:
    task = lw.SearchTask(WORKLOADS[name], target=CUDA)
    found = [sketch for sketch in task.sketches if sketch.name in ("j_large", "j_split_large")]
    assert found
    return task, found


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_large_tiles_are_right_when_interpreted_for_cuda(name: str, any_size: None) -> None:
    task, sketches = large(name)
    for sketch in sketches:
        rows = sketch.sample(np.random.default_rng(3), usual(2))
        check_interpreted(task.module, task.reference, map(sketch.schedule, (sketch.default, *rows)))


def test_others_have_none() -> None:
    small, uneven, windows = (
        lambda: matmul(96, 96, 96),
        lambda: matmul(512, 513, 512),
        lambda: conv2d(1, 28, 28, 128, 128, 3, 3, 1),
    )
    for workload in (small, uneven, windows):
        task = lw.SearchTask(workload, target=CUDA)
        assert not [sketch for sketch in task.sketches if sketch.name in ("j_large", "j_split_large")]


def test_large_products_have_tiles_that_fill_a_device() -> None:
    """128 tiles of 96 x 192 are a product of 1536 cubed: powers of two make 144 of 128 x 128."""
    task = lw.SearchTask(lambda: matmul(1536, 1536, 1536), target=CUDA)
    sketch = next(each for each in task.sketches if each.name == "j_large")
    wanted = {"i_virtual": 3, "i_threads": 32, "i_inner": 2, "j_virtual": 2, "j_threads": 12, "j_inner": 4}
    for name, value in wanted.items():
        assert value in next(hole.choices for hole in sketch.holes if hole.name.endswith(f"large_{name}"))
