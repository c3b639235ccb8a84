"""Random ONNX graphs beside onnxruntime: a few of those of the long run (benchmarks/trust/onnx_graphs.py)."""

from typing import Any

import numpy as np
import onnx
import pytest
from gpu_programs import opencl_device
from onnx_trials import attempt, smallest, try_graph
from random_onnx import OPSETS, Graph, RefusedError, Sample, Tensor, of_own_mean, random_graph

SEEDS = range(1_000, 1_000 + len(OPSETS))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.few(2)
def test_random_graphs_agree_with_onnxruntime(seed: int) -> None:
    assert try_graph("llvm", seed, 5, 9).kind == "right"


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("backend", 2_000), ("backend", 2_001), ("opencl", 3_000), ("library", 4_001), ("library", 4_006)],
)
@pytest.mark.few(2)
def test_random_graphs_in_other_ways(kind: str, seed: int) -> None:
    if kind == "opencl":
        opencl_device()
    assert try_graph(kind, seed, 5, 9).kind == "right"


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_graphs_are_valid_reproducible_and_of_the_operator_set(seed: int) -> None:
    sample, again = random_graph(seed), random_graph(seed)
    assert sample.model.SerializeToString() == again.model.SerializeToString()
    onnx.checker.check_model(sample.model, full_check=True)
    assert 10 <= len(sample.model.graph.node) <= 34  # the last of 20 steps may be a layer between quantisers, of 15
    assert sample.model.opset_import[0].version == OPSETS[seed % len(OPSETS)]


def test_what_is_wrong_is_found_and_made_small() -> None:
    seed = next(s for s in range(100) if _relu_counts(random_graph(s)))
    _require_relu_is_found(random_graph(seed))


def test_results_in_a_graph_are_outputs_of_its_parts() -> None:
    """Operators behind a wrong result, which are wrong by it, do not stay."""
    graph = Graph(np.random.default_rng(0), 19)
    x = graph.given(np.arange(-4, 4, dtype=np.float32))
    (y,) = graph.add("Neg", graph.add("Relu", [x]))
    model = graph.model([y.name])
    _require_relu_is_found(Sample(graph, model, graph.feeds(model), {y.name: y}))


def _require_relu_is_found(sample: Sample) -> None:
    """An importer that takes every Relu for the identity is found, by a graph of one."""

    def call(model: Any, feeds: Any) -> Any:
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        for node in changed.graph.node:
            node.op_type = {"Relu": "Identity"}.get(node.op_type, node.op_type)
        from random_onnx import session_of

        return session_of(changed).run(None, feeds)

    ended = attempt(call, sample.model, sample.feeds, sample.wanted)
    assert ended.kind == "wrong" and "elements wrong, the first" in ended.text
    model, ended = smallest(call, sample, ended)
    assert ended.kind == "wrong" and [node.op_type for node in model.graph.node] == ["Relu"]


def _relu_counts(sample: Sample) -> bool:
    """True where a Relu that changes something is seen at an output."""
    relus = [n for n in sample.graph.nodes if n.op_type == "Relu"]
    return any((sample.graph.tensors[n.input[0]].value < -0.1).any() and n.output[0] in sample.wanted for n in relus)


@pytest.mark.parametrize(("length", "refused"), [(1, True), (3, False)])
def test_results_that_hang_on_one_rounding_are_refused(length: int, refused: bool) -> None:
    """An element that is its own mean: multiplied on the way and contracted with that subtraction, it leaves 9e-5."""
    graph = Graph(np.random.default_rng(0), 19)
    numbers = graph.given(np.arange(-12 * length, 12 * length, dtype=np.int8).reshape(2, 12, length))
    (x,) = graph.add("DequantizeLinear", [numbers, graph.constant(np.float32(0.0407)), graph.constant(np.int8(99))])
    scale = graph.constant(np.full(length, 1.95, np.float32))

    def norm() -> None:
        graph.add("LayerNormalization", [x, scale], axis=-1, off=of_own_mean(x, (length,), scale, 1e-5))

    if refused:
        with pytest.raises(RefusedError):
            norm()
    else:
        norm()


def test_how_far_results_may_be_off_follows_from_how_far_inputs_are() -> None:
    value = np.ones(4, np.float32)
    near, far = Tensor("a", value, value), Tensor("b", value, value * np.float32(1.001))
    assert near.tolerance < 1e-4 < far.tolerance < 0.1
    assert Tensor("c", value.astype(np.int32), value.astype(np.int32)).tolerance == 0
