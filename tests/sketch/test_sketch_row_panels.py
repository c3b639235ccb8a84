"""Products that pack both factors: rows in panels as wide as a register tile, axes extended to whole tiles in them."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.estimates.cache_traffic import Operand
from loopwright.search.rules import _row_panel
from loopwright.search.sketch.sketch import Sketch

CPU = "llvm cores=1 vector_bytes=32 vector_registers=16"
XEON = "llvm model=emeraldrapids vector_bytes=64 vector_registers=32 l1_bytes=49152 l2_bytes=2097152 l3_bytes=314572800"
Workload = Callable[[], list[te.Tensor]]


def product(m: int, n: int, k: int, turned: str = "", constant: bool = False) -> list[te.Tensor]:
    """The product of (m, k) and (k, n) with bias and ReLU; factors named in `turned` come transposed."""
    a = te.placeholder((k, m) if "a" in turned else (m, k), name="a")
    b = te.placeholder((n, k) if "b" in turned else (k, n), name="b", constant=constant)
    made = topi.matmul(a, b, "a" in turned, "b" in turned)
    return [a, b, topi.nn.relu(made)]


def batched() -> list[te.Tensor]:
    a, b = te.placeholder((3, 13, 21), name="a"), te.placeholder((3, 19, 21), name="b")
    return [a, b, topi.nn.batch_matmul(a, b, transpose_b=True)]


def convolution() -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 6, 9, 11), name="data"), te.placeholder((13, 6, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 1)]


WORKLOADS: dict[str, Workload] = {
    "odd": lambda: product(37, 53, 41),
    "left turned": lambda: product(37, 53, 41, "a"),
    "right turned": lambda: product(19, 33, 130, "b"),
    "both turned": lambda: product(6, 17, 1031, "ab"),
    "whole": lambda: product(32, 64, 96),
    "constant": lambda: product(21, 40, 33, "b", True),
    "batch": batched,
}


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_row_panel, "FEWEST_PRODUCTS", 1)
    monkeypatch.setattr(_row_panel, "SHARED_BYTES", 1)


def row_sketches(workload: Workload, target: str = CPU) -> tuple[lw.SearchTask, list[Sketch]]:
    task = lw.SearchTask(workload, target=target)
    return task, [sketch for sketch in task.sketches if "_rows" in sketch.name]


@pytest.mark.parametrize("target", [CPU, "llvm cores=2"])
@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(3)
def test_products_of_two_panels_are_right(name: str, target: str) -> None:
    task, sketches = row_sketches(WORKLOADS[name], target)
    rng = np.random.default_rng(5)
    assert sketches
    for sketch in sketches:
        for row in (sketch.default, sketch.sample(rng, 1)[0]):
            made = task.build(sketch.schedule(row))(*task.reference.inputs)
            reference = task.reference
            np.testing.assert_allclose(made, reference.expected[0], **reference.tolerances[0]._asdict())


def test_each_operand_has_a_panel_and_steps_are_whole_in_it() -> None:
    _, sketches = row_sketches(WORKLOADS["odd"])
    assert {sketch.name for sketch in sketches} == {"j_inner_rows", "j_root_rows"}
    for sketch in sketches:
        text = sketch.schedule(sketch.default)
        assert [f'lw-pad{{block="T_matmul" loop="{axis}"' in text for axis in "ijk"] == [True] * 3
        assert 'label="a_panel"' in text and 'label="b_panel"' in text
        inner = sketch.name == "j_inner_rows"
        assert ('lw-compute-at{block="a_panel"' in text) is inner
        assert ('buffer="b" scope="global" layout="k/<T_matmul_block_steps>"' in sketch.template) is not inner


def test_axes_that_are_packed_ahead_are_not_extended() -> None:
    (sketch,) = row_sketches(WORKLOADS["constant"])[1]
    text = sketch.schedule(sketch.default)
    assert [f'lw-pad{{block="T_matmul" loop="{axis}"' in text for axis in "ijk"] == [True, False, False]


def test_convolutions_pack_one_operand_at_most() -> None:
    assert not row_sketches(convolution)[1]


def test_rows_that_share_no_sets_and_divide_well_are_packed_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    sizes = {2048: True, 2048 + 16: False, 2047: True}
    assert {k: bool(row_sketches(partial(product, 128, 128, k))[1]) for k in sizes} == sizes


def test_small_products_pack_one_factor_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert not row_sketches(WORKLOADS["odd"])[1]


def test_rows_a_power_of_two_apart_may_be_packed() -> None:
    """A second-level cache keeps few of them: they share its sets."""
    task = lw.SearchTask(partial(product, 512, 512, 4096), target=XEON)
    assert any(sketch.name.endswith("_rows") for sketch in task.sketches)


def test_lines_of_the_fullest_set_are_counted_with_their_runs() -> None:
    rows = Operand(((("i", 1),), (("k", 1),)), 4, strides=(8192, 4))
    cover = {"i": np.array([1024.0]), "k": np.array([128.0])}
    assert rows.lines_in_fullest(cover, 131072) == [64]  # 16 rows are a way apart: 1024 lie on 16 places, 8 lines each
    apart = Operand(rows.dimensions, 4, strides=(8192 + 64, 4))
    assert apart.lines_in_fullest(cover, 131072) == [0]  # 8192 lines on all 2048 sets, 4 each
