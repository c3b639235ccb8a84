"""A token through layers like Llama's, beside a cache: few kernels on CUDA devices, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest
from decode import Layer, step
from small_networks import feeds_of

import loopwright as lw
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import GroupOp
from loopwright.graph.tasks import group_tasks, grouping_for
from loopwright.search.measure.check import check_outputs

H200 = resolve_target("cuda model=h200")
LAYER = Layer(hidden=512, wide=768, size=64)


def network(layers: int = 1, cached: int = 37, layer: Layer = LAYER) -> lw.Network:
    random = np.random.default_rng(0)
    shapes = layer.weights().items()
    weights = [{n: (random.standard_normal(s) / s[1] ** 0.5).astype(np.float16) for n, s in shapes}] * layers
    return step(layer, weights, cached)


def kernels_of(net: lw.Network) -> list[str]:
    made = net.transform(grouping_for(H200))
    return [op.label.data for op in made.module.walk() if isinstance(op, GroupOp)]


def test_a_layer_is_few_kernels() -> None:
    found = kernels_of(network())
    assert len(found) == 6, found
    assert [k for k in found if "dense" in k] == ["rms_dense", "dense_add", "rms_dense_silu_multiply", "dense_add"]
    assert sum("concatenate_multiply" in k for k in found) == 2  # attention of rotated queries, and both caches
    assert len(kernels_of(network(layers=3))) == 18


@pytest.mark.parametrize("cached", [1, 37])
def test_groups_give_what_the_network_does(cached: int) -> None:
    net = network(cached=cached)
    given = feeds_of(net)
    (got,), (wanted,) = net.transform(grouping_for(H200)).evaluate(**given), net.evaluate(**given)
    exact = np.asarray(wanted, np.float64)
    np.testing.assert_allclose(np.asarray(got, np.float64), exact, atol=4e-3 * np.abs(exact).max())


@pytest.mark.slow(1.2)
def test_kernels_compute_what_their_operators_say() -> None:
    net = network(layer=Layer(hidden=256, wide=384, size=64), cached=21)
    for task in {id(pair.task): pair.task for pair in group_tasks(net.transform(grouping_for(H200)), H200)}.values():
        schedule, reference = task.default_schedule, task.reference
        found = lw.interpret(scheduled_kernel(str(task.module), schedule), *reference.inputs)
        outputs = [np.asarray(x) for x in (found if isinstance(found, tuple | list) else [found])]
        check_outputs(task.name, [f"output {k}" for k in range(len(outputs))], outputs, reference, schedule)


def test_chains_beside_each_other_give_what_the_network_does() -> None:
    """Concatenations that grow, each scaled behind, as DenseNet has them; and gates of two cells."""
    net, random = lw.Network("beside"), np.random.default_rng(1)
    x = net.input("x", (1, 3, 5, 7))
    for number in range(3):
        scale = net.constant(random.standard_normal((1, x.shape[1], 1, 1)).astype(np.float32))
        new = net.apply("max_pool", net.apply("relu", x * scale), kernel=3, stride=1, padding=1)
        x = net.apply("concatenate", x, new, axis=1)
        y = net.apply("sigmoid", net.input(f"y{number}", (3, 11)))
        net.output(net.apply("transpose", net.apply("tanh", y)), y)
    net.output(x)
    given = feeds_of(net)
    made = net.transform(grouping_for(H200))
    for got, wanted in zip(made.evaluate(**given), net.evaluate(**given), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-5, atol=1e-6)
    for task in {id(pair.task): pair.task for pair in group_tasks(made, H200)}.values():
        schedule, reference = task.default_schedule, task.reference
        found = lw.interpret(scheduled_kernel(str(task.module), schedule), *reference.inputs)
        outputs = [np.asarray(x) for x in (found if isinstance(found, tuple | list) else [found])]
        check_outputs(task.name, [f"output {k}" for k in range(len(outputs))], outputs, reference, schedule)
