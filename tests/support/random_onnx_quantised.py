"""Random quantised ONNX layers as quantisers write them: between Q and DQ, by ONNX's integers, and com.microsoft's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from random_onnx import Graph, Tensor, words
from random_onnx_windows import groups_of, image, kernel_of, window

MICROSOFT = "com.microsoft"


def _bytes(g: Graph, shape: tuple[int, ...], kind: str) -> Tensor:
    low, high = (0, 255) if kind == "uint8" else (-128, 127)
    return g.constant(g.rng.integers(low, high + 1, shape).astype(kind))


def _zero(g: Graph, kind: str, shape: tuple[int, ...] = ()) -> Tensor:
    low, high = (100, 156) if kind == "uint8" else (-28, 28)
    return g.constant(np.asarray(g.rng.integers(low, high, shape)).astype(kind))


def _scale(g: Graph, low: float, high: float, shape: tuple[int, ...] = ()) -> Tensor:
    return g.constant(np.asarray(g.rng.uniform(low, high, shape)).astype("float32"))


def _power(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The power of two in whose steps a byte spans most of a tensor."""
    largest = max(float(np.abs(tensor.value.astype("float64")).max(initial=0.0)), 2**-20)
    return np.array(2.0 ** np.ceil(np.log2(largest / 100)), "float32")


def _from_bytes(g: Graph, shape: Sequence[int]) -> Tensor:
    """Bytes as numbers: multiples of a power of two, whose products and sums are exact."""
    kind = g.choose(("uint8", "int8"))
    low, high = (0, 255) if kind == "uint8" else (-128, 127)
    small = g.given(g.rng.integers(low, high + 1, tuple(shape)).astype(kind))
    back = g.exactly("DequantizeLinear", [small, g.constant(np.float32(2**-6)), _zero(g, kind)])
    return back


def _on_grid(g: Graph, ranks: Sequence[int]) -> Tensor:
    """A tensor that is exact already, or a new one of bytes."""
    found = g.pick(lambda t: t.dtype == "float32" and t.rank in ranks and not t.spread and t.name in g.read)
    if found is not None and g.chance(0.6):
        return found
    rank = g.choose(ranks)
    if rank < 3:
        return _from_bytes(g, g.shape(rank))
    sides = [g.choose((3, 4, 5, 7, 9, 12) if rank < 5 else (2, 3, 4)) for _ in range(rank - 2)]
    return _from_bytes(g, (g.choose((1, 1, 2)), g.choose((1, 2, 3, 4, 8, 16)), *sides))


def between(g: Graph, x: Tensor) -> Tensor:
    """A tensor quantised and back: its scale is of what it holds."""
    kind = g.choose(("uint8", "int8"))
    step = g.constant(_power(x))
    zero = g.constant(np.array(g.number(100, 140) if kind == "uint8" else g.number(-9, 9)).astype(kind))
    small = g.exactly("QuantizeLinear", [x, step, zero])
    back = g.exactly("DequantizeLinear", [small, step, zero])
    return back


def _filters(g: Graph, shape: tuple[int, ...], place: int) -> Tensor:
    kind = g.choose(("int8", "int8", "uint8"))
    wide = (shape[place],) if g.opset >= 13 and g.chance(0.6) else ()
    step = g.constant((2.0 ** g.rng.integers(-9, -6, wide)).astype("float32"))
    zero = _zero(g, kind, wide) if g.chance(0.6) else g.constant(np.zeros(wide, kind))
    attributes = {"axis": place} if wide else {}
    back = g.exactly("DequantizeLinear", [_bytes(g, shape, kind), step, zero], **attributes)
    return back


def _bias(g: Graph, count: int) -> Tensor:
    """Numbers, or whole ones of the scale of products."""
    whole = g.rng.integers(-(2**13), 2**13, count)
    if g.chance(0.5):
        return g.constant((whole * 2.0**-13).astype("float32"))
    scale, zero = g.constant(np.float32(2**-13)), g.constant(np.array(0, "int32"))
    back = g.exactly("DequantizeLinear", [g.constant(whole.astype("int32")), scale, zero])
    return back


