"""Fourier transforms and sampled images beside onnxruntime, and NumPy's transforms."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

import loopwright as lw

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)


def node(
    operator: str, feeds: dict[str, Array], held: dict[str, Array] | None = None, opset: int = 20, **attributes: Any
) -> ModelProto:
    """A model of one node; an empty name of what it holds is an input that is left out."""
    held = held or {}
    names = [name if array.size else "" for name, array in {**feeds, **held}.items()]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **attributes)],
        "one",
        [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in feeds.items()],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(feeds["x"].dtype), None)],
        [numpy_helper.from_array(array, name) for name, array in held.items() if array.size],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def ours(proto: ModelProto, feeds: dict[str, Array]) -> Array:
    return lw.from_onnx(proto).evaluate(**feeds)[0]


def drawn(*shape: int, dtype: str = "float32") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


NONE = np.zeros(0, np.int64)


@pytest.mark.parametrize("length", [None, 5, 7, 8, 12], ids=str)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("axis", [1, -2])
def test_transforms_are_those_of_numpy(length: int | None, parts: int, axis: int) -> None:
    feeds = {"x": drawn(2, 7, 3, parts, dtype="float64")}
    held = {"n": NONE if length is None else np.array(length), "a": np.array(axis)}
    number = feeds["x"] @ (np.array([[1.0]]) if parts == 1 else np.array([[1.0], [1j]]))
    along = 1 if axis == 1 else 2
    wanted = np.fft.fft(number[..., 0], n=length, axis=along)
    got = ours(node("DFT", feeds, held), feeds)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], wanted, atol=1e-12)
    back = {"x": np.stack([wanted.real, wanted.imag], -1)}
    got = ours(node("DFT", back, {**held, "n": NONE}, inverse=1), back)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], np.fft.ifft(wanted, axis=along), atol=1e-12)
    if parts == 2:
        return
    half = ours(node("DFT", feeds, held, onesided=1), feeds)
    wanted = np.fft.rfft(number[..., 0], n=length, axis=along)
    np.testing.assert_allclose(half[..., 0] + 1j * half[..., 1], wanted, atol=1e-12)
    whole = ours(node("DFT", {"x": half}, held, inverse=1, onesided=1), {"x": half})
    np.testing.assert_allclose(whole[..., 0], np.fft.irfft(wanted, n=length, axis=along), atol=1e-12)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("windowed", [False, True])
def test_transforms_of_frames_are_those_of_onnxruntime(onesided: int, windowed: bool) -> None:
    feeds = {"x": drawn(2, 61, 1)}
    held = {"step": np.array(5), "w": drawn(11) if windowed else NONE, "n": np.array(11)}
    proto = node("STFT", feeds, held, 17, onesided=onesided)
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(ours(proto, feeds), wanted, atol=2e-5)


def test_transforms_without_a_meaning_are_refused() -> None:
    feeds = {"x": drawn(2, 7, 3, 2)}
    with pytest.raises(lw.OnnxImportError, match="one half of the transform of complex numbers"):
        lw.from_onnx(node("DFT", feeds, {"n": NONE, "a": np.array(1)}, onesided=1))
    with pytest.raises(lw.OnnxImportError, match="the last axis holds real and imaginary parts"):
        lw.from_onnx(node("DFT", feeds, {"n": NONE, "a": np.array(-1)}))
    feeds = {"x": drawn(1, 20, 1)}
    with pytest.raises(lw.OnnxImportError, match=r"a window of shape .5,. does not fit frames of 11"):
        lw.from_onnx(node("STFT", feeds, {"step": np.array(2), "w": drawn(5), "n": np.array(11)}, 17))


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.few(9)
def test_images_are_sampled_as_by_onnxruntime(mode: str, padding: str, align_corners: int) -> None:
    feeds = {"x": drawn(2, 3, 5, 7), "grid": RNG.uniform(-1.6, 1.6, (2, 4, 3, 2)).astype(np.float32)}
    _sampled(feeds, mode=mode, padding_mode=padding, align_corners=align_corners)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_volumes_are_sampled_as_by_onnxruntime(mode: str, align_corners: int) -> None:
    feeds = {"x": drawn(2, 2, 3, 4, 5), "grid": RNG.uniform(-1.3, 1.3, (2, 3, 2, 4, 3)).astype(np.float32)}
    _sampled(feeds, mode=mode, align_corners=align_corners)


def _sampled(feeds: dict[str, Array], **attributes: Any) -> None:
    proto = node("GridSample", feeds, **attributes)
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(ours(proto, feeds), wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
@pytest.mark.parametrize("target", ["llvm cores=1", "opencl"])
@pytest.mark.few(1)
def test_a_sampled_image_compiles(target: str) -> None:
    feeds = {"x": drawn(1, 3, 6, 5), "grid": RNG.uniform(-1.2, 1.2, (1, 7, 4, 2)).astype(np.float32)}
    feeds["grid"][0, 0, 0] = 1e4, -1e4
    proto = node("GridSample", feeds, mode="linear")
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    run = lw.compile(lw.from_onnx(proto), target, processes=1).executor()
    run.run(**feeds)
    np.testing.assert_allclose(run.get_output(), wanted, rtol=1e-4, atol=2e-5)


def test_windows_are_known() -> None:
    size = np.array(9)
    graph = helper.make_graph(
        [helper.make_node("HannWindow", ["n"], ["w"]), helper.make_node("Mul", ["x", "w"], ["y"])],
        "windowed",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [9])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [9])],
        [numpy_helper.from_array(size, "n")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feeds = {"x": drawn(9)}
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(ours(proto, feeds), wanted, atol=1e-6)
