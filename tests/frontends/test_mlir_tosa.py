"""TOSA as torch-mlir and TensorFlow Lite's converter write it, beside NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir_reading import read_graph

import loopwright as lw
from loopwright.frontends.mlir.reader import read_text

FOLDER = Path(__file__).parent / "tosa"
RANDOM = np.random.default_rng(0)


def convolved(x: Any, w: Any, stride: int) -> Any:
    """x (H, W, C) with w (KH, KW, C, O), windows that fit."""
    view = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], (0, 1))[::stride, ::stride]
    return np.einsum("yxcij,ijco->yxo", view, w)


def cnn(x: Any, w: Any, b: Any, d: Any) -> Any:
    y = convolved(np.pad(x[0], ((1, 1), (1, 1), (0, 0))), w.transpose(1, 2, 3, 0), 1) + b
    y = np.pad(np.clip(y, 0, 6), ((0, 1), (0, 1), (0, 0)))
    parts = [convolved(y[..., c : c + 1], d[:, :, c : c + 1], 2) for c in range(4)]
    y = np.concatenate(parts, -1).reshape(2, 2, 2, 2, 8).max((1, 3))
    return y[None], y.mean((0, 1))[None]


def softmax(x: Any, m: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    return y, (y @ m[0])[None], y.argmax(1)


def moves(x: Any, i: Any) -> Any:
    wide = np.pad(x, ((0, 0), (1, 0), (0, 2)), constant_values=2.5)
    rows = np.take_along_axis(x, i[..., None], 1)
    return x.transpose(2, 0, 1), wide, x[1:, :2], rows, np.concatenate([x, x]), x[..., ::-1], np.round(x)


FUNCTIONS: dict[str, Any] = {"cnn": cnn, "softmax": softmax, "moves": moves}


@pytest.mark.parametrize("name", ("cnn", "softmax", "moves"))
def test_tosa_computes_what_numpy_does(name: str) -> None:
    net = lw.from_mlir(FOLDER / f"{name}.mlir")
    inputs = {
        key: RANDOM.integers(0, 3, v.shape).astype(v.dtype)
        if v.dtype == "int32"
        else RANDOM.standard_normal(v.shape).astype(v.dtype)
        for key, v in net.inputs.items()
    }
    results = lw.compile(net, "llvm", processes=1).executor()(*inputs.values())
    for result, other, wanted in zip(results, net.evaluate(**inputs), FUNCTIONS[name](*inputs.values()), strict=True):
        np.testing.assert_allclose(other, wanted, 1e-4, 1e-5)
        np.testing.assert_allclose(result, wanted, 1e-4, 1e-5)
    printed = str(net)
    assert str(read_graph(printed)) == printed


def test_the_generic_form_is_read_as_the_pretty_one() -> None:
    text = (FOLDER / "softmax.mlir").read_text()
    generic = str(read_text(text, "softmax").module)
    assert '"tosa.matmul"(' in generic
    assert str(lw.from_mlir(generic)) == str(lw.from_mlir(text))


def test_zero_points_and_operators_outside_are_refused() -> None:
    with pytest.raises(lw.MlirImportError) as caught:
        lw.from_mlir(FOLDER / "refused.mlir")
    assert "line 4: tosa.matmul: zero points other than 0" in str(caught.value)
    assert "line 5: tosa.custom: it is the operator 'mine'" in str(caught.value)