def conv_between(g: Graph) -> None:
    """A convolution between quantised tensors, with a bias, a relu, an addition or a pool before the last."""
    x = _on_grid(g, (3, 4, 4, 4, 5))
    kernel, groups = kernel_of(g, x), groups_of(g, x.shape[1])
    made = groups * g.choose((1, 2, 3, 16 // groups or 1))
    turned = g.chance(0.15)
    shape = (x.shape[1], g.choose((1, 2, 3)), *kernel) if turned else (made, x.shape[1] // groups, *kernel)
    w = _filters(g, shape, 1 if turned else 0)
    bias = [_bias(g, shape[1] * groups if turned else made)] if g.chance(0.6) else []
    options = window(g, x, kernel, automatic=not turned)
    y = g.exactly("ConvTranspose" if turned else "Conv", [x, w, *bias], group=groups, **options)
    y = _end(g, y)
    if g.chance(0.4):
        kernel = [min(2, n) for n in y.shape[2:]]
        y = g.exactly(g.choose(("MaxPool", "AveragePool")), [y], kernel_shape=kernel)
        between(g, y)


def _end(g: Graph, y: Tensor) -> Tensor:
    """A relu and the way through bytes, then a sum with others."""
    if g.chance(0.5):
        y = g.exactly("Relu", [y])
    y = between(g, y)
    if g.chance(0.3):
        y = g.exactly("Add", [y, _from_bytes(g, y.shape)])
        y = between(g, y)
    return y


def product_between(g: Graph) -> None:
    x = _on_grid(g, (2, 3, 4))
    if g.chance(0.3) and x.rank == 2:
        turned = g.number(0, 1)
        n = g.extent()
        w = _filters(g, (n, x.shape[1]) if turned else (x.shape[1], n), 1 - turned)
        given = [x, w, _bias(g, n)] if g.chance(0.6) else [x, w]
        y = g.exactly("Gemm", given, transB=turned)
    elif g.chance(0.2) and x.rank > 2:
        other = _from_bytes(g, (*x.shape[:-2], x.shape[-1], g.extent()))
        y = g.exactly("MatMul", [x, other])
    else:
        y = g.exactly("MatMul", [x, _filters(g, (x.shape[-1], g.extent()), 1)])
        if g.chance(0.5):
            y = g.exactly("Add", [y, _bias(g, y.shape[-1])])
    _end(g, y)


def integer_conv(g: Graph) -> None:
    """QLinearConv and ConvInteger of any rank, grouped, with a zero point of each channel."""
    x = image(g, ("uint8", "int8"))
    kernel, groups = kernel_of(g, x), groups_of(g, x.shape[1])
    made = groups * g.choose((1, 2, 4))
    kind = g.choose(("int8", "uint8")) if x.dtype == "uint8" else "int8"
    w = _bytes(g, (made, x.shape[1] // groups, *kernel), kind)
    wide = (made,) if g.chance(0.5) else ()
    zero = _zero(g, kind, wide) if g.chance(0.6) else g.constant(np.zeros(wide, kind))
    attributes = {"group": groups, **window(g, x, kernel)}
    if x.dtype == "uint8" and g.chance(0.3):
        g.add("ConvInteger", [x, w, _zero(g, "uint8"), zero], **attributes)
        return
    scales = _scale(g, 0.01, 0.03), _scale(g, 0.002, 0.02, wide), _scale(g, 0.2, 0.9)
    bias = [g.constant(g.rng.integers(-999, 999, (made,)).astype("int32"))] if g.chance(0.5) else []
    last = _zero(g, x.dtype)
    g.add("QLinearConv", [x, scales[0], _zero(g, x.dtype), w, scales[1], zero, scales[2], last, *bias], **attributes)


def integer_product(g: Graph) -> None:
    """MatMulInteger and QLinearMatMul, with a zero point of each column, and of each row."""
    x = g.any(("uint8", "int8"), (2, 3, 4))
    kind = g.choose(("int8", "uint8"))
    w = _bytes(g, (x.shape[-1], g.extent()), kind)
    columns = (w.shape[1],) if g.chance(0.5) else ()
    rows = (x.shape[0],) if x.rank == 2 and g.chance(0.2) else ()
    if g.chance(0.5):
        zeros = [_zero(g, x.dtype, rows), _zero(g, kind, columns)]
        g.add("MatMulInteger", [x, w, *zeros[: g.number(0, 2)]])
        return
    own = [x, _scale(g, 0.01, 0.03, rows), _zero(g, x.dtype, rows)]
    other = [w, _scale(g, 0.002, 0.02, columns), _zero(g, kind, columns)]
    g.add("QLinearMatMul", [*own, *other, _scale(g, 0.2, 0.9), _zero(g, x.dtype)])


def microsoft(g: Graph) -> None:
    """Operators of quantised tensors that onnxruntime's quantiser writes."""
    operator = g.choose(
        words(
            "QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearGlobalAveragePool QLinearConcat QGemm "
            "MatMulIntegerToFloat QLinearAveragePool QLinearWhere"
        )
    )
    x = g.any(("uint8", "int8"), (2,) if operator in ("QGemm",) else (4,) if "Pool" in operator else (2, 3, 4))
    own: list[Tensor | None] = [x, _scale(g, 0.01, 0.05), _zero(g, x.dtype)]
    last: list[Tensor | None] = [_scale(g, 0.02, 0.09), _zero(g, x.dtype)]
    attributes: dict[str, Any] = {"domain": MICROSOFT}
    if operator in ("QLinearAdd", "QLinearMul"):
        shape = tuple(n if g.chance(0.7) else 1 for n in x.shape)
        other: list[Tensor | None] = [_bytes(g, shape, x.dtype), _scale(g, 0.01, 0.05), _zero(g, x.dtype)]
        g.add(operator, [*own, *other, *last], **attributes)
    elif operator in ("QLinearSigmoid", "QLinearLeakyRelu"):
        if "Leaky" in operator:
            attributes["alpha"] = 0.1
        g.add(operator, [*own, *last], **attributes)
    elif operator == "QLinearGlobalAveragePool":
        g.add(operator, [*own, *last], channels_last=0, **attributes)
    elif operator == "QLinearAveragePool":
        g.add(operator, [*own, *last], kernel_shape=[2, 2], pads=[0, 0, 1, 1], **attributes)
    elif operator == "QLinearWhere":
        other = [_bytes(g, x.shape, x.dtype), _scale(g, 0.01, 0.05), _zero(g, x.dtype)]
        g.add(operator, [g.constant(g.rng.random(x.shape) < 0.5), *own, *other, *last], **attributes)
    elif operator == "QLinearConcat":
        place = g.number(0, x.rank - 1)
        shape = tuple(n if d != place else g.number(1, 3) for d, n in enumerate(x.shape))
        other = [_bytes(g, shape, x.dtype), _scale(g, 0.01, 0.05), _zero(g, x.dtype)]
        g.add(operator, [*last, *own, *other], axis=place, **attributes)
    elif operator == "QGemm":
        _gemm(g, x, own, last, attributes)
    else:
        kind, n = g.choose(("int8", "uint8")), g.extent()
        wide = (n,) if g.chance(0.5) else ()
        w, bias = _bytes(g, (x.shape[-1], n), kind), g.weight((n,), "float32") if g.chance(0.5) else None
        given = [x, w, own[1], _scale(g, 0.002, 0.02, wide), own[2], _zero(g, kind, wide), bias]
        g.add(operator, given if bias else given[:-1], **attributes)


def _gemm(g: Graph, x: Tensor, own: list[Tensor | None], last: list[Tensor | None], attributes: dict[str, Any]) -> None:
    kind, n, turned = g.choose(("int8", "uint8")), g.extent(), g.number(0, 1)
    wide = (n,) if g.chance(0.4) else ()
    w = _bytes(g, (n, x.shape[1]) if turned else (x.shape[1], n), kind)
    bias = g.constant(g.rng.integers(-999, 999, (n,)).astype("int32")) if g.chance(0.6) else None
    given = [*own, w, _scale(g, 0.002, 0.02, wide), _zero(g, kind, wide), bias]
    alpha = float(g.choose((1.0, 0.5)))
    g.add("QGemm", [*given, *last] if g.chance(0.6) else given, transB=turned, alpha=alpha, **attributes)
