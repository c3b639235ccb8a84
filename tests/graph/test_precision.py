"""Networks of single precision computed in 16-bit floats: beside themselves, on the CPU and as kernels for CUDA."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_networks import SMALL, feeds_of
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

import loopwright as lw
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects.graph import ApplyOp, ConstantOp, GroupOp
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.numpy_types import NARROW_FLOATS
from loopwright.graph.accuracy import compare_output
from loopwright.graph.evaluate import apply_arrays
from loopwright.graph.passes.lower_precision import PRODUCTS
from loopwright.graph.precision import in_precision
from loopwright.graph.tasks import group_tasks, grouping_for
from loopwright.graph.types import dtype_of, shape_of
from loopwright.passes.analysis.argument_marks import packing_of

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")

TARGET = "llvm cores=1"
H200 = "cuda model=h200"
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "tf32": 4e-3, "tf32x3": 1e-6}
"""Errors allowed, as a part of the largest output: 4 times the distance between numbers of the type from 1 on. Measured
on the networks here: up to 8e-4 and 6e-3; TF32 has as many digits as float16, and
of its three products all but the last one of float32."""
TYPES = list(TOLERANCE)


def convolutions(layout: str) -> lw.Network:
    """A small convolutional network, of 32 channels."""
    random = np.random.default_rng(1)
    last = layout == "NHWC"
    net = lw.Network("convolutions")
    x = net.input("data", (1, 8, 8, 16) if last else (1, 16, 8, 8))
    for count, label in ((16, "first"), (32, "second")):
        shape = (3, 3, count, 32) if last else (32, count, 3, 3)
        weight = random.standard_normal(shape).astype("float32") / np.float32(3 * count**0.5)
        x = net.conv2d(x, net.constant(weight), padding=1, layout=layout, label=label)
        statistics = [net.constant(random.uniform(0.5, 1.5, 32).astype("float32")) for _ in range(4)]
        x = net.relu(net.batch_norm(x, *statistics, axis=3 if last else 1))
    x = net.flatten(net.global_avg_pool(x, layout=layout))
    net.output(net.dense(x, net.constant(random.standard_normal((16, 32), np.float32)), label="scores"))
    return net


def attention() -> lw.Network:
    """Attention with a mask by a number that float16 has not, and what follows written in exponentials."""
    random = np.random.default_rng(2)
    net = lw.Network("attention")
    x, mask = net.input("data", (32, 32)), net.input("mask", (32, 32), "bool")
    q, k, v = (
        net.dense(x, net.constant(random.standard_normal((32, 32), np.float32) / np.float32(6))) for _ in range(3)
    )
    scores = net.matmul(q, k, transpose_b=True) * 0.2
    weights = net.softmax(net.where(mask, scores, net.constant(-1e9)), label="weights")
    y = x + net.matmul(weights, v)
    y = net.layer_norm(y, net.constant(np.ones(32, np.float32)), net.constant(np.zeros(32, np.float32)), label="norm")
    gate = net.reciprocal(net.exp(net.negative(y), label="exp") + 2.0, label="gate")
    net.output(net.dense(gate, net.constant(random.standard_normal((16, 32), np.float32) / np.float32(6))))
    return net


def networks() -> dict[str, lw.Network]:
    return {
        "mlp": lw.testing.mlp(batch=16),
        "convolutions_nchw": convolutions("NCHW"),
        "convolutions_nhwc": convolutions("NHWC"),
        "attention": attention(),
    }


NAMES = ["mlp", "convolutions_nchw", "convolutions_nhwc", "attention"]


def require_close(dtype: str, got: Any, exact: Any) -> None:
    error = compare_output("output", got, exact)
    assert 0 < error.relative <= TOLERANCE[dtype], str(error)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(2)
def test_networks_on_the_cpu_are_close_to_single_precision(name: str, dtype: str) -> None:
    net = networks()[name]
    feeds = feeds_of(net)
    compiled = lw.compile(net, TARGET, processes=1, precision=dtype)
    executor = compiled.executor()
    executor.run(**feeds)
    (exact,) = net.evaluate(**feeds)
    got = executor.get_output(0)
    assert got.dtype == exact.dtype == "float32"
    assert {n: (p.dtype, p.shape) for n, p in zip(feeds, compiled.plan.inputs, strict=True)} == {
        n: (v.dtype, v.shape) for n, v in net.inputs.items()
    }
    require_close(dtype, got, exact)


def is_large_product(op: Operation) -> bool:
    """True for products but those of fewer rows than matrix units have, which are left to lanes."""
    if not isinstance(op, ApplyOp) or op.operator.data not in PRODUCTS:
        return False
    shape = shape_of(op.outputs[0])
    return op.operator.data == "conv2d" or (prod(shape[:-1]) if op.operator.data == "einsum" else shape[0]) >= 16


def on_cuda(net: lw.Network, feeds: dict[str, Any]) -> list[Any]:
    """Run a network by interpreting the untuned kernel of each group for an H200; products are on its matrix units."""
    target = lw.resolve_target(H200)
    grouped = net.transform(grouping_for(target))
    tasks = {pair.group: pair.task for pair in group_tasks(grouped, target)}
    block = grouped.function.body.block
    values: dict[SSAValue, Any] = {v: feeds[n] for n, v in zip(grouped.input_names, block.args, strict=True)}
    for op in block.ops:
        if isinstance(op, ConstantOp):
            values[op.result] = grouped.constant_values(op)
        elif isinstance(op, ApplyOp):
            values.update(zip(op.outputs, apply_arrays(op, [values[v] for v in op.inputs]), strict=True))
        elif isinstance(op, GroupOp):
            schedule = tasks[op].default_schedule
            assert ("lw-tensorize" in schedule) == any(map(is_large_product, op.body.block.ops)), op.label.data
            kernel = scheduled_kernel(str(tasks[op].module), schedule)
            function = next(f for f in kernel.ops if isinstance(f, FuncOp))
            given = [values[v] for v in op.inputs]
            packed = [p.pack(a) if (p := packing_of(function, k)) else a for k, a in enumerate(given)]
            made = run_kernel(kernel, packed)
            values.update(zip(op.outputs, made, strict=True))
    assert block.last_op is not None
    return [values[v] for v in block.last_op.operands]


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_kernels_for_cuda_are_on_matrix_units_and_close_to_single_precision(name: str, dtype: str) -> None:
    net = networks()[name]
    feeds = feeds_of(net)
    (exact,), (got,) = net.evaluate(**feeds), on_cuda(in_precision(net, dtype), feeds)
    require_close(dtype, got, exact)


def test_what_stays_in_single_precision_is_named_with_its_reason(tmp_path: Path) -> None:
    compiled = lw.compile(attention(), TARGET, processes=1, precision="float16")
    kept = {k.operator: k for k in compiled.kept_fp32}
    assert list(kept) == ["where", "softmax", "layer_norm", "exp", "add", "reciprocal"]
    assert kept["where"].reason == "its constant 'constant' is no number of float16"
    assert str(kept["softmax"]) == "weights (softmax): it reads 'where', which is float32"
    assert kept["layer_norm"].reason == "computed in float32, its result rounded to float16 once"
    assert kept["add"].reason == "it reads 'exp', which is float32"
    compiled.save(tmp_path / "net.lw")
    assert lw.load_network(tmp_path / "net.lw").kept_fp32 == compiled.kept_fp32
    assert lw.compile(attention(), TARGET, processes=1).kept_fp32 == ()


def test_weights_are_cast_once_and_halve_the_constants() -> None:
    net = convolutions("NHWC")
    single, half = (
        lw.compile(net, TARGET, processes=1, precision=p, winograd=False)  # whose tiles have more weights
        for p in (None, "float16")
    )
    assert {c.dtype for c in half.plan.constants} == {"float16"}
    sizes = [sum(a.nbytes for a in c.package.constants) for c in (single, half)]
    assert sizes[0] == 2 * sizes[1]


def test_a_table_of_numbers_beyond_float16_is_kept() -> None:
    table = np.where(np.tri(4, dtype=bool), 0, -3e38).astype("float32")
    net = lw.Network("masked")
    x = net.input("data", (4, 4))
    net.output(net.softmax(net.matmul(x, x) + net.constant(table, "far")))
    feeds = feeds_of(net)
    for dtype, types in (("float16", {"float32"}), ("bfloat16", {"bfloat16"})):
        after = in_precision(net, dtype)
        assert {a.dtype.name for a in after.params.values()} == types
        require_close(dtype, after.evaluate(**feeds)[0], net.evaluate(**feeds)[0])


def test_inputs_are_read_as_they_are_by_what_stays() -> None:
    """Numbers of places, above 2048, are no numbers of float16; they are looked up by casts to integers."""
    net = lw.Network("places")
    x = net.input("places", (3,))
    table = np.random.default_rng(0).standard_normal((5000, 8)).astype("float32")
    net.output(net.take(net.constant(table), net.cast(x, dtype="int32")))
    places = np.array([2049, 4097, 4999], np.float32)
    (got,) = in_precision(net, "float16").evaluate(places=places)
    np.testing.assert_array_equal(got, table[places.astype(int)].astype("float16").astype("float32"))


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_places_of_samples_are_told_in_single_precision(dtype: str) -> None:
    """A sample has neighbours and weights of one place: 1/30 of a pixel of 300 is no difference to float16."""
    random = np.random.default_rng(3)
    net = lw.Network("sampled")
    x, grid = net.input("x", (1, 4, 300, 300)), net.input("grid", (1, 900, 2))
    options: dict[str, Any] = {"extents": (300, 300), "padding": "border"}
    net.output(net.sample(net.relu(x), net.sampling_places(grid, **options), net.sampling_weights(grid, **options)))
    places = random.uniform(-1, 1, grid.shape).astype("float32")
    feeds = {"x": random.standard_normal(x.shape, np.float32), "grid": places}
    require_close(dtype, in_precision(net, dtype).evaluate(**feeds)[0], net.evaluate(**feeds)[0])


def test_tasks_of_a_precision_are_those_that_it_compiles() -> None:
    net = convolutions("NCHW")
    tasks, _ = lw.extract_tasks(net, TARGET, layout="NHWC", precision="bfloat16")
    templates, _ = lw.extract_template_tasks(net, TARGET, ops=["conv2d"], layout="NHWC", precision="bfloat16")
    compiled = lw.compile(net, TARGET, layout="NHWC", precision="bfloat16", processes=1)
    assert {t.workload_key for t in tasks} <= {k.workload_key for k in compiled.kernels}
    assert templates and all("bf16" in str(task.module) for task in tasks)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_product_of_known_networks_is_in_the_half_type(name: str) -> None:
    net = lw.testing.network(name, **SMALL[name])
    after = in_precision(net, "float16")
    found = [op for op in after.module.walk() if isinstance(op, ApplyOp) and op.operator.data in PRODUCTS]
    assert found and {dtype_of(op.outputs[0]) for op in found} == {"float16"}
    assert {n: v.dtype for n, v in after.outputs.items()} == {n: v.dtype for n, v in net.outputs.items()}
    assert list(after.outputs) == list(net.outputs)


@pytest.mark.parametrize("precision", ["int4", "fp8", "float32", 16])
def test_other_precisions_are_refused(precision: Any) -> None:
    with pytest.raises(ValueError, match=r"precision is float16 or bfloat16 or tf32 or tf32x3, or None .*, got "):
        lw.compile(lw.testing.mlp(), TARGET, precision=precision)


def test_a_network_without_single_precision_is_refused() -> None:
    with pytest.raises(ValueError, match=r"network 'mlp' has nothing in float32 to compute in float16: .* float64"):
        lw.compile(lw.testing.mlp(dtype="float64"), TARGET, precision="float16")
