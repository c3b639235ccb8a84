"""Random ONNX operators of windows, products, and both of quantised numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from random_onnx import Graph, RefusedError, Tensor
from random_onnx_values import FLOATS


def image(g: Graph, dtypes: Sequence[str] = ("float32",), spatial: int | None = None) -> Tensor:
    """Feature maps (N, C, ...)."""
    count = spatial or g.choose((1, 2, 2, 2, 2, 2, 2, 3))
    found = g.pick(lambda t: t.dtype in dtypes and t.rank == count + 2 and max(t.shape[2:]) > 1)
    if found is not None and g.chance(0.9):
        return found
    sides = [g.choose((5, 6, 7, 8, 9, 12) if count < 3 else (3, 4, 5)) for _ in range(count)]
    return g.input((g.choose((1, 1, 2)), g.choose((1, 2, 3, 4, 6, 8)), *sides), g.choose(dtypes))


def window(g: Graph, x: Tensor, kernel: Sequence[int], dilated: bool = True, automatic: bool = True) -> dict[str, Any]:
    count = len(kernel)
    found: dict[str, Any] = {}
    if g.chance(0.6):
        found["strides"] = [g.choose((1, 1, 2, 3)) for _ in kernel]
    if dilated and g.chance(0.25):
        found["dilations"] = [g.choose((1, 2)) for _ in kernel]
    if automatic and g.chance(0.25) and "dilations" not in found:
        found["auto_pad"] = g.choose(("SAME_UPPER", "SAME_LOWER", "VALID"))
        if any(k < s for k, s in zip(kernel, found.get("strides", kernel), strict=True)):
            del found["auto_pad"]  # the padding would be negative, which onnxruntime takes for something else
    elif g.chance(0.6):
        most = [max(min(k - 1, 2), 0) for k in kernel]
        found["pads"] = [g.number(0, n) for n in (*most, *most)]
    assert count
    return found


def kernel_of(g: Graph, x: Tensor) -> list[int]:
    return [g.choose([k for k in (1, 2, 3, 3, 5) if k <= n + 2]) for n in x.shape[2:]]


def groups_of(g: Graph, channels: int) -> int:
    return int(g.choose((1, 1, channels, *[n for n in range(1, channels + 1) if channels % n == 0])))


def conv(g: Graph) -> None:
    x = image(g, ("float32", "float32", "float32", "float64", "float16"))
    kernel, groups = kernel_of(g, x), groups_of(g, x.shape[1])
    per = x.shape[1] // groups
    made = groups * g.choose((1, 1, 2, 3, 4))
    w = g.weight((made, per, *kernel), x.dtype, scale=1 / np.sqrt(per * np.prod(kernel)))
    bias = [g.weight((made,), x.dtype)] if g.chance(0.6) else []
    attributes: dict[str, Any] = {"kernel_shape": kernel} if g.chance(0.5) else {}
    g.add("Conv", [x, w, *bias], group=groups, **attributes, **window(g, x, kernel))


def conv_transpose(g: Graph) -> None:
    x = image(g)
    kernel, groups = kernel_of(g, x), groups_of(g, x.shape[1])
    made = g.choose((1, 2, 3))
    w = g.weight((x.shape[1], made, *kernel), x.dtype, scale=0.3)
    attributes = window(g, x, kernel)
    if "auto_pad" in attributes and any(k < s for k, s in zip(kernel, attributes.get("strides", kernel), strict=True)):
        del attributes["auto_pad"]  # the padding would be negative, which onnxruntime takes for none
    if g.chance(0.3) and "strides" in attributes:
        attributes["output_padding"] = [g.number(0, s - 1) for s in attributes["strides"]]
    bias = [g.weight((made * groups,), x.dtype)] if g.chance(0.6) else []
    g.add("ConvTranspose", [x, w, *bias], group=groups, **attributes)


def pool(g: Graph) -> None:
    operator, x = (
        g.choose(("MaxPool", "AveragePool", "MaxPool", "AveragePool", "LpPool")),
        image(g, ("float32", "float32", "float64")),
    )
    kernel = kernel_of(g, x)
    attributes = window(g, x, kernel, operator == "MaxPool" or g.opset >= (19 if operator == "AveragePool" else 18))
    if operator != "LpPool" and g.chance(0.4):
        attributes["ceil_mode"] = 1
    if operator == "AveragePool":
        attributes["count_include_pad"] = g.number(0, 1)
    if operator == "LpPool":
        attributes["p"] = g.number(1, 3)
    if any(e > n for e, n in zip(_reach(kernel, attributes), _padded(x, attributes), strict=True)):
        raise RefusedError("of such windows onnxruntime has one, that of no element")
    results = 2 if operator == "MaxPool" and g.chance(0.2) else 1
    g.add(operator, [x], results, kernel_shape=kernel, **attributes)


def _reach(kernel: Sequence[int], attributes: dict[str, Any]) -> list[int]:
    return [(k - 1) * d + 1 for k, d in zip(kernel, attributes.get("dilations", [1] * len(kernel)), strict=True)]


def _padded(x: Tensor, attributes: dict[str, Any]) -> list[int]:
    count = x.rank - 2
    pads = attributes.get("pads", [9 if attributes.get("auto_pad", "")[:4] == "SAME" else 0] * 2 * count)
    return [n + pads[d] + pads[d + count] for d, n in enumerate(x.shape[2:])]


def global_pool(g: Graph) -> None:
    operator = g.choose(("GlobalAveragePool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"))
    g.add(operator, [image(g)], **({"p": g.number(1, 2)} if operator == "GlobalLpPool" else {}))


def resize(g: Graph) -> None:
    x = image(g, ("float32", "float32", "float32", "uint8", "int32"), g.choose((2, 2, 2, 1)))
    mode = g.choose(("nearest", "linear", "cubic", "nearest", "linear"))
    if x.dtype not in FLOATS:
        mode = "nearest"  # between whole numbers onnxruntime cuts off what rounding leaves below one
    attributes: dict[str, Any] = {"mode": mode}
    words = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    attributes["coordinate_transformation_mode"] = g.choose(words)
    if mode == "nearest":
        attributes["nearest_mode"] = g.choose(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic" and g.chance(0.5):
        attributes |= {"cubic_coeff_a": -0.5, "exclude_outside": g.number(0, 1)}
    if g.opset >= 18 and mode != "nearest" and g.chance(0.3):
        attributes["antialias"] = 1
    sides = [max(1, int(n * g.choose((0.5, 1, 1.5, 2, 2, 0.75)))) for n in x.shape[2:]]
    empty = None if g.opset >= 13 else g.constant(np.zeros(0, np.float32))
    if g.chance(0.5):
        scales = [1.0, 1.0, *(g.choose((0.5, 1.0, 2.0, 2.0, 3.0, 1.5)) for _ in sides)]
        whole = all((n * s).is_integer() for n, s in zip(x.shape, scales, strict=True))
        if not whole and attributes["coordinate_transformation_mode"] in ("align_corners", "pytorch_half_pixel"):
            raise RefusedError("onnx and onnxruntime do not agree on how long such a result is")
        g.add("Resize", [x, empty, g.constant(np.array(scales, np.float32))], **attributes)
    else:
        sizes = g.constant(np.array([*x.shape[:2], *sides], np.int64))
        g.add("Resize", [x, empty, empty, sizes], **attributes)


def space(g: Graph) -> None:
    x, block = image(g, spatial=2), 2
    if x.shape[1] % 4 == 0 and g.chance(0.6):
        g.add("DepthToSpace", [x], blocksize=block, mode=g.choose(("DCR", "CRD")))
    else:
        g.add("SpaceToDepth", [x], blocksize=block)


def matmul(g: Graph) -> None:
    x = g.any(("float32", "float32", "float32", "float64", "int32", "float16"), (1, 2, 2, 3, 3, 4))
    k = x.shape[-1]
    found = g.pick(lambda t: t.dtype == x.dtype and t.rank > 1 and t.shape[-2] == k and t.name != x.name)
    if found is not None and g.chance(0.5):
        g.add("MatMul", [x, found])
        return
    lead = [n if g.chance(0.5) else 1 for n in x.shape[:-2]] if g.chance(0.4) else []
    shape = [*lead, k, g.extent()] if g.chance(0.9) else [k]
    g.add("MatMul", [x, g.weight(shape, x.dtype, 1 / np.sqrt(k))])


def gemm(g: Graph) -> None:
    x = g.any(("float32", "float32", "float64"), (2,))
    first, second = g.number(0, 1), g.number(0, 1)
    m, k = x.shape[::-1] if first else x.shape
    n = g.extent()
    w = g.weight((n, k) if second else (k, n), x.dtype, 1 / np.sqrt(k))
    bias = g.choose((None, (n,), (1, n), (m, 1), (m, n), (1,), ()))
    attributes: dict[str, Any] = {"alpha": 0.5} if g.chance(0.3) else {}
    if g.chance(0.3):
        attributes["beta"] = float(g.choose((0.5, 2.0, 0.0)))
    given = [] if bias is None else [g.weight(bias, x.dtype)]
    g.add("Gemm", [x, w, *given], transA=first, transB=second, **attributes)


def einsum(g: Graph) -> None:
    x = g.any(("float32",), (2, 3))
    if x.rank == 2:
        y = g.weight((x.shape[1], g.extent()), x.dtype, 0.5)
        g.add("Einsum", [x, y], equation=g.choose(("ij,jk->ik", "ij,jk->ki", "ij,jk", "ij,jk->i", "ij, jk -> k")))
        return
    y = g.weight((x.shape[0], x.shape[2], g.extent()), x.dtype, 0.5)
    g.add(
        "Einsum",
        [x, y],
        equation=g.choose(("bij,bjk->bik", "bij,bjk->kib", "bij,cjk->bcik", "...ij,...jk->...ik", "bij,bjk->bk")),
    )


def attention(g: Graph) -> None:
    """Softmax of a product with keys, times values."""
    x = g.any(("float32",), (3,))
    width = x.shape[-1]
    q, k, v = (g.add("MatMul", [x, g.weight((width, width), "float32", 1 / np.sqrt(width))])[0] for _ in range(3))
    (turned,) = g.add("Transpose", [k], perm=[0, 2, 1])
    (scores,) = g.add("MatMul", [q, turned])
    (scaled,) = g.add("Mul", [scores, g.constant(np.array(1 / np.sqrt(width), np.float32))])
    (weights,) = g.add("Softmax", [scaled], axis=-1 if g.opset >= 13 else 2)
    g.add("MatMul", [weights, v])


def quantize(g: Graph) -> None:
    x = g.any(("float32",), (1, 2, 3, 4, 4))
    kind = g.choose(("uint8", "int8"))
    if g.chance(0.15):
        g.add("DynamicQuantizeLinear", [x], 3)
        return
    scale, zero, attributes = _scales(g, x, kind)
    g.add("QuantizeLinear", [x, scale, zero], **attributes)


def dequantize(g: Graph) -> None:
    x = g.any(("uint8", "int8", "int32"), (1, 2, 3, 4, 4))
    scale, zero, attributes = _scales(g, x, x.dtype)
    g.add("DequantizeLinear", [x, scale, zero] if x.dtype != "int32" else [x, scale], **attributes)


def _scales(g: Graph, x: Tensor, kind: str) -> tuple[Tensor, Tensor, dict[str, Any]]:
    wide = g.opset >= 13 and x.rank > 1 and g.chance(0.4)
    place = g.number(0, x.rank - 1) if wide else 0
    shape = (x.shape[place],) if wide else ()
    scale = g.constant((np.abs(g.values(shape, "float32", 0.05)) + 0.02).astype("float32"))
    zero = g.constant(g.rng.integers(0, 100, shape).astype(kind) if kind != "int32" else np.zeros(shape, "int32"))
    return scale, zero, {"axis": place - x.rank * g.number(0, 1)} if wide else {}


def quantized_product(g: Graph) -> None:
    x = g.any(("uint8", "int8"), (2, 3))
    w = g.constant(g.rng.integers(-50, 50, (x.shape[-1], g.extent())).astype("int8"))
    if g.chance(0.5):
        zeros = [g.constant(np.array(3, x.dtype)), g.constant(np.array(-2, "int8"))]
        g.add("MatMulInteger", [x, w, *zeros[: g.number(0, 2)]])
        return
    numbers = [g.constant(np.array(v, "float32")) for v in (0.03, 0.02, 0.4)]
    zeros = [g.constant(np.array(v, d)) for v, d in ((3, x.dtype), (1, "int8"), (5, x.dtype))]
    g.add("QLinearMatMul", [x, numbers[0], zeros[0], w, numbers[1], zeros[1], numbers[2], zeros[2]])


def quantized_conv(g: Graph) -> None:
    x = image(g, ("uint8",), 2)
    kernel, groups = kernel_of(g, x), g.choose((1, x.shape[1]))
    made = groups * g.choose((1, 2, 4))
    kind = g.choose(("int8", "uint8"))
    w = g.constant(
        g.rng.integers(0 if kind == "uint8" else -40, 60, (made, x.shape[1] // groups, *kernel)).astype(kind)
    )
    attributes = {"group": groups, **window(g, x, kernel)}
    if g.chance(0.4):
        g.add("ConvInteger", [x, w, g.constant(np.array(3, "uint8")), g.constant(np.array(1, kind))], **attributes)
        return
    wide = (made,) if g.chance(0.4) else ()
    scales = [
        g.constant(np.array(0.03, "float32")),
        g.constant(np.full(wide, 0.02, "float32")),
        g.constant(np.array(0.3, "float32")),
    ]
    zeros = [g.constant(np.array(3, "uint8")), g.constant(np.zeros(wide, kind)), g.constant(np.array(9, "uint8"))]
    bias = [g.constant(g.rng.integers(-100, 100, (made,)).astype("int32"))] if g.chance(0.5) else []
    g.add("QLinearConv", [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zeros[2], *bias], **attributes)
