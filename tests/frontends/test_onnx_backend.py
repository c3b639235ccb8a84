"""The module `loopwright.onnx_backend` is a backend as ONNX has it, and agrees with onnxruntime."""

import numpy as np
import onnx.backend.base
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_models import LIGHT, model, small_network, with_random_weights, without_softmax

import loopwright as lw
from loopwright import onnx_backend
from loopwright.backends.cuda.driver import MissingCuda


def test_it_is_a_backend() -> None:
    assert issubclass(onnx_backend.Backend, onnx.backend.base.Backend)
    x = np.linspace(-1, 1, 432, dtype=np.float32).reshape(1, 3, 12, 12)
    proto = small_network()
    (wanted,) = lw.from_onnx(proto).evaluate(x=x)
    prepared = onnx_backend.Backend.prepare(proto)
    for inputs in ([x], (x,), x, {"x": x}):
        found = prepared.run(inputs)
        assert found["y"] is found[0] and isinstance(found, tuple)
        np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(onnx_backend.run_model(proto, [x])[0], wanted, rtol=1e-4, atol=1e-5)


def test_a_node_alone() -> None:
    node = helper.make_node("Mul", ["a", "b"], ["c"])
    (found,) = onnx_backend.run_node(node, [np.arange(3.0, dtype=np.float32), np.full(3, 2, np.float32)])
    assert found.tolist() == [0, 2, 4]
    softmax = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    (found,) = onnx_backend.run_node(softmax, [np.zeros((2, 2, 2), np.float32)], opset_version=11)
    assert np.allclose(found, 0.25)


def test_other_shapes_are_compiled_when_they_come() -> None:
    prepared = onnx_backend.prepare(small_network(open_batch=True))
    for batch in (1, 2, 1):
        assert prepared.run([np.ones((batch, 3, 12, 12), np.float32)])[0].shape == (batch, 5)


def test_inputs_that_decide_shapes_are_constants_of_what_is_compiled() -> None:
    proto = model([helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": (2, 6)}, ["y"])
    proto.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT64, (2,)))
    x, prepared = np.arange(12, dtype=np.float32).reshape(2, 6), onnx_backend.prepare(proto)
    for shape in ((3, 4), (6, 2), (3, 4)):
        assert np.array_equal(prepared.run([x, np.array(shape)])[0], x.reshape(shape))


def test_devices_and_compatibility() -> None:
    assert onnx_backend.supports_device("CPU") and not onnx_backend.supports_device("TPU")
    with pytest.raises(ValueError, match="there is no device TPU here; devices are CPU and CUDA"):
        onnx_backend.prepare(small_network(), "TPU")
    assert onnx_backend.is_compatible(small_network(open_batch=True))
    unknown = model([helper.make_node("NonZero", ["x"], ["y"])], {"x": (4,)}, ["y"])
    assert not onnx_backend.is_compatible(unknown)
    with pytest.raises(lw.OnnxImportError, match="operator NonZero is not supported"):
        onnx_backend.run_model(unknown, [np.ones(4, np.float32)])
    with pytest.raises(lw.OnnxImportError, match="operator NonZero is not supported"):
        onnx_backend.prepare(unknown)
    with pytest.raises(ValueError, match="input 'x' is missing"):
        onnx_backend.run_model(small_network(), {})
    with pytest.raises(ValueError, match="there is no option 'recrods'; options are target, records, pipeline, proce"):
        onnx_backend.prepare(small_network(), recrods="x.jsonl")
    prepared, x = onnx_backend.prepare(small_network()), np.ones((1, 3, 12, 12), np.float32)
    with pytest.raises(ValueError, match="model tested has 1 inputs, got 2"):
        prepared.run([x, x])
    with pytest.raises(ValueError, match="there is no input 'z'; there are x"):
        prepared.run({"x": x, "z": x})


def test_a_device_that_is_not_there_is_not_compatible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_backend, "target_of_device", lambda: (_ for _ in ()).throw(MissingCuda("no driver")))
    for proto in (small_network(), small_network(open_batch=True)):
        assert onnx_backend.is_compatible(proto, "CPU:0") and not onnx_backend.is_compatible(proto, "CUDA")
    assert not onnx_backend.supports_device("CPU:1")


def test_an_open_shape_hides_nothing_that_is_not_supported() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("NonZero", ["r"], ["y"])]
    proto = model(nodes, {"x": ["N"]}, ["y"])
    assert not onnx_backend.is_compatible(proto)
    with pytest.raises(lw.OnnxImportError) as refused:
        onnx_backend.prepare(proto)
    why = "the shape of its result depends on values that are not known, and shapes are constants"
    assert refused.value.reasons == (f"operator NonZero is not supported (node 'y'): {why}",)


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        onnx_backend.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("name", "operators", "tasks"),
    [
        ("resnet50", 177, 29),
        ("shufflenet", 221, 30),
        ("squeezenet", 93, 30),
        ("inception_v1", 200, 70),
        ("bvlc_alexnet", 30, 20),
    ],
)
@pytest.mark.few(1)
def test_light_models_are_imported(name: str, operators: int, tasks: int) -> None:
    net = lw.from_onnx(LIGHT / f"light_{name}.onnx", layout=None)
    found = [op for op in net.module.walk() if op.name == "lw_graph.apply"]
    assert len(found) == operators
    assert 5 < len(lw.extract_tasks(net)[0]) <= tasks


@pytest.mark.slow(1.2)
def test_a_light_model_agrees_with_onnxruntime() -> None:
    """SqueezeNet with random weights; benchmarks/onnx_models.py does all of them."""
    proto = without_softmax(with_random_weights(onnx.load(LIGHT / "light_squeezenet.onnx")))
    x = np.random.default_rng(1).uniform(0, 1, (1, 3, 224, 224)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"data_0": x})
    (found,) = onnx_backend.run_model(proto, [x])
    assert wanted.std() > 0.1
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())
