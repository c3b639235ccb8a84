"""RNN, GRU and LSTM beside onnxruntime: directions, lengths of samples, given states, activations, peepholes."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, SIZE, HIDDEN = 5, 3, 4, 6


def layer(
    operator: str,
    weights: str = "wrb",
    states: bool = False,
    lengths: bool = False,
    dtype: str = "float32",
    steps: int = STEPS,
    **attributes: Any,
) -> tuple[ModelProto, dict[str, Any]]:
    """A model of one layer, and what it reads; `weights` are inputs by their letters in ONNX, p the peepholes."""
    rng, gates = np.random.default_rng(0), GATES[operator]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rows, batched = gates * HIDDEN, attributes.get("layout", 0)
    shapes = {"w": (rows, SIZE), "r": (rows, HIDDEN), "b": (2 * rows,), "p": (3 * HIDDEN,)}
    held = {k: (rng.standard_normal((directions, *shapes[k])) / 2).astype(dtype) for k in weights}
    state = (BATCH, directions, HIDDEN) if batched else (directions, BATCH, HIDDEN)
    feeds = {"x": rng.standard_normal((BATCH, steps, SIZE) if batched else (steps, BATCH, SIZE)).astype(dtype)}
    if lengths:
        feeds["s"] = np.array([2, 5, 3], np.int32)
    if states:
        feeds |= {k: rng.standard_normal(state).astype(dtype) for k in ("h", "c")[: 1 + (operator == "LSTM")]}
    names = [name if name in held or name in feeds else "" for name in "xwrbshcp"]
    while not names[-1]:
        names.pop()
    outputs = ["y", "yh", "yc"][: 2 + (operator == "LSTM")]
    graph = helper.make_graph(
        [helper.make_node(operator, names, outputs, hidden_size=HIDDEN, **attributes)],
        "layer",
        [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in feeds.items()],
        [helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    for info in graph.output:
        info.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


CASES: dict[str, dict[str, Any]] = {
    **{
        f"{operator} {direction}{' ragged' if ragged else ''}": {
            "operator": operator, "direction": direction, "lengths": ragged, "states": ragged
        }
        for operator in GATES
        for direction in ("forward", "reverse", "bidirectional")
        for ragged in (False, True)
    },
    **{f"{operator} without biases": {"operator": operator, "weights": "wr", "states": True} for operator in GATES},
    **{f"{operator} clipped": {"operator": operator, "clip": 0.4, "states": True} for operator in GATES},
    "one step": {"operator": "LSTM", "steps": 1},
    "the product reset": {"operator": "GRU", "linear_before_reset": 1},
    "the product reset, ragged": {
        "operator": "GRU", "linear_before_reset": 1, "weights": "wr", "direction": "reverse", "lengths": True
    },
    "peepholes": {"operator": "LSTM", "weights": "wrbp", "states": True},
    "coupled gates": {"operator": "LSTM", "weights": "wrbp", "input_forget": 1},
    "affine": {"operator": "RNN", "activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.2]},
    "two activations": {
        "operator": "RNN", "direction": "bidirectional", "activations": ["LeakyRelu", "Relu"], "activation_alpha": [0.3]
    },
    "hard gates": {
        "operator": "GRU", "activations": ["HardSigmoid", "ScaledTanh"], "activation_alpha": [0.3, 0.9],
        "activation_beta": [0.4, 0.8],
    },
    "three activations": {
        "operator": "LSTM", "activations": ["HardSigmoid", "Softsign", "Elu"], "activation_alpha": [0.3, 0.7],
        "activation_beta": [0.4],
    },
    "a threshold": {"operator": "RNN", "activations": ["ThresholdedRelu"], "activation_alpha": [0.25]},
    "softplus": {"operator": "RNN", "activations": ["Softplus"]},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.few(18)
def test_layers_give_what_onnxruntime_gives(case: str) -> None:
    proto, feeds = layer(**CASES[case])
    wanted = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    _agree(lw.from_onnx(proto).evaluate(**feeds), wanted)


@pytest.mark.parametrize("operator", GATES)
def test_the_batch_may_come_first(operator: str) -> None:
    """Of which onnxruntime has no such layers, nor any of doubles; ONNX's reference implementation has."""
    proto, feeds = layer(operator, layout=1, states=True, dtype="float64")
    _agree(lw.from_onnx(proto).evaluate(**feeds), ReferenceEvaluator(proto).run(None, feeds))


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
def test_a_compiled_layer_has_two_kernels_for_all_its_steps() -> None:
    proto, feeds = layer("LSTM", steps=9)
    wanted = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    compiled = lw.compile(lw.from_onnx(proto), "llvm cores=1", processes=1)
    run = compiled.executor()
    run.run(**feeds)
    _agree([run.get_output(k) for k in range(3)], wanted)
    labels = [compiled.plan.kernels[step.kernel].label for step in compiled.plan.steps]
    assert labels.count("lstm_gates") == 9 and len(compiled.plan.kernels) < 9


def test_layers_that_cannot_be_unrolled_are_refused() -> None:
    proto, _ = layer("GRU", steps=3000)
    with pytest.raises(lw.OnnxImportError, match="3,000 steps are more than the 2,048 that are unrolled"):
        lw.from_onnx(proto)
    proto, _ = layer("RNN", activations=["Swish"])
    with pytest.raises(lw.OnnxImportError, match="activation 'swish' is none of sigmoid, tanh"):
        lw.from_onnx(proto)


def _agree(got: Any, wanted: Any) -> None:
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        close = 1e-12 if ours.dtype == np.float64 else 2e-5
        np.testing.assert_allclose(ours, theirs, rtol=close, atol=close)
