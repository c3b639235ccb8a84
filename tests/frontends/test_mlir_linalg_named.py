"""Every named product, convolution and pooling of linalg, in small programs beside NumPy."""

from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.frontends.mlir.operators.linalg_named import _PRODUCTS

RANDOM = np.random.default_rng(0)
EXTENTS = {"b": 2, "m": 3, "k": 4, "n": 5, "i": 2, "j": 3, "l": 2}


def kind(shape: tuple[int, ...], element: str = "f32") -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def program(operation: str, attributes: str, shapes: list[tuple[int, ...]], result: tuple[int, ...]) -> str:
    names = [f"%a{k}" for k in range(len(shapes))]
    kinds = [kind(s) for s in shapes]
    arguments = ", ".join(f"{n}: {k}" for n, k in zip([*names, "%out"], [*kinds, kind(result)], strict=True))
    ins = f"ins({', '.join(names)} : {', '.join(kinds)}) outs(%out : {kind(result)})"
    return (
        f"func.func @main({arguments}) -> {kind(result)} {{\n%0 = linalg.{operation} {attributes} {ins} -> "
        f"{kind(result)}\nreturn %0 : {kind(result)}\n}}"
    )


def floats(shape: tuple[int, ...]) -> Any:
    return RANDOM.standard_normal(shape).astype("float32")


def require_equal(text: str, arrays: list[Any], wanted: Any) -> None:
    net = lw.from_mlir(text)
    (found,) = net.evaluate(**dict(zip(net.input_names, arrays, strict=True)))
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-4)


@pytest.mark.parametrize("name", [n for n in _PRODUCTS if not n.startswith("quantized")])
def test_products_are_added_to_their_start(name: str) -> None:
    left, _, result = _PRODUCTS[name].partition("->")
    shapes = [tuple(EXTENTS[c] for c in term) for term in left.split(",")]
    given = [floats(s) for s in [*shapes, tuple(EXTENTS[c] for c in result)]]
    wanted = np.einsum(_PRODUCTS[name], *given[:2]) + given[2]
    require_equal(program(name, "", shapes, wanted.shape), given, wanted)


MAPS: dict[str, tuple[str, tuple[tuple[int, ...], ...], int]] = {
    "matmul": ("mk,nk->mn", ((0, 2), (1, 2), (0, 1)), 3),
    "batch_matmul": ("bkm,bkn->bmn", ((0, 3, 1), (0, 3, 2), (0, 1, 2)), 4),
    "contract": ("mbk,nk->bnm", ((1, 0, 3), (2, 3), (0, 2, 1)), 4),
}


@pytest.mark.parametrize("name", MAPS)
def test_products_may_say_their_axes_by_maps(name: str) -> None:
    equation, axes, count = MAPS[name]
    terms = equation.replace("->", ",").split(",")
    shapes = [tuple(EXTENTS[c] for c in term) for term in terms]
    loops = ", ".join(f"d{k}" for k in range(count))
    maps = [f"affine_map<({loops}) -> ({', '.join(f'd{k}' for k in places)})>" for places in axes]
    given = [floats(s) for s in shapes]
    wanted = np.einsum(equation, *given[:2]) + given[2]
    require_equal(program(name, f"indexing_maps = [{', '.join(maps)}]", shapes[:2], shapes[2]), given, wanted)


