"""ONNX operators that read boxes, or where offsets or a pool's places say, beside ONNX's reference implementation."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw

Array = npt.NDArray[Any]

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(nodes: list[Any], feeds: dict[str, Array], opset: int = 22) -> ModelProto:
    """A model whose result is called y."""
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name], array.shape) for name, array in feeds.items()]
    graph = helper.make_graph(nodes, "one", inputs, [helper.make_tensor_value_info("y", kinds["x"], None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def check(proto: ModelProto, feeds: dict[str, Array], target: str = "llvm cores=1") -> Array:
    """Compare the network, evaluated and compiled, with the reference implementation; returns the result."""
    computed: Any = ReferenceEvaluator(proto).run(None, feeds)
    wanted = np.asarray(computed[0])
    net = lw.from_onnx(proto)
    run = lw.compile(net, target, processes=1).executor()
    run.run(**feeds)
    for found in (net.evaluate(**feeds)[0], run.get_output()):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5)
    return wanted


# -- boxes -------------------------------------------------------------------------------------------------------------


def boxes(count: int, extent: float) -> Array:
    """Boxes of which some are outside in part, and one as a whole."""
    rng = np.random.default_rng(5)
    first = rng.uniform(-4, extent, (count, 2))
    found = np.concatenate([first, first + rng.uniform(0, extent, (count, 2))], axis=1)
    found[-1] += 10 * extent
    return found.astype(np.float32)


def pooled(feeds: dict[str, Array], opset: int = 22, **attributes: Any) -> ModelProto:
    node = helper.make_node("RoiAlign", list(feeds), ["y"], **attributes)
    return model([node], feeds, opset)


@pytest.mark.parametrize("moved", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("shape", [(2, 3, 9, 13), (2, 1, 1, 1)], ids=str)
@pytest.mark.few(4)
def test_boxes_of_several_images_are_pooled(moved: str, mode: str, shape: tuple[int, ...]) -> None:
    feeds = {"x": drawn(*shape), "rois": boxes(5, 20.0), "images": np.array([0, 1, 1, 0, 1])}
    attributes: dict[str, Any] = {"output_height": 3, "output_width": 2, "sampling_ratio": 3, "spatial_scale": 0.5}
    check(pooled(feeds, mode=mode, coordinate_transformation_mode=moved, **attributes), feeds)


def test_boxes_before_operator_set_16_are_not_moved_by_half_an_element() -> None:
    feeds = {"x": drawn(1, 2, 6, 6), "rois": boxes(3, 6.0), "images": np.zeros(3, np.int64)}
    wanted = check(pooled(feeds, coordinate_transformation_mode="output_half_pixel", sampling_ratio=2), feeds)
    (found,) = lw.from_onnx(pooled(feeds, 10, sampling_ratio=2)).evaluate(**feeds)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_boxes_that_say_how_many_places_are_read_are_refused() -> None:
    feeds = {"x": drawn(1, 2, 6, 6), "rois": boxes(3, 6.0), "images": np.zeros(3, np.int64)}
    with pytest.raises(lw.OnnxImportError, match="sampling_ratio is 0, so that boxes say how many places are read"):
        lw.from_onnx(pooled(feeds))


@pytest.mark.parametrize(("size", "samples"), [((2,), 1), ((2, 2), 0)])
def test_options_that_do_not_fit_are_a_sentence(size: tuple[int, ...], samples: int) -> None:
    net = lw.Network()
    given = (net.input("x", (1, 2, 6, 6)), net.input("rois", (3, 4)), net.input("images", (3,), "int64"))
    with pytest.raises(ValueError, match=r"roi_align: data \(N, C, H, W\), boxes \(R, 4\), images \(R,\), two extents"):
        net.roi_align(*given, size=size, samples=samples)


# -- deformable convolutions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "offset_groups", "has_mask", "attributes"),
    [
        (1, 1, False, {}),
        (2, 1, True, {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
        (1, 2, True, {"dilations": [2, 1], "pads": [1, 1, 1, 1]}),
        (4, 4, False, {"pads": [1, 1, 1, 1]}),
    ],
)
@pytest.mark.few(2)
def test_convolutions_read_where_offsets_say(
    groups: int, offset_groups: int, has_mask: bool, attributes: dict[str, Any]
) -> None:
    x, w = drawn(2, 4, 6, 7), drawn(4, 4 // groups, 3, 2, seed=1)
    pads, strides = attributes.get("pads", [0] * 4), attributes.get("strides", [1, 1])
    dilations = attributes.get("dilations", [1, 1])
    made = [
        (n + pads[d] + pads[2 + d] - dilations[d] * (k - 1) - 1) // strides[d] + 1
        for d, (n, k) in enumerate(zip(x.shape[2:], w.shape[2:], strict=True))
    ]
    feeds = {"x": x, "w": w, "offset": 2 * drawn(2, offset_groups * 12, *made, seed=2), "b": drawn(4, seed=3)}
    if has_mask:
        feeds["mask"] = np.abs(drawn(2, offset_groups * 6, *made, seed=4))
    node = helper.make_node("DeformConv", list(feeds), ["y"], group=groups, offset_group=offset_groups, **attributes)
    check(model([node], feeds), feeds)


def test_deformable_convolutions_of_lines_are_refused() -> None:
    feeds = {"x": drawn(1, 2, 6), "w": drawn(3, 2, 3), "offset": drawn(1, 3, 4)}
    node = helper.make_node("DeformConv", list(feeds), ["y"])
    with pytest.raises(lw.OnnxImportError, match="deformable convolutions go over 2 spatial axes, the data has 1"):
        lw.from_onnx(model([node], feeds))


# -- the way back from a max pool --------------------------------------------------------------------------------------


def there_and_back(x: Array, kernel: list[int], strides: list[int], pads: list[int]) -> ModelProto:
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    pool = helper.make_node("MaxPool", ["x"], ["most", "places"], **attributes)
    back = helper.make_node("MaxUnpool", ["most", "places"], ["y"], **attributes)
    return model([pool, back], {"x": x})


@pytest.mark.parametrize(
    ("shape", "kernel", "strides", "pads"),
    [
        ((2, 3, 6, 8), [2, 2], [2, 2], [0] * 4),
        ((2, 3, 8, 5), [2, 1], [3, 2], [0] * 4),
        ((2, 2, 4, 4, 6), [2, 2, 3], [2, 2, 3], [0] * 6),
        ((1, 2, 7, 7), [3, 3], [2, 2], [0] * 4),
        ((2, 2, 5), [3], [2], [1, 1]),
    ],
)
def test_largest_elements_go_back_to_their_places(
    shape: tuple[int, ...], kernel: list[int], strides: list[int], pads: list[int]
) -> None:
    """Of blocks, blocks apart, volumes, windows that overlap, and padded ones."""
    feeds = {"x": drawn(*shape)}
    wanted = check(there_and_back(feeds["x"], kernel, strides, pads), feeds)
    assert np.count_nonzero(wanted)


@pytest.mark.parametrize("is_given", [False, True])
def test_places_that_are_given(is_given: bool) -> None:
    places = np.array([[[[5, 7], [13, 15]], [[16, 19], [26, 31]]]])
    feeds = {"x": drawn(1, 2, 2, 2), "places": places}
    more = [helper.make_node("Constant", [], ["shape"], value_ints=[1, 2, 5, 5])] if is_given else []
    back = helper.make_node(
        "MaxUnpool", ["x", "places", *["shape"] * is_given], ["y"], kernel_shape=[2, 2], strides=[2, 2]
    )
    wanted = check(model([*more, back], feeds), feeds)
    assert wanted.shape == (1, 2, 4 + is_given, 4 + is_given) and np.count_nonzero(wanted) == 8
