"""A front door in one call: `lw.tune` and `lw.optimize` give what runs, and keep records where they are found again."""

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.records.file import load

T = "llvm cores=1"
pytestmark = pytest.mark.usefixtures("quick_measuring")


def product() -> te.Tensor:
    a, b = te.placeholder((16, 24), name="a"), te.placeholder((24, 8), name="b")
    return topi.nn.relu(topi.matmul(a, b))


def layer(rows: int) -> list[te.Tensor]:
    a = te.placeholder((rows, 8), name="a")
    return [a, topi.nn.relu(a)]


def test_a_program_becomes_a_kernel_and_its_records_are_found_again(tmp_path: Path, own_cache: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 24), (24, 8)))
    for _ in range(2):  # the second call finds all trials
        kernel = lw.tune(product(), T, trials=3, progress=False)
        np.testing.assert_allclose(kernel(a, b), np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)
    (records,) = own_cache.rglob("*.jsonl")
    assert sum(record.role == "trial" for record in load(records)) == 3
    kernel = lw.tune(layer, T, args=[4], trials=1, records=tmp_path / "own.jsonl", progress=False)
    np.testing.assert_array_equal(kernel(a[:4, :8]), np.maximum(a[:4, :8], 0))
    assert load(tmp_path / "own.jsonl")


def test_a_model_becomes_a_callable_with_its_records_beside_it(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, element = onnx.helper, onnx.TensorProto.FLOAT
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((8, 4)).astype(np.float32)
    x, y = helper.make_tensor_value_info("x", element, [2, 8]), helper.make_tensor_value_info("y", element, [2, 4])
    held = onnx.numpy_helper.from_array(weight, "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [held])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    given = rng.standard_normal((2, 8)).astype(np.float32)
    optimized = lw.optimize(path, T, trials=2, progress=False)
    np.testing.assert_allclose(optimized(given), given @ weight, rtol=1e-4, atol=1e-5)
    assert optimized.plan.kernels[0].tuned and (tmp_path / "model.jsonl").is_file()
    timed = lw.optimize(path, T, time_limit_s=0.5, records=tmp_path / "timed.jsonl", progress=False)
    np.testing.assert_allclose(timed(given), given @ weight, rtol=1e-4, atol=1e-5)


def test_a_model_with_nothing_to_tune_is_compiled() -> None:
    net = lw.Network("plain")
    net.output(net.relu(net.input("x", (4,))))
    np.testing.assert_array_equal(lw.optimize(net, T, progress=False)(-np.ones(4, np.float32)), 0)
