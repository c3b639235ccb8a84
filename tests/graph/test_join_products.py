"""Products of one tensor as one, on GPUs with matrix units: queries, keys and values, whose parts are no kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attention_networks import FORMS, Block, attention_network, projected
from small_networks import feeds_of

import loopwright as lw
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import ApplyOp, GroupOp
from loopwright.graph.precision import in_precision
from loopwright.graph.tasks import group_tasks, grouping_for
from loopwright.search.measure.check import check_outputs

H200 = "cuda model=h200"
FOR_CUDA = grouping_for(resolve_target(H200))


def check(net: lw.Network, precision: str | None = "float16") -> list[str]:
    """The kernels of a network on a GPU; what it computes is held to single precision."""
    made, given = in_precision(net, precision).transform(FOR_CUDA), feeds_of(net)
    for got, wanted in zip(made.evaluate(**given), net.evaluate(**given), strict=True):
        exact = np.asarray(wanted)
        np.testing.assert_allclose(np.asarray(got), exact, rtol=5e-3, atol=5e-3 * np.abs(exact).max())
    return [op.label.data for op in made.module.walk() if isinstance(op, GroupOp)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.few(3)
def test_attention_is_three_kernels(form: str, batch: int) -> None:
    kernels = check(attention_network(Block(batch=batch, rows=32, heads=2, size=16, mask="causal", form=form)))
    attention = "einsum_add_softmax_einsum"
    assert [k for k in kernels if k != "cast"] == ["einsum_add", attention, "dense_add_add_cast"]


@pytest.mark.parametrize("form", ["three", "one"])
def test_products_of_single_precision_are_a_batch(form: str) -> None:
    kernels = check(attention_network(Block(batch=1, rows=32, heads=2, size=16, form=form)), None)
    assert [k for k in kernels if "softmax" not in k] == ["einsum_add", "einsum", "einsum", "dense_add_add"]


def test_products_that_round_their_factors_are_joined() -> None:
    """On matrix units they are, with the transposes of heads in them; attention itself is of 16-bit floats."""
    kernels = check(attention_network(Block(batch=1, rows=32, heads=2, size=16)), "tf32")
    assert [k for k in kernels if "einsum" in k or "dense" in k or "transpose" in k] == [
        "einsum_add",
        "einsum",
        "einsum",
        "dense_add_add",
    ]


@pytest.mark.parametrize(("precision", "kernels"), [("tf32", 1), (None, 0)])
def test_attention_whose_products_round_stays_on_matrix_units(precision: str | None, kernels: int) -> None:
    """Softmax is a kernel of its own there; in single precision all of it is one on lanes."""
    found = check(attention_network(Block(batch=1, rows=32, heads=2, size=32)), precision)
    assert sum(name.endswith("softmax") for name in found) == kernels
    assert any("softmax_einsum" in name for name in found) == (not kernels)


def products_of(rows: int, columns: tuple[int, ...], read: Any) -> int:
    """Count the kernels with a product where a network has several of one tensor, each read in a way."""
    net: Any = lw.Network("products")
    x = net.input("x", (rows, 16))
    made = [projected(net, x, f"w{k}", n, 16) for k, n in enumerate(columns)]
    net.output(*(read(net, value) for value in made))
    return sum("dense" in kernel or "einsum" in kernel for kernel in check(net))


def turned(net: Any, value: Any) -> Any:
    return net.softmax(net.transpose(value), axis=1)


def test_which_products_are_joined() -> None:
    assert products_of(32, (16, 16, 16), turned) == 1
    assert products_of(32, (16, 32, 16), turned) == 2
    assert products_of(32, (16, 16), lambda net, value: net.gelu(value)) == 2
    assert products_of(16, (16, 16), turned) == 2
    assert products_of(20, (10, 10), turned) == 2  # parts would not start where memory is aligned


@pytest.mark.parametrize("precision", ["float16", None])
def test_products_of_a_token_are_one_whatever_their_columns(precision: str | None) -> None:
    def kernels(rows: int, read: Any, columns: tuple[int, ...] = (256, 128, 384)) -> int:
        net: Any = lw.Network("token")
        x = net.input("x", (rows, 40))
        made = [projected(net, x, f"w{k}", n, 40) for k, n in enumerate(columns)]
        net.output(*(read(net, value) for value in made))
        return sum("dense" in kernel for kernel in check(net, precision))

    assert kernels(1, turned) == 1
    assert kernels(2, turned) == 3
    assert kernels(1, turned, (256, 100, 384)) == 2  # parts behind 100 columns would not start where memory is aligned
    assert kernels(1, lambda net, value: net.gelu(value)) == 3
    assert kernels(1, lambda net, value: value) == 3


def test_a_number_that_is_added_to_a_product_is_no_bias() -> None:
    net: Any = lw.Network("number")
    x, weight = net.input("x", (1, 40)), net.constant(np.ones((256, 40), np.float32) / 40, "weight")
    net.output(turned(net, net.add(net.dense(x, weight), net.constant(np.float32(2), "two"))))
    assert sum("dense" in kernel for kernel in check(net, None)) == 1


def test_a_token_of_attention_has_one_product_for_queries_keys_and_values() -> None:
    net: Any = lw.Network("token")
    x = net.input("x", (1, 256))
    cache = [net.input(name, (2, 7, 64)) for name in "kv"]
    made = [projected(net, x, f"w{k}", n, 256) for k, n in enumerate((256, 128, 128))]
    halves = net.split(net.reshape(made[0], shape=(4, 64)), sections=2, axis=1)
    q = net.reshape(net.concatenate(net.negative(halves[1]), halves[0], axis=1), shape=(2, 2, 64))
    k, v = (net.concatenate(c, net.reshape(m, shape=(2, 1, 64)), axis=1) for c, m in zip(cache, made[1:], strict=True))
    scores = net.batch_matmul(q, k, transpose_b=True) * 0.125
    net.output(net.batch_matmul(net.softmax(scores), v))
    assert sum("dense" in kernel for kernel in check(net)) == 1


def test_products_that_fill_a_device_stay_apart() -> None:
    net: Any = lw.Network("large")
    x = net.input("x", (256, 16))
    net.output(*(turned(net, projected(net, x, name, 256, 16)) for name in ("a", "b")))
    prepared = in_precision(net, "float16")

    def products(cores: int) -> int:
        made = prepared.transform(f"lw-graph-join-products{{cores={cores}}},dce")
        return sum(op.operator.data == "dense" for op in made.module.walk() if isinstance(op, ApplyOp))

    assert products(4) == 2 and products(5) == 1


@pytest.mark.slow(1.2)
def test_kernels_compute_what_their_operators_say() -> None:
    net = in_precision(attention_network(Block(batch=1, rows=32, heads=2, size=16, mask="padding")), "float16")
    target = resolve_target(H200)
    for task in {id(pair.task): pair.task for pair in group_tasks(net.transform(FOR_CUDA), target)}.values():
        schedule, reference = task.default_schedule, task.reference
        found = lw.interpret(scheduled_kernel(str(task.module), schedule), *reference.inputs)
        outputs = [np.asarray(x) for x in (found if isinstance(found, tuple | list) else [found])]
        check_outputs(task.name, [f"output {k}" for k in range(len(outputs))], outputs, reference, schedule)
