"""`lw.onnx.InferenceSession` is used as onnxruntime's is, and gives what it gives."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model, small_network

import loopwright as lw
from loopwright.frontends.onnx import session as sessions
from loopwright.frontends.onnx.versions import Versions


def images(count: int = 1, seed: int = 0) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).standard_normal((count, 3, 12, 12)).astype(np.float32)}


def versions_of(session: lw.onnx.InferenceSession) -> Versions:
    assert isinstance(session._versions, Versions)
    return session._versions


def both(proto: onnx.ModelProto, **options: Any) -> tuple[lw.onnx.InferenceSession, Any]:
    data = proto.SerializeToString()
    return lw.onnx.InferenceSession(data, **options), onnxruntime.InferenceSession(data)


def test_it_says_of_a_model_what_onnxruntime_says() -> None:
    proto = small_network(open_batch=True)
    proto.producer_name, proto.model_version, proto.doc_string = "tests", 3, "a small network"
    helper.set_model_props(proto, {"classes": "5"})
    ours, theirs = both(proto)
    for mine, other in ((ours.get_inputs(), theirs.get_inputs()), (ours.get_outputs(), theirs.get_outputs())):
        assert [(a.name, a.type, a.shape) for a in mine] == [(a.name, a.type, a.shape) for a in other]
        assert list(map(str, mine)) == list(map(str, other))
    meta, wanted = ours.get_modelmeta(), theirs.get_modelmeta()
    for field in ("producer_name", "graph_name", "domain", "description", "graph_description", "version"):
        assert getattr(meta, field) == getattr(wanted, field)
    assert meta.custom_metadata_map == wanted.custom_metadata_map == {"classes": "5"}
    assert ours.get_providers() == theirs.get_providers() == ["CPUExecutionProvider"]
    assert ours.get_overridable_initializers() == theirs.get_overridable_initializers() == []


@pytest.mark.parametrize("dtype", ["FLOAT", "DOUBLE", "INT64", "BOOL", "UINT8", "FLOAT16", "INT32"])
def test_types_have_the_names_that_onnxruntime_gives_them(dtype: str) -> None:
    proto = model(
        [helper.make_node("Identity", ["x"], ["y"])], {"x": (2, "rows")}, ["y"], None, 17, getattr(TensorProto, dtype)
    )
    proto.graph.output[0].type.CopyFrom(proto.graph.input[0].type)
    ours, theirs = both(proto)
    assert ours.get_inputs()[0].type == theirs.get_inputs()[0].type == ours.get_outputs()[0].type


def test_arrays_are_read_where_they_are_and_results_are_new() -> None:
    """Also an input that is a result, an array with gaps, and one that is only read; results outlive the session."""
    nodes = [helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Add", ["x", "c"], ["more"])]
    proto = model(nodes, {"x": (2, 3)}, ["same", "more"], {"c": np.ones((2, 3), np.float32)})
    session, x = lw.onnx.InferenceSession(proto), np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
    x.flags.writeable = False
    same, more = session.run(None, {"x": x})
    again, still = session.run(None, {"x": more})
    del session
    assert not any(np.shares_memory(a, b) for a, b in ((same, x), (again, more), (same, again)))
    for found, wanted in ((same, x), (more, x + 1), (again, x + 1), (still, x + 2)):
        np.testing.assert_array_equal(found, wanted)


def test_it_runs_paths_bytes_and_models_at_each_batch(tmp_path: Path) -> None:
    proto, path = small_network(open_batch=True), tmp_path / "small.onnx"
    onnx.save(proto, path)
    theirs = onnxruntime.InferenceSession(str(path))
    for given in (path, str(path), path.read_bytes(), proto):
        session = lw.onnx.InferenceSession(given, versions=2)
        for batch in (1, 3, 1):
            (got,), (wanted,) = session.run(None, images(batch)), theirs.run(None, images(batch))
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_outputs_are_chosen_by_name_and_belong_to_the_caller() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["x"], ["n"])]
    session = lw.onnx.InferenceSession(model(nodes, {"x": (2, 3)}, ["r", "n"]))
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    n, r = session.run(["n", "r"], {"x": x})
    assert np.array_equal(n, -x) and np.array_equal(r, np.maximum(x, 0))
    assert len(session.run([], {"x": x})) == 2
    session.run(None, {"x": np.zeros_like(x)})
    assert np.array_equal(n, -x)
    assert [info.shape for info in session.get_outputs()] == [[2, 3], [2, 3]]  # which the model does not say


def test_the_versions_that_ran_last_are_kept() -> None:
    session = lw.onnx.InferenceSession(small_network(open_batch=True), versions=2)
    kept = versions_of(session)
    for batch in (1, 2, 1, 3):
        session.run(None, images(batch))
    assert len(kept) == 2
    latest = kept.latest
    session.run(None, images(1))
    assert kept.latest is latest  # of batch 1, which ran after that of 2, nothing is compiled anew
    session.run(None, images(2))
    assert kept.latest is not latest
    with pytest.raises(ValueError, match="at least 1 version of its model, got versions=0"):
        lw.onnx.InferenceSession(small_network(), versions=0)


def test_a_model_of_known_shapes_is_compiled_when_the_session_is_made() -> None:
    assert len(versions_of(lw.onnx.InferenceSession(small_network()))) == 1
    assert len(versions_of(lw.onnx.InferenceSession(small_network(open_batch=True)))) == 0


WRONG: dict[str, tuple[Any, Any, str]] = {
    "nothing given": ({}, None, r"Required inputs \(\['x'\]\) are missing from input feed \(\[\]\)"),
    "another input": ({**images(), "q": np.ones(1)}, None, "Invalid input name: q"),
    "a weight": ({**images(), "w": np.ones(1)}, None, "Invalid input name: w"),
    "another type": (
        {"x": np.zeros((1, 3, 12, 12))},
        None,
        r"Actual: \(tensor\(double\)\) ?, expected: \(tensor\(float",
    ),
    "another rank": ({"x": images()["x"][0]}, None, "Invalid rank for input: x Got: 3 Expected: 4"),
    "another extent": ({"x": images()["x"][:, :2]}, None, "index: 1 Got: 2 Expected: 3"),
    "another output": (images(), ["z"], "Invalid output name: ?z"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_onnxruntimes_words(case: str) -> None:
    feeds, outputs, said = WRONG[case]
    ours, theirs = both(small_network(open_batch=True))
    with pytest.raises(ValueError, match=said):
        ours.run(outputs, feeds)
    with pytest.raises(Exception, match=said):
        theirs.run(outputs, feeds)


def test_lists_are_taken_as_the_inputs_type() -> None:
    ours, theirs = both(small_network())
    feeds = {"x": images()["x"].tolist()}
    np.testing.assert_allclose(ours.run(None, feeds)[0], theirs.run(None, feeds)[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="run takes arrays by the names of inputs, got a ndarray"):
        ours.run(None, images()["x"])


def test_options_and_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    monkeypatch.setattr(sessions, "supports_device", lambda device: device == "CPU")
    wanted: list[Any] = ["CUDAExecutionProvider", ("CPUExecutionProvider", {"device_id": 0})]
    session = lw.onnx.InferenceSession(small_network(), options, wanted)
    assert session.get_providers() == lw.onnx.get_available_providers() == ["CPUExecutionProvider"]
    assert versions_of(session).target == "llvm cores=1" and session.get_session_options() is options
    with pytest.raises(
        ValueError, match="there is no provider TensorrtExecutionProvider; there are CPUExecutionProvid"
    ):
        lw.onnx.InferenceSession(small_network(), providers=["TensorrtExecutionProvider"])
    with pytest.raises(ValueError, match="no device of CUDAExecutionProvider is here; there are CPUExecutionProvider"):
        lw.onnx.InferenceSession(small_network(), providers=["CUDAExecutionProvider"])
    with pytest.raises(ValueError, match="the provider option arena_extend_strategy is not supported"):
        lw.onnx.InferenceSession(small_network(), None, ["CPUExecutionProvider"], [{"arena_extend_strategy": "x"}])
    with pytest.raises(ValueError, match=r"option enable_profiling is not supported: lw\.compile"):
        lw.onnx.InferenceSession(small_network(), SimpleNamespace(enable_profiling=True))


def test_what_a_session_does_not_have_is_a_sentence() -> None:
    session = lw.onnx.InferenceSession(small_network())
    for method in (session.io_binding, session.run_with_iobinding, session.run_async):
        with pytest.raises(NotImplementedError, match="outputs cannot be bound to memory: run returns arrays"):
            method()
    with pytest.raises(lw.OnnxImportError, match=r"operator Multinomial is not supported"):
        lw.onnx.InferenceSession(model([helper.make_node("Multinomial", ["x"], ["y"])], {"x": (1, 4)}, ["y"]))
    with pytest.raises(lw.OnnxImportError, match=r"model \'none\.onnx\' cannot be imported: No such file"):
        lw.onnx.InferenceSession("none.onnx")
    with pytest.raises(AttributeError, match="has no attribute 'Session'"):
        lw.onnx.Session  # noqa: B018


def test_inputs_that_decide_shapes_may_change() -> None:
    proto = model([helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": (2, 6)}, ["y"])
    proto.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT64, (2,)))
    session, x = lw.onnx.InferenceSession(proto), np.arange(12, dtype=np.float32).reshape(2, 6)
    for shape in ((3, 4), (6, 2), (3, 4)):
        (got,) = session.run(None, {"x": x, "s": np.array(shape)})
        assert np.array_equal(got, x.reshape(shape))


def test_outputs_without_a_kernel_are_constants() -> None:
    proto = model([helper.make_node("Shape", ["x"], ["y"])], {"x": ("n", 2)}, ["y"])
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    assert lw.onnx.InferenceSession(proto).run(None, {"x": np.ones((3, 2), np.float32)})[0].tolist() == [3, 2]
    held = numpy_helper.from_array(np.ones(2, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Add", ["w", "w"], ["y"])],
        "held",
        [],
        [helper.make_value_info("y", onnx.TypeProto())],
        [held],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert lw.onnx.InferenceSession(proto).run(None, {})[0].tolist() == [2, 2]
