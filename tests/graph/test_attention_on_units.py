"""Attention of 16-bit floats, as PyTorch exports it, is one kernel on CUDA devices with matrix units."""

from math import sqrt
from typing import Any, cast

import numpy as np
import pytest
from gpu_programs import scheduled_kernel
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.element import dtype_name
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.graph.tasks import extract_tasks, grouping_for

TARGET = resolve_target("cuda model=h200")
HEADS, SIZE = 2, 16


def exported(kind: str, batch: int = 1, rows: int = 32) -> lw.Network:
    """Attention as PyTorch exports it: heads inside of rows before and behind it, moved by transposes."""
    net = lw.Network("attention")
    random = np.random.default_rng(0)
    width = HEADS * SIZE
    x = net.input("x", (batch, rows, width), "float16")
    heads = []
    for _ in range(3):
        weight = net.constant((random.standard_normal((width, width)) / 8).astype(np.float16))
        flat = net.dense(net.apply("reshape", x, shape=(batch * rows, width)), weight)
        apart = net.apply("reshape", flat, shape=(batch, rows, HEADS, SIZE))
        turned = net.apply("transpose", apart, axes=(0, 2, 1, 3))
        heads.append(net.apply("reshape", turned, shape=(batch * HEADS, rows, SIZE)))
    q, k, v = heads
    scores = net.apply("batch_matmul", q, k, transpose_b=True) * (1 / sqrt(SIZE))
    scores = net.apply("reshape", scores, shape=(batch, HEADS, rows, rows))
    if kind == "causal":
        scores = net.apply("where", net.constant(np.tri(rows, dtype=bool), "earlier"), scores, -30000.0)
    elif kind == "padding":
        scores = net.apply("where", net.input("mask", (batch, 1, 1, rows), "bool"), scores, -30000.0)
    weights = net.apply("reshape", net.apply("softmax", scores, axis=3), shape=(batch * HEADS, rows, rows))
    found = net.apply("reshape", net.apply("batch_matmul", weights, v), shape=(batch, HEADS, rows, SIZE))
    turned = net.apply("transpose", found, axes=(0, 2, 1, 3))
    net.output(net.apply("reshape", turned, shape=(batch * rows, width)))
    return net


def attention_task(net: lw.Network) -> lw.SearchTask:
    (task,) = [task for task in extract_tasks(net, TARGET)[0] if "softmax" in task.name]
    return task


@pytest.mark.parametrize(("kind", "batch"), [("plain", 1), ("causal", 1), ("padding", 1), ("plain", 2), ("padding", 2)])
@pytest.mark.parametrize("rows", [32, 37])
@pytest.mark.few(1)
def test_what_is_exported_is_one_kernel_and_right(kind: str, batch: int, rows: int) -> None:
    """Interpreted, beside the te program of the same group."""
    task = attention_task(exported(kind, batch, rows))
    assert task.name.startswith("einsum") and [s.name for s in task.sketches] == ["attention_mma_m16n16k16_f16"]
    module, random = task.module, np.random.default_rng(1)
    inputs: list[np.ndarray[Any, Any]] = []
    for argument in task.compute_dag.func.body.block.args:
        given = cast(TensorType[Attribute], argument.type)
        drawn = np.asarray(random.standard_normal(given.get_shape()))
        is_mask = dtype_name(given.get_element_type()) == "bool"
        inputs.append(np.less(drawn, 1) if is_mask else drawn.astype(np.float16))
    kernel = scheduled_kernel(str(module), task.default_schedule)
    for got, wanted in zip(run_kernel(kernel, inputs), run_te(module, inputs), strict=True):
        np.testing.assert_allclose(got.astype(np.float32), wanted.astype(np.float32), atol=4e-3)


@pytest.mark.parametrize(("heads", "queries"), [(8, 1), (2, 4)])
@pytest.mark.few(1)
def test_one_token_beside_a_cache_is_one_task_and_right(heads: int, queries: int) -> None:
    """Of heads, or of several heads that share keys, as rows of a product with these."""
    net, keys = lw.Network("token"), 80
    shapes = ((heads, queries, SIZE), (heads, keys, SIZE), (heads, keys, SIZE))
    q, k, v = (net.input(name, shape, "float16") for name, shape in zip("qkv", shapes, strict=True))
    scores = net.apply("batch_matmul", q, k, transpose_b=True) * (1 / sqrt(SIZE))
    net.output(net.apply("batch_matmul", net.apply("softmax", scores), v))
    (task,) = extract_tasks(net, TARGET)[0]
    assert {s.name for s in task.sketches} == {f"attention_mma_m16n16k16_f16{end}" for end in ("", "_split")}
    random = np.random.default_rng(2)
    inputs = [random.standard_normal(shape).astype(np.float16) for shape in shapes]
    (wanted,) = net.evaluate(**dict(zip("qkv", inputs, strict=True)))
    for sketch in task.sketches:
        (got,) = run_kernel(scheduled_kernel(str(task.module), sketch.schedule(sketch.default)), inputs)
        np.testing.assert_allclose(got.astype(np.float32), np.asarray(wanted, np.float32), atol=4e-3)


def test_scores_that_are_no_product_of_two_tensors_stay_apart() -> None:
    """Einsums also move and join: of one tensor, or of three."""
    for factors, equation in ((1, "ba->ab"), (3, "ac,bc,ab->ab")):
        net = lw.Network("scores")
        given = [net.input(f"x{k}", (32, 32), "float16") for k in range(factors)]
        weights = net.softmax(net.einsum(*given, equation=equation))
        net.output(net.einsum(weights, net.input("v", (32, 32), "float16"), equation="ab,bc->ac"))
        assert "softmax_einsum" not in str(net.transform(grouping_for(TARGET)))
