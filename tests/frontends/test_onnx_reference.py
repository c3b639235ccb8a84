"""Operators beside ONNX's reference implementation, single nodes on random data, evaluated and compiled."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw

Array = npt.NDArray[Any]
LEARNING = "ai.onnx.ml"


def drawn(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 3).astype(dtype)


def node(operator: str, feeds: dict[str, Array], domain: str = "", dtype: str = "", **attributes: Any) -> ModelProto:
    """A model of one node, whose result has the first input's type where none is named."""
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    made = kinds["x"] if not dtype else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node(operator, list(feeds), ["y"], domain=domain, **attributes)],
        "one",
        [helper.make_tensor_value_info(name, kinds[name], array.shape) for name, array in feeds.items()],
        [helper.make_tensor_value_info("y", made, None)],
    )
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid(LEARNING, 4)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)


def check(proto: ModelProto, feeds: dict[str, Array], rtol: float = 1e-5) -> Array:
    """Compare the network, evaluated and compiled, with the reference implementation; returns the result."""
    computed: Any = ReferenceEvaluator(proto).run(None, feeds)
    wanted = np.asarray(computed[0])
    net = lw.from_onnx(proto)
    run = lw.compile(net, "llvm cores=1", processes=1).executor()
    run.run(**feeds)
    for found in (net.evaluate(**feeds)[0], run.get_output()):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-6)
    return wanted


pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")


# -- caches ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 7, 4), -2), ((2, 7, 5), 1), ((2, 3, 5, 7), -1)])
@pytest.mark.few(6)
def test_entries_of_a_cache_are_written_where_each_sample_is(
    mode: str, steps: int, shape: tuple[int, ...], axis: int
) -> None:
    update = list(shape)
    update[axis] = steps
    first = np.array([5, 6]) if mode == "circular" else np.array([0, 7 - steps])
    feeds = {"x": drawn(*shape), "u": drawn(*update, seed=1), "w": first}
    check(node("TensorScatter", feeds, mode=mode, axis=axis), feeds, rtol=0)


def test_entries_are_written_from_the_start_where_no_place_is_given() -> None:
    feeds = {"x": drawn(2, 5, 4, dtype="float64"), "u": drawn(2, 2, 4, dtype="float64", seed=1)}
    wanted = check(node("TensorScatter", feeds), feeds, rtol=0)
    assert np.array_equal(wanted[:, :2], feeds["u"]) and np.array_equal(wanted[:, 2:], feeds["x"][:, 2:])


# -- features ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 3, 6)], ids=str)
@pytest.mark.parametrize("places", [[[4, 0, 4, 5]], [2], [[1, 3], [5, 0]]], ids=str)
def test_features_at_places(shape: tuple[int, ...], places: list[Any]) -> None:
    feeds = {"x": drawn(*shape), "i": np.array(places)}
    check(node("ArrayFeatureExtractor", feeds, LEARNING), feeds, rtol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_features_above_a_threshold(dtype: str) -> None:
    feeds = {"x": drawn(4, 5, dtype=dtype)}
    wanted = check(node("Binarizer", feeds, LEARNING, threshold=1.0), feeds, rtol=0)
    assert 0 < wanted.sum() < wanted.size


@pytest.mark.parametrize("count", [1, 5])
def test_features_scaled(count: int) -> None:
    feeds, offset, scale = {"x": drawn(4, 5)}, drawn(count).tolist(), drawn(count, seed=1).tolist()
    check(node("Scaler", feeds, LEARNING, offset=offset, scale=scale), feeds)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_normalised_but_those_of_zeros(norm: str) -> None:
    feeds = {"x": drawn(4, 5)}
    feeds["x"][2] = 0
    check(node("Normalizer", feeds, LEARNING, norm=norm), feeds)


@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regression(targets: int) -> None:
    feeds, weights = {"x": drawn(4, 5)}, drawn(5 * targets, seed=1).tolist()
    attributes = {"coefficients": weights, "intercepts": drawn(targets, seed=2).tolist(), "targets": targets}
    check(node("LinearRegressor", feeds, LEARNING, **attributes, post_transform="NONE"), feeds)


@pytest.mark.parametrize("values", [[0.5], [1.0, 2.0, 3.0, 4.0, 5.0]], ids=len)
@pytest.mark.parametrize("replaced", [np.nan, -1.0])
def test_missing_features_replaced(values: list[float], replaced: float) -> None:
    feeds = {"x": drawn(4, 5)}
    feeds["x"][[0, 1, 3], [2, 4, 2]] = replaced
    made = node("Imputer", feeds, LEARNING, imputed_value_floats=values, replaced_value_float=float(replaced))
    check(made, feeds, rtol=0)


@pytest.mark.parametrize(
    ("operator", "attributes", "said"),
    [
        ("Normalizer", {"norm": "L3"}, "norm L3 is not supported; norms are MAX, L1 and L2"),
        ("LinearRegressor", {"coefficients": [1.0], "post_transform": "PROBIT"}, "post_transform PROBIT is not"),
        ("Imputer", {"imputed_value_int64s": [1]}, "imputed_value_floats is missing for data of float32"),
    ],
)
def test_what_features_lack_is_said(operator: str, attributes: dict[str, Any], said: str) -> None:
    with pytest.raises(lw.OnnxImportError, match=said):
        lw.from_onnx(node(operator, {"x": drawn(2, 1)}, LEARNING, **attributes))
