"""Products that read and write tensors whose axes stand in another order, as attention has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attention_networks import FORMS, Block, attention_network
from small_networks import feeds_of

import loopwright as lw
from loopwright.dialects.graph import ApplyOp
from loopwright.graph.pipeline import PREPARE
from loopwright.graph.precision import in_precision

FOLDED = f"{PREPARE},lw-graph-fold-transposes,lw-graph-simplify,cse,dce,lw-graph-fold-constants,dce"


def applied(net: lw.Network) -> list[ApplyOp]:
    return [op for op in net.module.walk() if isinstance(op, ApplyOp)]


def names(net: lw.Network) -> list[str]:
    return [op.operator.data for op in applied(net)]


def equations(net: lw.Network) -> list[Any]:
    return [op.options.values["equation"] for op in applied(net) if op.operator.data == "einsum"]


def check(net: lw.Network, dtype: str = "float16") -> lw.Network:
    """Fold transposes of a network in a precision; what it computes is held to single precision."""
    given = feeds_of(net)
    made = in_precision(net, None if dtype == "float32" else dtype).transform(FOLDED)
    limit = 1e-5 if dtype == "float32" else 5e-3
    for got, wanted in zip(made.evaluate(**given), net.evaluate(**given), strict=True):
        exact = np.asarray(wanted)
        np.testing.assert_allclose(np.asarray(got), exact, rtol=limit, atol=limit * np.abs(exact).max())
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.few(9)
def test_attention_moves_nothing(form: str, batch: int, mask: str, dtype: str) -> None:
    """But for the rows that a mask empties, of several samples, one element for a row of a head.

    In single precision no product writes its columns in parts.
    """
    made = check(attention_network(Block(batch=batch, form=form, mask=mask)), dtype)
    parts = form == "turned" and dtype == "float16"
    few = mask == "padding" and batch > 1
    assert names(made).count("transpose") == few + (form == "turned" and not parts)
    assert len(equations(made)) == 2 + parts


def test_heads_that_share_keys_read_them_where_they_are() -> None:
    """Keys of two heads for four heads of queries."""
    net: Any = lw.Network("grouped")
    q, k = net.input("q", (2, 16, 4, 8)), net.input("k", (2, 16, 2, 8))
    keys = net.reshape(net.transpose(k, axes=(0, 2, 1, 3)), shape=(2, 2, 1, 16, 8))
    keys = net.reshape(net.broadcast_to(keys, shape=(2, 2, 2, 16, 8)), shape=(8, 16, 8))
    queries = net.reshape(net.transpose(q, axes=(0, 2, 1, 3)), shape=(8, 16, 8))
    net.output(net.batch_matmul(queries, keys, transpose_b=True))
    made = check(net)
    assert "broadcast_to" not in names(made) and equations(made) == ["abcde,afce->acdbf"]


def product(x: Any, axes: tuple[int, ...], shape: tuple[int, ...], net: Any) -> Any:
    weight = net.constant(np.random.default_rng(1).standard_normal((24, 12)).astype(np.float32))
    return net.softmax(net.transpose(net.reshape(net.dense(x, weight), shape=shape), axes=axes), axis=-1)


def test_elementwise_operators_between_are_turned() -> None:
    net: Any = lw.Network("between")
    x, added = net.input("x", (16, 12)), net.input("rows", (16, 1))
    weight = net.constant(np.random.default_rng(1).standard_normal((24, 12)).astype(np.float32))
    scale = net.constant(np.linspace(0.5, 2, 24, dtype=np.float32))
    made = net.add(net.multiply(net.sin(net.dense(x, weight)), scale), added)
    net.output(net.softmax(net.transpose(net.reshape(made, shape=(16, 3, 8)), axes=(1, 0, 2)), axis=2))
    folded = check(net)
    assert "transpose" not in names(folded) and equations(folded) == ["ab,cdb->cad"]


def test_what_would_move_something_else_stays() -> None:
    net: Any = lw.Network("residual")
    x, residual = net.input("x", (16, 12)), net.input("residual", (16, 24))
    weight = net.constant(np.random.default_rng(1).standard_normal((24, 12)).astype(np.float32))
    made = net.reshape(net.add(net.dense(x, weight), residual), shape=(16, 3, 8))
    net.output(net.softmax(net.transpose(made, axes=(1, 0, 2)), axis=2))
    assert equations(check(net)) == []


def test_what_elementwise_operators_read_by_index_stays() -> None:
    net: Any = lw.Network("read")
    weight = net.constant(np.random.default_rng(1).standard_normal((24, 12)).astype(np.float32))
    made = net.reshape(net.dense(net.input("x", (16, 12)), weight), shape=(16, 3, 8))
    net.output(net.relu(net.transpose(made, axes=(1, 0, 2))))
    assert equations(check(net)) == []


@pytest.mark.parametrize(
    ("axes", "shape"),
    [
        ((1, 0), (16, 24)),  # rows would be neighbours in the result
        ((1, 0, 2), (16, 6, 4)),  # runs of 4
        ((1, 0, 2), (48, 4, 2)),  # of parts of rows
        ((2, 1, 0), (4, 4, 24)),
    ],
)
def test_results_without_runs_of_columns_stay(axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    net: Any = lw.Network("runs")
    net.output(product(net.input("x", (16, 12)), axes, shape, net))
    assert equations(check(net)) == []


def test_a_single_row_stays() -> None:
    net: Any = lw.Network("row")
    net.output(product(net.input("x", (1, 12)), (1, 0, 2), (1, 3, 8), net))
    assert equations(check(net)) == []
