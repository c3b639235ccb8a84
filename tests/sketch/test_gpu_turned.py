"""Transposes and what reads and writes along different axes, by tiles in shared memory."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.search.features.catalogue import names

H200 = "cuda model=h200"


def permuted(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str = "float32") -> ModuleOp:
    x = te.placeholder(shape, name="x", dtype=dtype)
    return te.create_module([x, topi.transpose(x, axes)])


def staged(module: ModuleOp, target: str = H200) -> bool:
    return 'scope="shared"' in lw.SearchTask(module, target=target).known_schedule()


@pytest.mark.parametrize(
    ("shape", "axes", "dtype"),
    [
        ((70, 45), (1, 0), "float32"),
        ((3, 40, 5, 33), (0, 3, 2, 1), "float32"),
        ((2, 33, 20, 20), (0, 2, 3, 1), "float16"),
        ((70, 45), (1, 0), "int8"),
        ((2, 50, 37), (0, 2, 1), "float64"),
    ],
)
@pytest.mark.few(3)
def test_any_candidate_permutes(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    module = permuted(shape, axes, dtype)
    x = (10 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    task = lw.SearchTask(module, target=H200)
    (sketch,) = task.sketches
    rows = sketch.sample(np.random.default_rng(1), 4)
    for schedule in {task.known_schedule(), *(sketch.schedule(row) for row in rows[sketch.legal(rows)])}:
        assert 'scope="shared"' in schedule
        np.testing.assert_array_equal(lw.interpret(task.schedule_module(schedule), x), x.transpose(axes))


@pytest.mark.parametrize(("dtype", "sectors"), [("float32", 4), ("float16", 2), ("int8", 1)])
def test_warps_move_whole_lines_without_bank_conflicts(dtype: str, sectors: int) -> None:
    """A warp's access is `sectors` of 32 bytes, as few as hold its elements; elements anywhere would be 32."""
    (sketch,) = lw.SearchTask(permuted((4096, 1024), (1, 0), dtype), target=H200).sketches
    default = np.array([[hole.choices.index(hole.default) for hole in sketch.holes]])
    found = dict(zip(names(), sketch.features(default)[0], strict=False))
    assert found["main.write.is_shared"] and found["copies.bytes"]
    assert np.exp2(found["main.read0.sectors"]) - 1 == pytest.approx(sectors, rel=1e-3)
    assert np.exp2(found["copies.sectors"]) - 1 == pytest.approx(sectors, rel=1e-3)
    assert not [name for name, value in found.items() if name.endswith("bank_conflicts") and value > 0]


def test_what_is_computed_on_the_way_is_computed_once_an_element() -> None:
    x, y = te.placeholder((48, 80), name="x"), te.placeholder((80, 48), name="y")
    module = te.create_module([x, y, topi.nn.relu(topi.add(topi.transpose(x, (1, 0)), y))])
    assert staged(module)
    a, b = (
        np.random.default_rng(n).standard_normal(shape, dtype=np.float32)
        for n, shape in enumerate([(48, 80), (80, 48)])
    )
    task = lw.SearchTask(module, target=H200)
    found = lw.interpret(task.schedule_module(task.known_schedule()), a, b)
    np.testing.assert_array_equal(found, np.maximum(a.T + b, 0))


def test_both_of_two_transposes_are_staged() -> None:
    x, y = (te.placeholder((40, 64), name=name) for name in "xy")
    module = te.create_module([x, y, topi.transpose(topi.multiply(x, y), (1, 0))])
    task = lw.SearchTask(module, target=H200)
    assert task.known_schedule().count('scope="shared"') == 2
    a, b = (np.random.default_rng(n).standard_normal((40, 64), dtype=np.float32) for n in range(2))
    np.testing.assert_array_equal(lw.interpret(task.schedule_module(task.known_schedule()), a, b), (a * b).T)


def test_short_axes_and_other_devices_are_left_alone() -> None:
    assert not staged(permuted((1000, 8), (1, 0)))
    assert not staged(permuted((64, 20, 50), (1, 0, 2)))
    assert not staged(permuted((70, 45), (1, 0)), "opencl model=mali-g610")


def dense_layer(rows: int, k: int, columns: int, constant: bool) -> list[te.Tensor]:
    data = te.placeholder((rows, k), name="data")
    weight = te.placeholder((columns, k), name="weight", constant=constant)
    return [data, weight, topi.dense(data, weight)]


def test_constant_weights_of_a_product_are_packed_along_its_columns() -> None:
    """As (k, columns) none is turned round as it is copied, and vectors are copied whole."""
    task = lw.SearchTask(dense_layer(40, 48, 52, True), target=H200)
    tiled = [sketch for sketch in task.sketches if any(hole.name.endswith("j_threads") for hole in sketch.holes)]
    assert tiled
    data, weight = task.reference.inputs
    packed = np.ascontiguousarray(weight.T)
    for sketch in tiled:
        assert 'lw-transform-layout{block="T_dense" buffer="weight" layout="k","j"}' in sketch.template
        assert sketch.template.count("lw-storage-align") == 1
        for row in sketch.sample(np.random.default_rng(0), 2):
            (got,) = run_kernel(
                lower_to_kernel(task.schedule_module(sketch.schedule(row)), task.target), [data, packed]
            )
            np.testing.assert_allclose(got, task.reference.expected[0], rtol=1e-4, atol=1e-4)


def test_a_constant_before_another_operand_is_packed() -> None:
    """Packing it replaces the buffer that the anchor knew it by."""
    weight, data = te.placeholder((52, 48), name="weight", constant=True), te.placeholder((40, 48), name="data")
    k = te.reduce_axis((0, 48), name="k")
    product = te.compute((52, 40), lambda j, i: te.sum(weight[j, k] * data[i, k], axis=k), name="product")
    sketches = lw.SearchTask([weight, data, product], target=H200).sketches
    assert any('lw-transform-layout{block="product" buffer="weight"' in sketch.template for sketch in sketches)


@pytest.mark.parametrize(("columns", "constant"), [(52, False), (51, True)])
def test_other_weights_are_turned_as_they_are_copied(columns: int, constant: bool) -> None:
    """Those that a caller gives anew, and rows of which vectors do not start at multiples of their size."""
    for sketch in lw.SearchTask(dense_layer(40, 48, columns, constant), target=H200).sketches:
        assert "lw-transform-layout" not in sketch.template
