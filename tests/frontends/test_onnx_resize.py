"""Resizes of ONNX: places at the edge of a crop are inside whatever roundings put them at; scales that axes share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw


@pytest.mark.parametrize("begin, end", [(0.2, 1.0), (-0.1, 1.0), (0.3, 1.0), (0.7, 0.0), (1.0, 0.0), (0.2, 0.9)])
@pytest.mark.parametrize("extent, made", [(3, 4), (12, 18), (5, 7), (10, 15), (9, 2), (6, 12)])
@pytest.mark.few(10)
def test_the_last_element_of_a_crop_is_inside(begin: float, end: float, extent: int, made: int) -> None:
    x = np.random.default_rng(extent).standard_normal((1, 1, 1, extent)).astype("float32")
    roi = np.array([0, 0, 0, begin, 1, 1, 1, end], np.float32)
    places = np.linspace(roi[3], roi[7], made) * (extent - 1)
    inside = (places > -1e-6) & (places < extent - 1 + 1e-6)
    wanted = np.where(inside, np.interp(places, np.arange(extent), x[0, 0, 0]), 9.0)
    got = np.asarray(_cropping(extent, made, roi).evaluate(x=x))
    np.testing.assert_allclose(got.reshape(-1), wanted, atol=1e-5)


@pytest.mark.parametrize("policy, sizes", [("not_larger", (3, 4)), ("not_smaller", (1, 4)), ("not_larger", (9, 5))])
@pytest.mark.parametrize("extents", [(2, 9), (7, 12), (5, 16)])
def test_axes_share_the_scale_that_keeps_their_aspect(
    policy: str, sizes: tuple[int, int], extents: tuple[int, int]
) -> None:
    """Also where an extent by that scale is no whole number, and the scale not that of the extents."""
    scales = [made / extent for made, extent in zip(sizes, extents, strict=True)]
    scale = min(scales) if policy == "not_larger" else max(scales)
    made = [int(scale * extent + 0.5) for extent in extents]
    x = np.random.default_rng(1).standard_normal((1, 1, *extents)).astype("float32")
    options = {"axes": [2, 3], "keep_aspect_ratio_policy": policy}
    net = _resizing(x.shape, [1, 1, *made], {"sizes": np.array(sizes, np.int64)}, options)
    wanted = x[0, 0].astype("float64")
    for axis, (extent, count) in enumerate(zip(extents, made, strict=True)):
        places = np.clip((np.arange(count) + 0.5) / scale - 0.5, 0, extent - 1)
        weights = [np.interp(places, np.arange(extent), row) for row in np.eye(extent)]
        wanted = np.moveaxis(np.tensordot(wanted, weights, (axis, 0)), -1, axis)
    np.testing.assert_allclose(np.asarray(net.evaluate(x=x)).reshape(made), wanted, atol=1e-5)


@pytest.mark.parametrize(
    "extents, sizes, policy",
    [
        ((509, 1283), (90, 100), "not_smaller"),  # beside all of the other axis a matrix took 6.7 GB
        ((61, 7), (13, 30), "not_smaller"),  # 30 / 7 in single precision takes other elements
        ((97, 311), (16, 40), "not_larger"),
    ],
)
@pytest.mark.parametrize("mode", ["nearest", "cubic"])
def test_axes_share_the_scale_in_double_precision(
    extents: tuple[int, int], sizes: tuple[int, int], policy: str, mode: str
) -> None:
    """As the reference implementation has it, whatever extents have in common."""
    options: dict[str, Any] = {"axes": [2, 3], "keep_aspect_ratio_policy": policy}
    options |= {"coordinate_transformation_mode": "asymmetric"}
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode, **options)
    x, asked = np.random.default_rng(2).standard_normal((1, 1, *extents)).astype("float32"), np.array(sizes)
    computed: Any = ReferenceEvaluator(node, opsets={"": 19}).run(None, {"x": x, "sizes": asked})
    wanted = computed[0]
    net = _resizing(x.shape, wanted.shape, {"sizes": asked}, options, mode)
    np.testing.assert_allclose(np.asarray(net.evaluate(x=x)).reshape(wanted.shape), wanted, atol=1e-5)


@pytest.mark.parametrize("policy", ["not_smaller", "not_larger"])
@pytest.mark.parametrize("extents, sizes", [((5, 7), (8, 9)), ((9, 4), (4, 3)), ((6, 11), (6, 5)), ((3, 8), (2, 3))])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.few(6)
def test_crops_keep_the_aspect(policy: str, extents: tuple[int, int], sizes: tuple[int, int], mode: str) -> None:
    """Their places follow from a new length that is no whole number, as the reference implementation has it."""
    options: dict[str, Any] = {"axes": [2, 3], "keep_aspect_ratio_policy": policy, "extrapolation_value": 9.0}
    options |= {"coordinate_transformation_mode": "tf_crop_and_resize"}
    node = helper.make_node("Resize", ["x", "roi", "", "sizes"], ["y"], mode=mode, **options)
    x, asked = np.random.default_rng(3).standard_normal((1, 1, *extents)).astype("float32"), np.array(sizes)
    roi = np.array([0.11, 0.23, 0.97, 0.79], np.float32)
    computed: Any = ReferenceEvaluator(node, opsets={"": 19}).run(None, {"x": x, "roi": roi, "sizes": asked})
    wanted = computed[0]
    net = _resizing(x.shape, wanted.shape, {"roi": roi, "sizes": asked}, options, mode)
    np.testing.assert_allclose(np.asarray(net.evaluate(x=x)).reshape(wanted.shape), wanted, atol=1e-5)


def _cropping(extent: int, made: int, roi: np.ndarray) -> lw.Network:
    options = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0}
    given = {"roi": roi, "sizes": np.array([1, 1, 1, made], np.int64)}
    return _resizing((1, 1, 1, extent), (1, 1, 1, made), given, options)


def _resizing(
    shape: Sequence[int],
    made: Sequence[int],
    given: dict[str, np.ndarray],
    options: dict[str, Any],
    mode: str = "linear",
) -> lw.Network:
    names = ["x", "roi" if "roi" in given else "", "", "sizes"]
    node = helper.make_node("Resize", names, ["y"], mode=mode, **options)
    data = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, made)
    kept = [numpy_helper.from_array(value, name) for name, value in given.items()]
    graph = helper.make_graph([node], "resize", [data], [result], kept)
    return lw.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
