"""Softmax that gives 0 for rows of which a mask leaves nothing: plain where there are none, and never NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attention_networks import Block, attention_network
from small_networks import feeds_of

import loopwright as lw
from loopwright.dialects.graph import ApplyOp
from loopwright.graph.pipeline import PREPARE
from loopwright.graph.types import shape_of

SAFE = "lw-graph-simplify,cse,dce,lw-graph-masked-softmax,cse,dce,lw-graph-fold-constants,lw-graph-simplify,dce"


def operators(net: lw.Network) -> list[str]:
    return [op.operator.data for op in net.module.walk() if isinstance(op, ApplyOp)]


def evaluated(net: lw.Network, given: dict[str, Any]) -> Any:
    return np.asarray(net.evaluate(**given)[0])


@pytest.mark.parametrize("mask", ["none", "causal", "padding", "empty"])
def test_rows_are_those_that_pytorch_gives(mask: str) -> None:
    net = attention_network(Block(mask=mask))
    given = feeds_of(net)
    if mask == "padding":
        given["kept"][1] = False
    wanted = evaluated(net, given)
    assert np.isfinite(wanted).all()
    made = net.transform(SAFE)
    assert [value.shape for value in made.outputs.values()] == [value.shape for value in net.outputs.values()]
    np.testing.assert_allclose(evaluated(made, given), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(evaluated(net.transform(PREPARE), given), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("mask", "questions"), [("none", 0), ("causal", 0), ("padding", 1), ("empty", 1)])
def test_a_question_remains_where_a_row_may_be_empty(mask: str, questions: int) -> None:
    made = operators(attention_network(Block(mask=mask)).transform(SAFE))
    masks = 1 if mask == "padding" else 0
    assert made.count("where") == questions + masks
    assert made.count("max") == (mask == "padding")


def softmax_of(build: Any, dtype: str = "float32") -> lw.Network:
    """A softmax of what is built of the product of two inputs and a mask, where rows of -inf alone give 0."""
    net: Any = lw.Network("safe")
    product = net.batch_matmul(net.input("a", (2, 4, 3), dtype), net.input("b", (2, 3, 5), dtype))
    scores = build(net, product, net.input("mask", (2, 4, 5), dtype))
    empty = net.min(net.cast(net.equal(scores, -np.inf), dtype="int8"), axis=2, keepdims=True)
    net.output(net.where(net.cast(empty, dtype="bool"), 0.0, net.softmax(scores, axis=2)))
    return net


KEPT = {
    "a product alone": (lambda net, s, m: s, 0),
    "scaled": (lambda net, s, m: net.divide(net.multiply(s, 3.0), 7.0), 0),
    "a finite number where a mask says so": (lambda net, s, m: net.where(net.greater(m, 0.0), s, -1e9), 0),
    "a mask that is added": (lambda net, s, m: net.add(s, m), 1),
    "infinite where a mask says so": (lambda net, s, m: net.where(net.greater(m, 0.0), s, -np.inf), 1),
    "infinite where it does not": (lambda net, s, m: net.where(net.greater(m, 0.0), -np.inf, s), 1),
    "not of a product": (lambda net, s, m: net.add(m, m), 1),
}


@pytest.mark.parametrize("name", KEPT)
def test_only_masks_empty_rows(name: str) -> None:
    build, questions = KEPT[name]
    net = softmax_of(build)
    made = net.transform(SAFE)
    assert operators(made).count("max") + operators(made).count("min") == questions
    given = feeds_of(net)
    given["mask"][0, 1] = -np.inf
    given["mask"][1, 2] = 2.0
    wanted = evaluated(net, given)
    assert not np.isnan(wanted).any()
    np.testing.assert_allclose(evaluated(made, given), wanted, rtol=1e-5, atol=1e-6)


def test_sums_that_leave_the_range_of_float16_are_asked_for() -> None:
    made = softmax_of(lambda net, s, m: net.add(s, m), "float16").transform(SAFE)
    (question,) = [op for op in made.module.walk() if isinstance(op, ApplyOp) and op.operator.data == "equal"]
    owner = question.inputs[0].owner
    assert isinstance(owner, ApplyOp) and owner.operator.data == "add"


def test_a_stretched_mask_of_zeros_is_asked_itself() -> None:
    """As PyTorch makes one of a condition, in float16: of zeros and -inf, stretched to the scores and added to them."""

    def masked(net: Any, s: Any, m: Any) -> Any:
        zeros = net.broadcast_to(net.constant(np.zeros((1, 1), np.float16), "zero"), shape=(4, 5))
        kept = net.where(net.greater(net.input("row", (4, 5), "float16"), 0.0), zeros, -np.inf)
        return net.add(s, net.broadcast_to(kept, shape=(2, 4, 5)))

    net = softmax_of(masked, "float16")
    made = net.transform(SAFE)
    (question,) = [op for op in made.module.walk() if isinstance(op, ApplyOp) and op.operator.data in ("max", "min")]
    assert "equal" not in operators(made) and shape_of(question.inputs[0]) == (1, 4, 5)
    given = feeds_of(net)
    given["row"][1] = -1
    np.testing.assert_allclose(evaluated(made, given), evaluated(net, given), rtol=1e-5, atol=1e-6)


def test_another_softmax_keeps_its_question() -> None:
    net: Any = lw.Network("other")
    x, y = net.input("x", (2, 5)), net.input("y", (2, 5))
    empty = net.min(net.cast(net.equal(x, -np.inf), dtype="int8"), axis=1, keepdims=True)
    net.output(net.where(net.cast(empty, dtype="bool"), 0.0, net.softmax(y, axis=1)))
    assert operators(net.transform("lw-graph-masked-softmax,dce")) == operators(net)