WINDOW = {"w": 3, "h": 2, "d": 2}
SIZE = {"w": 8, "h": 7, "d": 5}
CONVOLUTIONS = {
    "conv_1d_ncw_fcw": "ncw,fcw->nfw", "conv_1d_nwc_wcf": "nwc,wcf->nwf", "conv_2d_nchw_fchw": "nchw,fchw->nfhw",
    "conv_2d_nhwc_hwcf": "nhwc,hwcf->nhwf", "conv_2d_nhwc_fhwc": "nhwc,fhwc->nhwf",
    "conv_2d_ngchw_fgchw": "ngchw,fgchw->ngfhw", "conv_2d_ngchw_gfchw": "ngchw,gfchw->ngfhw",
    "conv_2d_nhwgc_gfhwc": "nhwgc,gfhwc->nhwgf", "conv_3d_ndhwc_dhwcf": "ndhwc,dhwcf->ndhwf",
    "conv_3d_ncdhw_fcdhw": "ncdhw,fcdhw->nfdhw", "depthwise_conv_1d_ncw_cw": "ncw,cw->ncw",
    "depthwise_conv_1d_nwc_wc": "nwc,wc->nwc", "depthwise_conv_1d_nwc_wcm": "nwc,wcm->nwcm",
    "depthwise_conv_2d_nchw_chw": "nchw,chw->nchw", "depthwise_conv_2d_nhwc_hwc": "nhwc,hwc->nhwc",
    "depthwise_conv_2d_nhwc_hwcm": "nhwc,hwcm->nhwcm", "depthwise_conv_3d_ndhwc_dhwc": "ndhwc,dhwc->ndhwc",
    "depthwise_conv_3d_ncdhw_cdhw": "ncdhw,cdhw->ncdhw", "depthwise_conv_3d_ndhwc_dhwcm": "ndhwc,dhwcm->ndhwcm",
    "conv_1d": "w,w->w", "conv_2d": "hw,hw->hw", "conv_3d": "dhw,dhw->dhw",
}  # fmt: skip
OTHERS = {"n": 2, "c": 4, "f": 3, "g": 2, "m": 2}


def windows(x: Any, letters: str, stride: int, dilation: int) -> tuple[Any, str]:
    """All windows of an array whose axes are these letters; their axes are last, in capital letters."""
    for axis, letter in enumerate(letters):
        if letter in WINDOW:
            size, count = WINDOW[letter], (SIZE[letter] - (WINDOW[letter] - 1) * dilation - 1) // stride + 1
            parts = [np.take(x, np.arange(count) * stride + k * dilation, axis) for k in range(size)]
            x, letters = np.stack(parts, -1), letters + letter.upper()
    return x, letters


def attributes(rank: int, stride: int, dilation: int) -> str:
    vectors = (f"{key} = dense<{n}> : tensor<{rank}xi64>" for key, n in (("dilations", dilation), ("strides", stride)))
    return f"{{{', '.join(vectors)}}}"


STEPS = ((1, 1), (2, 1), (1, 2))
"""Strides and dilations; the convolutions without a batch have neither as an attribute."""


@pytest.mark.parametrize(
    "name, stride, dilation",
    [(name, *steps) for name in CONVOLUTIONS for steps in (STEPS if "_n" in name else STEPS[:1])],
)
@pytest.mark.few(33)
def test_convolutions_are_added_to_their_start(name: str, stride: int, dilation: int) -> None:
    (data, weight), result = CONVOLUTIONS[name].partition("->")[0].split(","), CONVOLUTIONS[name].partition("->")[2]
    x, w = floats(tuple({**OTHERS, **SIZE}[c] for c in data)), floats(tuple({**OTHERS, **WINDOW}[c] for c in weight))
    parts, letters = windows(x, data, stride, dilation)
    kernel = "".join(c.upper() if c in WINDOW else c for c in weight)
    plain = np.einsum(f"{letters},{kernel}->{result}", parts, w)
    start = floats(plain.shape)
    rank = sum(c in WINDOW for c in data)
    said = attributes(rank, stride, dilation) if "_n" in name else ""
    require_equal(program(name, said, [x.shape, w.shape], plain.shape), [x, w, start], plain + start)


JOINED: dict[str, tuple[Any, Any]] = {"sum": (np.sum, np.add), "max": (np.max, np.maximum), "min": (np.min, np.minimum)}


@pytest.mark.parametrize("stride, dilation", ((1, 1), (2, 2)))
@pytest.mark.parametrize("word", JOINED)
@pytest.mark.parametrize("data", ("nwc", "ncw", "nhwc", "nchw", "ndhwc", "ncdhw"))
def test_poolings_join_what_they_start_from(data: str, word: str, stride: int, dilation: int) -> None:
    reduce, join = JOINED[word]
    x = floats(tuple({**OTHERS, **SIZE}[c] for c in data))
    parts, letters = windows(x, data, stride, dilation)
    rank = len(letters) - len(data)
    plain = reduce(parts, tuple(range(len(data), len(letters))))
    start, window = floats(plain.shape), np.zeros([WINDOW[c] for c in data if c in WINDOW], "float32")
    text = program(f"pooling_{data}_{word}", attributes(rank, stride, dilation), [x.shape, window.shape], plain.shape)
    require_equal(text, [x, window, start], join(plain, start))
