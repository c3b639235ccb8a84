"""Cells of recurrent networks as one kernel a step on GPUs: gates, state and cell of a product in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_networks import feeds_of

import loopwright as lw
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import ApplyOp, GroupOp
from loopwright.graph.joined_outputs import joined_outputs
from loopwright.graph.tasks import GROUPED, group_tasks, grouping_for
from loopwright.search.measure.check import check_outputs
from loopwright.te import Tensor, compute, placeholder

H200 = "cuda model=h200"
FOR_GPUS = grouping_for(resolve_target(H200))
Net = Any


def product_of(net: Net, state: Any, label: str, columns: int) -> Any:
    random = np.random.default_rng(len(label))
    weight = net.constant(random.standard_normal((columns, state.shape[1]), np.float32) * 0.1, f"{label}_weight")
    bias = net.constant(random.standard_normal(columns, np.float32), f"{label}_bias")
    return net.bias_add(net.dense(state, weight), bias)


def gates_of(net: Net, sums: Any, count: int) -> list[Any]:
    size = sums.shape[-1] // count
    axis = len(sums.shape) - 1
    return [net.strided_slice(sums, begin=[k * size], end=[(k + 1) * size], axes=[axis]) for k in range(count)]


def lstm(steps: int = 3, batch: int = 2, size: int = 64) -> lw.Network:
    """As PyTorch takes it apart: what is given in all steps is one product, sums have an axis of one element ahead."""
    net: Net = lw.Network("lstm")
    h, c = net.input("h", (batch, size)), net.reshape(net.input("c", (batch, size)), shape=(1, batch, size))
    every = net.reshape(
        product_of(net, net.input("x", (steps * batch, 32)), "given", 4 * size), shape=(steps, batch, -1)
    )
    states = []
    for t in range(steps):
        step = net.squeeze(net.strided_slice(every, begin=[t], end=[t + 1], axes=[0]), axis=0)
        sums = net.add(net.reshape(product_of(net, h, "state", 4 * size), shape=(1, batch, 4 * size)), step)
        i, f, new, o = gates_of(net, sums, 4)
        c = net.add(net.multiply(net.sigmoid(f), c), net.multiply(net.sigmoid(i), net.tanh(new)))
        states.append(net.multiply(net.sigmoid(o), net.tanh(c)))
        h = net.reshape(states[-1], shape=(batch, size))
    net.output(net.concatenate(*states, axis=0), c)
    return net


def gru(steps: int = 3, batch: int = 2, size: int = 64) -> lw.Network:
    net: Net = lw.Network("gru")
    h = net.input("h", (batch, size))
    every = net.reshape(
        product_of(net, net.input("x", (steps * batch, 32)), "given", 3 * size), shape=(steps, batch, -1)
    )
    for t in range(steps):
        step = net.squeeze(net.strided_slice(every, begin=[t], end=[t + 1], axes=[0]), axis=0)
        given, made = gates_of(net, step, 3), gates_of(net, product_of(net, h, "state", 3 * size), 3)
        reset, update = (net.sigmoid(net.add(given[k], made[k])) for k in range(2))
        new = net.tanh(net.add(given[2], net.multiply(made[2], reset)))
        h = net.add(net.multiply(net.subtract(h, new), update), new)
    net.output(h)
    return net


def gated_unit() -> lw.Network:
    net: Net = lw.Network("gated")
    value, gate = gates_of(net, product_of(net, net.input("x", (3, 32)), "both", 128), 2)
    net.output(net.multiply(value, net.sigmoid(gate)))
    return net


def groups_of(net: lw.Network) -> list[list[str]]:
    found = [op for op in net.function.body.block.ops if isinstance(op, GroupOp)]
    return [[op.operator.data for op in group.body.block.ops if isinstance(op, ApplyOp)] for group in found]


@pytest.mark.parametrize(("build", "around"), [(lstm, 2), (gru, 1), (gated_unit, 0)])
def test_a_step_is_one_kernel(build: Any, around: int) -> None:
    """Beside them are the product of all inputs, and the concatenation of the states."""
    net = build()
    grouped = net.transform(FOR_GPUS)
    cells = [names for names in groups_of(grouped) if "dense_parts" in names]
    assert len(cells) == (1 if build is gated_unit else 3)
    assert len(groups_of(grouped)) == len(cells) + around
    feeds = feeds_of(net)
    for got, want in zip(grouped.evaluate(**feeds), net.evaluate(**feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert not any("dense_parts" in names for names in groups_of(net.transform(GROUPED))), "on CPUs it is a product"


@pytest.mark.parametrize("build", [lstm, gru, gated_unit])
@pytest.mark.few(2)
def test_the_kernel_of_a_step_is_right(build: Any) -> None:
    """Steps share a task, of one launch without shared memory."""
    target = resolve_target(H200)
    tasks = {id(pair.task): pair.task for pair in group_tasks(build().transform(FOR_GPUS), target)}
    (task,) = (each for each in tasks.values() if "dense_parts" in each.name)
    (sketch,) = task.sketches
    rows = sketch.sample(np.random.default_rng(0), 4)
    for row in (sketch.default, *rows):
        reference, sch = task.reference, sketch.schedule(row)
        found = lw.interpret(scheduled_kernel(str(task.module), sch), *reference.inputs)
        outputs = found if isinstance(found, tuple | list) else [found]
        check_outputs(
            task.name, ["state", "cell"][: len(outputs)], [np.asarray(each) for each in outputs], reference, sch
        )


def test_what_is_read_otherwise_stays_a_product() -> None:
    """As a whole, in unequal parts, in some parts only, and of many rows."""

    def groups(rows: int, cut: Any) -> list[list[str]]:
        net: Net = lw.Network("other")
        net.output(*cut(net, product_of(net, net.input("x", (rows, 32)), "w", 96)))
        return groups_of(net.transform(FOR_GPUS))

    def sliced(net: Net, sums: Any, begin: int, end: int) -> Any:
        return net.relu(net.strided_slice(sums, begin=[begin], end=[end], axes=[1]))

    def halves(net: Net, sums: Any) -> list[Any]:
        return [sliced(net, sums, 0, 48), sliced(net, sums, 48, 96)]

    assert any("dense_parts" in names for names in groups(16, halves))
    for rows, cut in [
        (17, halves),
        (4, lambda net, sums: [*halves(net, sums), net.relu(sums)]),
        (4, lambda net, sums: [sliced(net, sums, 0, 32), sliced(net, sums, 32, 96)]),
        (4, lambda net, sums: [sliced(net, sums, 0, 32), sliced(net, sums, 64, 96)]),
        (4, lambda net, sums: [sliced(net, sums, 16, 64), sliced(net, sums, 48, 96)]),
    ]:
        assert not any("dense_parts" in names for names in groups(rows, cut))


def test_joined_outputs_compute_what_they_share_once() -> None:
    x = placeholder((4, 6), name="x")
    twice: Tensor = compute((4, 6), lambda i, j: x[i, j] * 2.0, "twice")
    turned: Tensor = compute((4, 6), lambda i, j: twice[i, 5 - j] + twice[i, j], "turned")
    both = joined_outputs([twice, turned])
    assert both[0].op is both[1].op
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    first, second = (np.zeros((4, 6), np.float32) for _ in range(2))
    lw.build([x, *both], target="llvm cores=1")(values, first, second)
    np.testing.assert_array_equal(first, values * 2)
    np.testing.assert_array_equal(second, values[:, ::-1] * 2 + values * 2)
    other: Tensor = compute((4,), lambda i: x[i, 0], "other")
    assert joined_outputs([twice, other]) == [twice, other]
