"""Crops of images by Resize: places at the very edge are inside, whatever roundings of the crop put them at."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import loopwright as lw


@pytest.mark.parametrize("begin, end", [(0.2, 1.0), (-0.1, 1.0), (0.3, 1.0), (0.7, 0.0), (1.0, 0.0), (0.2, 0.9)])
@pytest.mark.parametrize("extent, made", [(3, 4), (12, 18), (5, 7), (10, 15), (9, 2)])
@pytest.mark.few(10)
def test_the_last_element_is_inside(begin: float, end: float, extent: int, made: int) -> None:
    x = np.random.default_rng(extent).standard_normal((1, 1, 1, extent)).astype("float32")
    roi = np.array([0, 0, 0, begin, 1, 1, 1, end], np.float32)
    places = np.linspace(roi[3], roi[7], made) * (extent - 1)
    inside = (places > -1e-6) & (places < extent - 1 + 1e-6)
    wanted = np.where(inside, np.interp(places, np.arange(extent), x[0, 0, 0]), 9.0)
    got = np.asarray(_cropping(extent, made, roi).evaluate(x=x))
    np.testing.assert_allclose(got.reshape(-1), wanted, atol=1e-5)


def _cropping(extent: int, made: int, roi: np.ndarray) -> lw.Network:
    node = helper.make_node(
        "Resize",
        ["x", "roi", "", "sizes"],
        ["y"],
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=9.0,
    )
    sizes = np.array([1, 1, 1, made], np.int64)
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 1, 1, extent))
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 1, 1, made))
    kept = [numpy_helper.from_array(roi, "roi"), numpy_helper.from_array(sizes, "sizes")]
    graph = helper.make_graph([node], "crop", [given], [result], kept)
    return lw.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8))
