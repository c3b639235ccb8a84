"""linalg on tensors as torch-mlir and IREE write it, beside NumPy."""

from collections.abc import Callable
from math import erf, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir_reading import read_graph

import loopwright as lw
from loopwright.frontends.mlir.reader import read_text

FOLDER = Path(__file__).parent / "linalg"


def convolved(x: Any, w: Any, stride: int = 1, dilation: int = 1) -> Any:
    """x (N, C, H, W) with w (F, C, KH, KW), windows that fit."""
    count, size = w.shape[2:], [(k - 1) * dilation + 1 for k in w.shape[2:]]
    rows, columns = [(n - s) // stride + 1 for n, s in zip(x.shape[2:], size, strict=True)]
    y = np.zeros((x.shape[0], w.shape[0], rows, columns), x.dtype)
    for i in range(count[0]):
        for j in range(count[1]):
            part = x[:, :, i * dilation :: stride, j * dilation :: stride][:, :, :rows, :columns]
            y += np.einsum("nchw,fc->nfhw", part, w[:, :, i, j])
    return y


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def windows(x: Any, size: int, stride: int) -> Any:
    """All windows of the last two axes, which become the last two."""
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (-2, -1))[..., ::stride, ::stride, :, :]


def padded(x: Any, value: float = 0.0) -> Any:
    return np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=value)


def last(x: Any) -> Any:
    """Channels first -> last."""
    return np.moveaxis(x, 1, -1)


def first(x: Any) -> Any:
    return np.moveaxis(x, -1, 1)


def inserted(x: Any, z: Any) -> Any:
    y = x.copy()
    y[1, 2:4] = z[0]
    return y


def depthwise(x: Any, w: Any) -> Any:
    return np.stack([convolved(x[:, c : c + 1], w[None, None, :, :, c])[:, 0] for c in range(x.shape[1])], -1)


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


def wide(x: Any) -> Any:
    return x.astype("float32" if x.dtype == np.float16 else "int32")


PROGRAMS: dict[str, Callable[..., Any]] = {
    "argmax": lambda x: (x.max(1), x.argmax(1)),
    "attention": lambda q, k, v: softmax(q @ k.transpose(0, 2, 1) * np.float32(8**-0.5)) @ v,
    "avg_pool": lambda x: last(windows(first(x), 2, 2).mean((-2, -1))),
    "conv_as_generic": lambda x, w: convolved(x, w, 2),
    "conv_nhwc": lambda x, w: last(convolved(first(x), w.transpose(3, 2, 0, 1), dilation=2)),
    "conv_pad_relu": lambda x, w, b: relu(convolved(padded(x), w, 2) + b[:, None, None]),
    "depthwise": lambda x, w, v: (
        depthwise(first(x), w),
        np.stack([depthwise(first(x), v[..., m]) for m in range(2)], -1),
    ),
    "embedding": lambda table, ids: table[ids],
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2))).astype("float32"),
    "grouped_conv": lambda x, w: np.stack([convolved(x[:, g], w[g]) for g in range(2)], 1),
    "int8_matmul": lambda x, y: (wide(x) @ wide(y), (wide(x) - 3) @ (wide(y) + 2)),
    "iota_mask": lambda x: np.where(np.tri(5, dtype=bool), x, np.float32(-1e9)),
    "layer_norm": layer_norm,
    "max_pool": lambda x: windows(padded(x, -np.inf), 3, 2).max((-2, -1)),
    "mixed_precision": lambda x, y: (wide(x) @ wide(y), (wide(x) @ wide(y)).astype("float16")),
    "mlp": lambda x, w, b: relu(x @ w.T + b),
    "named_elementwise": lambda x, y: (np.exp(x + y), np.exp(x + y) * y, np.maximum(abs(x), y)),
    "packed_matmul": lambda x, y, z: z + np.einsum("mkij,nklj->mnil", x, y),
    "packing": lambda x: (
        tiled := np.pad(x, ((0, 1), (0, 1)), constant_values=2.5).reshape(3, 2, 2, 4).transpose(0, 2, 1, 3),
        x,
        tiled.transpose(1, 0, 2, 3).reshape(2, 6, 4)[:, :5],
    ),
    "places": lambda x, i, s: (
        x[i[:, 0], i[:, 1]],
        x[i[:, 1]][:, None],
        np.where(np.arange(6).reshape(2, 3) == 5, np.float32(7), s),
        np.arange(2)[:, None] * 2 + np.arange(3),
    ),
    "reductions": lambda x: (1 + abs(x).sum(2).T, relu(x.max(1)), x.prod(), (x > 1).any((1, 2))),
    "softmax": softmax,
    "transposed_matmul": lambda x, y, z: z + y @ x,
    "upsample": lambda x: x.repeat(2, 2).repeat(2, 3),
    "views": lambda x, z: (
        x.reshape(12, 4),
        x.reshape(2, 2, 3, 4),
        x[:, 1:6:2, :2],
        inserted(x, z),
        np.concatenate([x, x], 1),
        x[1],
    ),
}
COMPILED = ("argmax", "conv_as_generic", "embedding", "grouped_conv", "layer_norm", "reductions", "upsample")


def feeds(net: lw.Network) -> dict[str, Any]:
    random = np.random.default_rng(0)
    values = net.inputs.values()
    return {
        v.name: random.standard_normal(v.shape).astype(v.dtype)
        if "float" in v.dtype
        else random.integers(0, 10, v.shape).astype(v.dtype)
        for v in values
    }


def require_equal(name: str, inputs: dict[str, Any], results: Any) -> None:
    wanted = PROGRAMS[name](*inputs.values())
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for result, right in zip(results, wanted, strict=True):
        assert result.shape == np.shape(right) and prod(result.shape) == np.size(right)
        np.testing.assert_allclose(result.astype("float64"), np.asarray(right, "float64"), 2e-3, 2e-4)


def test_every_file_has_its_program() -> None:
    assert sorted(PROGRAMS) == sorted(file.stem for file in FOLDER.glob("*.mlir"))
    assert len(PROGRAMS) > 20


@pytest.mark.parametrize("name", PROGRAMS)
def test_linalg_computes_what_numpy_does(name: str) -> None:
    net = lw.from_mlir(FOLDER / f"{name}.mlir")
    inputs = feeds(net)
    require_equal(name, inputs, net.evaluate(**inputs))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.few(13)
def test_every_stage_parses_back(name: str) -> None:
    read = str(read_text((FOLDER / f"{name}.mlir").read_text(), name).module)
    again = read_text(read, name)
    assert str(again.module) == read
    net = lw.from_mlir(again.module)
    inputs = feeds(net)
    require_equal(name, inputs, net.evaluate(**inputs))
    for stage in (str(net), str(net.transform("lw-graph-simplify,dce,lw-graph-fuse"))):
        assert str(read_graph(stage)) == stage


@pytest.mark.few(2)
@pytest.mark.parametrize("name", COMPILED)
def test_kernels_of_linalg_compute_what_numpy_does(name: str) -> None:
    net = lw.from_mlir(FOLDER / f"{name}.mlir")
    inputs = feeds(net)
    results = lw.compile(net, "llvm", processes=1).executor()(*inputs.values())
    require_equal(name, inputs, results if isinstance(results, tuple) else (results,))
