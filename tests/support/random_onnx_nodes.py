"""Nodes of random ONNX graphs: a function for each family of operators, which adds one of them to a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from random_onnx import Graph, RefusedError, Tensor, words

FLOATS = ("float32", "float32", "float32", "float32", "float32", "float16", "float64")
INTS = ("int64", "int32", "int64", "int32", "int8", "uint8")
ALL = (*FLOATS, *INTS, "bool")
ANY_RANK = (0, 1, 2, 3, 4, 4, 5)
TRIES = 60

Step = Callable[[Graph], Any]


def grow(graph: Graph, count: int) -> None:
    """Add nodes until there are `count`."""
    theme = graph.choose(THEMES)
    for _ in range(TRIES * count):
        if len(graph.nodes) >= count:
            return
        steps: Sequence[Step] = theme if graph.chance(0.65) else GENERAL
        try:
            graph.choose(steps)(graph)
        except RefusedError:
            continue


def axes_of(g: Graph, operator: str, axes: Sequence[int] | None, since: int) -> tuple[list[Tensor], dict[str, Any]]:
    """Axes as an attribute or, in newer operator sets, as an input."""
    if axes is None:
        return [], {}
    return ([g.constant(np.array(axes, np.int64))], {}) if g.opset >= since else ([], {"axes": list(axes)})


def some_axes(g: Graph, rank: int) -> list[int]:
    """A few distinct axes, some counted from the end."""
    count = g.number(1, max(rank, 1))
    return [int(a) - rank * int(g.chance(0.4)) for a in sorted(g.rng.permutation(rank)[:count])]


def axis(g: Graph, rank: int) -> int:
    return g.number(-rank, rank - 1)


def beside(g: Graph, x: Tensor, dtype: str = "", scale: float = 1.0) -> Tensor:
    """A tensor that broadcasts with another."""
    kind = dtype or x.dtype
    if g.chance(0.5):
        found = g.pick(lambda t: t.dtype == kind and t.name != x.name and _broadcasts(t.shape, x.shape))
        if found is not None:
            return found
    shape = [n if g.chance(0.6) else 1 for n in x.shape][g.number(0, x.rank) if g.chance(0.5) else 0 :]
    if g.chance(0.1) and x.rank < 5:
        shape = [g.choose((1, 2)), *([1] * (x.rank - len(shape))), *shape]
    return g.weight(shape, kind, scale)


def _broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(tuple(a), tuple(b))) <= 4000)
    except ValueError:
        return False


# -- element by element -----------------------------------------------------------------------------------------------

UNARY = words(
    "Abs Neg Exp Log Sqrt Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid Erf Floor "
    "Ceil Round Sign Reciprocal Relu LeakyRelu Elu Selu Celu HardSigmoid HardSwish Softplus Softsign "
    "ThresholdedRelu Gelu Mish Shrink Identity Relu Sigmoid Tanh Abs Neg LeakyRelu"
)


def unary(g: Graph) -> None:
    operator = g.choose(UNARY)
    attributes: dict[str, Any] = {}
    if operator in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "HardSigmoid") and g.chance(0.7):
        attributes["alpha"] = float(g.choose((0.1, 0.25, 0.5, 1.0, 1.5)))
    if operator == "Gelu":
        attributes["approximate"] = g.choose(("none", "tanh"))
    if operator == "Shrink":
        attributes = {"lambd": 0.3, "bias": float(g.choose((0.0, 0.2)))}
    types: tuple[str, ...] = (*FLOATS, "int32", "int64") if g.chance(0.2) else FLOATS
    if operator == "Shrink":  # of which onnxruntime computes doubles in single precision
        types = tuple(t for t in types if t != "float64")
    g.add(operator, [g.any(types, ANY_RANK)], **attributes)


def clip(g: Graph) -> None:
    x = g.any((*FLOATS, "int64", "int32", "int8", "uint8"), ANY_RANK)
    low, high = (g.constant(np.array(v).astype(x.dtype)) for v in (0 if x.dtype == "uint8" else -1, 2))
    g.add("Clip", [x, low if g.chance(0.8) else None, high] if g.chance(0.8) else [x, low])


def binary(g: Graph) -> None:
    operator = g.choose(words("Add Sub Mul Div Add Mul Sub Pow Mod Min Max Sum Mean PRelu"))
    x = g.any(FLOATS if g.chance(0.75) else INTS, ANY_RANK)
    if operator in ("Div", "Mod", "Pow"):
        y = _divisor(g, x) if operator != "Pow" else g.constant(np.array(g.choose((2, 3, 1, 0)), x.dtype))
        if operator == "Pow" and g.chance(0.4):
            y = g.constant(np.array(g.choose((2, 3)), g.choose(("float32", "int64", "int32"))))
        attributes = {"fmod": 1} if operator == "Mod" and (x.dtype in FLOATS or g.chance(0.3)) else {}
        g.add(operator, [x, y], **attributes)
        return
    if operator in ("Min", "Max", "Sum", "Mean"):
        g.add(operator, [x, *(beside(g, x) for _ in range(g.number(0, 2)))])
        return
    pair = [x, beside(g, x)]
    g.add(operator, pair if operator == "PRelu" or g.chance(0.7) else pair[::-1])


def _divisor(g: Graph, x: Tensor) -> Tensor:
    """One that is never near zero."""
    shape = [n if g.chance(0.5) else 1 for n in x.shape]
    value = np.abs(g.values(shape, x.dtype)) + np.ones((), x.dtype)
    sign = 1 if x.dtype.startswith("u") else g.choose((1, -1))
    return g.constant((value * np.array(sign).astype(x.dtype)).astype(x.dtype))


def compare(g: Graph) -> None:
    operator = g.choose(words("Equal Less Greater LessOrEqual GreaterOrEqual"))
    x = g.any((*FLOATS, "int64", "int32"), ANY_RANK)
    g.add(operator, [x, beside(g, x)])


def logic(g: Graph) -> None:
    operator, x = g.choose(("And", "Or", "Xor", "Not")), g.any(("bool",), ANY_RANK)
    g.add(operator, [x] if operator == "Not" else [x, beside(g, x)])


def bits(g: Graph) -> None:
    operator = g.choose(words("BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot"))
    x = g.any(("uint8",) if operator == "BitShift" else ("int32", "int64", "int8", "uint8"), ANY_RANK)
    if operator == "BitShift":
        g.add(
            operator,
            [x, g.constant(g.rng.integers(0, 5, x.shape).astype(x.dtype))],
            direction=g.choose(("LEFT", "RIGHT")),
        )
        return
    g.add(operator, [x] if operator == "BitwiseNot" else [x, beside(g, x)])


def where(g: Graph) -> None:
    x = g.any((*FLOATS, "int64", "int32", "uint8"), ANY_RANK)
    condition = beside(g, x, "bool")
    g.add("Where", [condition, x, beside(g, x)] if g.chance(0.5) else [condition, beside(g, x), x])


def cast(g: Graph) -> None:
    x = g.any(ALL, ANY_RANK)
    to = g.choose(
        ("float32", "float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool", "int16", "uint16")
    )
    if x.dtype in FLOATS and "int" in to and (np.abs(x.value) > 100).any():
        raise RefusedError("beyond the type")
    if x.dtype in FLOATS and to.startswith("u") and (x.value < 0).any():
        raise RefusedError("beyond the type")
    if g.opset >= 15 and g.chance(0.2):
        g.add("CastLike", [x, g.constant(np.zeros(2, to))])
    else:
        g.add("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def dropout(g: Graph) -> None:
    x = g.any(FLOATS, ANY_RANK)
    if g.opset >= 12:
        g.add("Dropout", [x, g.constant(np.array(0.5, np.float32))], results=g.number(1, 2))
    else:
        g.add("Dropout", [x], ratio=0.3)  # the mask of which onnxruntime leaves unset


# -- reductions -------------------------------------------------------------------------------------------------------

REDUCTIONS = words("Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp Sum Mean Max")


def reduction(g: Graph) -> None:
    operator = f"Reduce{g.choose(REDUCTIONS)}"
    whole = g.chance(0.3) and operator not in ("ReduceLogSum", "ReduceLogSumExp", "ReduceL2")  # which are not of them
    x = g.any((*FLOATS, "int32", "int64") if whole else FLOATS, (1, 2, 3, 4, 4, 5, 0))
    if not whole and x.dtype not in FLOATS:
        raise RefusedError("whole numbers")
    axes = some_axes(g, x.rank) if x.rank and g.chance(0.85) else None
    since = 13 if operator == "ReduceSum" else 18
    given, attributes = axes_of(g, operator, axes, since)
    if axes is None and g.opset >= since and g.chance(0.5):
        attributes["noop_with_empty_axes"] = 1
    g.add(operator, [x, *given], keepdims=g.number(0, 1), **attributes)


def position(g: Graph) -> None:
    x = g.any(("float32", "float32", "int32"), (1, 2, 3, 4))
    attributes = {"select_last_index": 1} if g.opset >= 12 and g.chance(0.3) else {}
    g.add(g.choose(("ArgMax", "ArgMin")), [x], axis=axis(g, x.rank), keepdims=g.number(0, 1), **attributes)


def running_sum(g: Graph) -> None:
    x = g.any(("float32", "float64", "int32", "int64"), (1, 2, 3, 4))
    place = g.constant(np.array(axis(g, x.rank), g.choose(("int64", "int32"))))
    g.add("CumSum", [x, place], exclusive=g.number(0, 1), reverse=g.number(0, 1))


# -- normalisations ---------------------------------------------------------------------------------------------------


def softmax(g: Graph) -> None:
    x = g.any(FLOATS, (1, 2, 3, 4))
    attributes = {"axis": axis(g, x.rank)} if g.chance(0.7) else {}
    g.add(g.choose(("Softmax", "Softmax", "LogSoftmax", "Hardmax")), [x], **attributes)


def layer_norm(g: Graph) -> None:
    if g.opset < 17:  # onnxruntime has it as its own before
        raise RefusedError("too old")
    x = g.any(("float32", "float32", "float64"), (2, 3, 4))
    first = g.number(max(x.rank - 2, 0), x.rank - 1)
    scale, shift = (g.weight(x.shape[first:], x.dtype) for _ in range(2))
    inputs = [x, scale, shift] if g.chance(0.7) else [x, scale]
    g.add("LayerNormalization", inputs, axis=first - x.rank * g.number(0, 1), epsilon=g.choose((1e-5, 1e-3)))


def batch_norm(g: Graph) -> None:
    x = g.any(("float32", "float32", "float64"), (2, 3, 4, 4, 4, 5))
    shape = (x.shape[1],)
    scale, shift, mean = (g.weight(shape, x.dtype, fixed=g.chance(0.9)) for _ in range(3))
    variance = g.constant(np.abs(g.values(shape, x.dtype)) + np.ones((), x.dtype) / 2)
    g.add("BatchNormalization", [x, scale, shift, mean, variance], epsilon=g.choose((1e-5, 1e-3)))


def instance_norm(g: Graph) -> None:
    x = g.any(("float32",), (3, 4, 4, 5))
    g.add("InstanceNormalization", [x, *(g.weight((x.shape[1],), x.dtype) for _ in range(2))], epsilon=1e-3)


def group_norm(g: Graph) -> None:
    if g.opset < 21:  # that of version 18 is not valid any more
        raise RefusedError("too old")
    x = g.any(("float32",), (3, 4))
    groups = g.choose([n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0])
    g.add(
        "GroupNormalization",
        [x, *(g.weight((x.shape[1],), x.dtype) for _ in range(2))],
        num_groups=groups,
        epsilon=1e-3,
    )


def other_norm(g: Graph) -> None:
    operator = g.choose(("LRN", "LpNormalization", "MeanVarianceNormalization"))
    x = g.any(("float32",), (4,))
    if operator == "LRN":
        g.add(operator, [x], size=g.choose((1, 3, 5)), alpha=0.1, beta=0.75, bias=float(g.choose((1.0, 2.0))))
    elif operator == "LpNormalization":
        g.add(operator, [x], axis=axis(g, x.rank), p=g.number(1, 2))
    else:
        g.add(operator, [x], axes=[0, 2, 3] if g.chance(0.5) else [1, 2])


# -- windows ----------------------------------------------------------------------------------------------------------


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


# -- products ---------------------------------------------------------------------------------------------------------


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


# -- quantised --------------------------------------------------------------------------------------------------------


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


# -- moving -----------------------------------------------------------------------------------------------------------


def reshape(g: Graph) -> None:
    x = g.any(ALL, ANY_RANK)
    primes = [p for n in x.shape for p in _factors(n)]
    groups = (
        np.split(np.array(primes), sorted(g.rng.integers(0, len(primes) + 1, g.number(0, 3))))
        if primes
        else [np.ones(0)]
    )
    shape = [int(np.prod(part)) for part in groups]
    if g.chance(0.4):
        shape[g.number(0, len(shape) - 1)] = -1
    elif g.chance(0.3) and x.rank and shape[0] == x.shape[0]:
        shape[0] = 0
    attributes = {"allowzero": 1} if g.opset >= 14 and 0 not in shape and g.chance(0.2) else {}
    g.add("Reshape", [x, g.constant(np.array(shape, np.int64))], **attributes)


def _factors(n: int) -> list[int]:
    return next(([p, *_factors(n // p)] for p in range(2, n + 1) if n % p == 0), [])


def flatten(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4))
    g.add("Flatten", [x], axis=g.number(-x.rank, x.rank))


def transpose(g: Graph) -> None:
    x = g.any(ALL, (2, 3, 4, 4, 5))
    g.add("Transpose", [x], **({"perm": g.rng.permutation(x.rank).tolist()} if g.chance(0.85) else {}))


def squeeze(g: Graph) -> None:
    x = g.pick(lambda t: 1 in t.shape) or g.input((1, 3, 1, 4), "float32")
    ones = [d - x.rank * g.number(0, 1) for d in range(x.rank) if x.shape[d] == 1]
    axes = None if g.chance(0.2) else ones[: g.number(1, len(ones))]
    given, attributes = axes_of(g, "Squeeze", axes, 13)
    g.add("Squeeze", [x, *given], **attributes)


def unsqueeze(g: Graph) -> None:
    x = g.any(ALL, (0, 1, 2, 3))
    count = g.number(1, 2)
    axes = [int(a) for a in g.rng.permutation(x.rank + count)[:count]]
    given, attributes = axes_of(g, "Unsqueeze", [a - (x.rank + count) * g.number(0, 1) for a in axes], 13)
    g.add("Unsqueeze", [x, *given], **attributes)


def concat(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4, 4))
    place = g.number(0, x.rank - 1)

    def joins(t: Tensor) -> bool:
        return (
            t.dtype == x.dtype
            and t.rank == x.rank
            and all(a == b for d, (a, b) in enumerate(zip(t.shape, x.shape, strict=True)) if d != place)
        )

    others = [g.pick(joins) or x for _ in range(g.number(0, 2))]
    if g.chance(0.4):
        shape = list(x.shape)
        shape[place] = g.choose((1, 2, 3))
        others.append(g.weight(shape, x.dtype))
    parts = [x, *others]
    g.add("Concat", [parts[k] for k in g.rng.permutation(len(parts))], axis=place - x.rank * g.number(0, 1))


def split(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4, 4))
    place = g.number(0, x.rank - 1)
    extent = x.shape[place]
    count = g.number(1, min(extent, 3))
    attributes: dict[str, Any] = {"axis": place - x.rank * g.number(0, 1)}
    if g.chance(0.5) and (extent % count == 0 or g.opset >= 18):
        if g.opset >= 18:
            attributes["num_outputs"] = count
        g.add("Split", [x], count, **attributes)
        return
    cuts = sorted(int(c) for c in g.rng.permutation(np.arange(1, extent))[: count - 1])
    sizes = np.diff([0, *cuts, extent]).tolist()
    if g.opset >= 13:
        g.add("Split", [x, g.constant(np.array(sizes, np.int64))], count, **attributes)
    else:
        g.add("Split", [x], count, split=sizes, **attributes)


def cut(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4, 4))
    axes = some_axes(g, x.rank)
    begins, ends, steps = [], [], []
    for a in axes:
        extent, step = x.shape[a], g.choose((1, 1, 1, 2, 3, -1, -2))
        low, high = sorted((g.number(0, extent), g.number(0, extent)))
        begin, end = (low, high) if step > 0 else (high, low - 1)
        if g.chance(0.3):
            begin, end = (0, g.choose((2**63 - 1, 1000))) if step > 0 else (g.choose((2**63 - 1, 1000)), -(2**63 - 1))
        elif g.chance(0.3):
            begin -= extent
        begins.append(begin)
        ends.append(end if step > 0 or end >= 0 else -(2**63 - 1))
        steps.append(step)
    lists = [g.constant(np.array(v, np.int64)) for v in (begins, ends, axes, steps)]
    g.add("Slice", [x, *lists] if set(steps) != {1} or g.chance(0.5) else [x, *lists[:3]])


def pad(g: Graph) -> None:
    x = g.any(("float32", "float32", "float64", "int32", "int64", "uint8"), (1, 2, 3, 4, 4))
    modes = ["constant", "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else [])]
    mode = g.choose(modes)
    axes = some_axes(g, x.rank) if g.opset >= 18 and g.chance(0.4) else None
    count = len(axes) if axes is not None else x.rank
    low = -1 if mode == "constant" and g.chance(0.2) else 0
    pads = [g.number(low, 2) if g.chance(0.7) else 0 for _ in range(2 * count)]
    inputs: list[Tensor | None] = [x, g.constant(np.array(pads, np.int64))]
    if axes is not None or (mode == "constant" and g.chance(0.5)):
        inputs.append(g.constant(np.array(g.choose((0, 1, 2))).astype(x.dtype)))
    if axes is not None:
        inputs.append(g.constant(np.array(axes, np.int64)))
    g.add("Pad", inputs, mode=mode)


def expand(g: Graph) -> None:
    x = g.any(ALL, (0, 1, 2, 3, 4))
    shape = [n if n != 1 else g.choose((1, 2, 3)) for n in x.shape]
    shape = [g.choose((1, 2)) for _ in range(g.number(0, 1))] + [n if g.chance(0.7) else 1 for n in shape]
    g.add("Expand", [x, g.constant(np.array(shape, np.int64))])


def tile(g: Graph) -> None:
    x = g.any(("float32", "float64", "int32", "int64", "bool", "uint8"), (1, 2, 3, 4))
    g.add("Tile", [x, g.constant(np.array([g.choose((1, 1, 2, 3)) for _ in x.shape], np.int64))])


def gather(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4))
    place = axis(g, x.rank)
    indices = _places(g, g.choose(((), (1,), (3,), (2, 3), (7,))), x.shape[place])
    g.add("Gather", [x, indices], axis=place)


def _places(g: Graph, shape: Sequence[int], extent: int) -> Tensor:
    """Places along an axis, some from its end: constants, or an input."""
    value = np.asarray(g.rng.integers(-extent, extent, shape)).astype(g.choose(("int64", "int32")))
    if g.chance(0.6):
        return g.constant(value)
    made = g.input(shape, str(value.dtype))
    g.tensors[made.name] = Tensor(made.name, value, value)
    return g.tensors[made.name]


def gather_elements(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3))
    place = axis(g, x.rank)
    shape = list(x.shape)
    shape[place] = g.choose((1, 2, 4))
    g.add("GatherElements", [x, _places(g, shape, x.shape[place])], axis=place)


def gather_nd(g: Graph) -> None:
    x = g.any(FLOATS, (1, 2, 3, 4))
    width, lead = g.number(1, x.rank), g.choose(((), (2,), (3, 2)))
    batch = 1 if g.opset >= 12 and x.rank > 1 and g.chance(0.3) else 0
    width = min(width, x.rank - batch)
    places = [g.rng.integers(-n, n, (*x.shape[:batch], *lead)) for n in x.shape[batch : batch + width]]
    g.add("GatherND", [x, g.constant(np.stack(places, axis=-1))], **({"batch_dims": batch} if batch else {}))


def scatter(g: Graph) -> None:
    x = g.any(("float32", "float32", "float64", "int32", "int64"), (1, 2, 3))
    place = g.number(0, x.rank - 1)
    count = g.number(1, x.shape[place])
    shape = [g.number(1, n) if d != place else count for d, n in enumerate(x.shape)]
    order = g.rng.permuted(
        np.broadcast_to(np.arange(x.shape[place])[:, None], (x.shape[place], int(np.prod(shape)))), axis=0
    )
    rows = [n for d, n in enumerate(shape) if d != place]
    indices = np.moveaxis(order[:count, : int(np.prod(rows))].reshape(count, *rows), 0, place)
    attributes: dict[str, Any] = {"axis": place - x.rank * g.number(0, 1)}
    if g.opset >= 16 and g.chance(0.4):
        attributes["reduction"] = g.choose(("add", "mul", *(("max", "min") if g.opset >= 18 else ())))
        indices = g.rng.integers(-x.shape[place], x.shape[place], shape)
    g.add("ScatterElements", [x, g.constant(indices.astype(np.int64)), g.weight(shape, x.dtype)], **attributes)


def scatter_nd(g: Graph) -> None:
    x = g.any(("float32", "float32", "float64", "int32", "int64", "bool"), (1, 2, 3))
    width = g.number(1, x.rank)
    rows = int(np.prod(x.shape[:width]))
    count = g.number(1, min(rows, 4))
    places = np.stack(np.unravel_index(g.rng.permutation(rows)[:count], x.shape[:width]), axis=-1)
    attributes = (
        {"reduction": g.choose(("add", "mul"))} if g.opset >= 16 and x.dtype != "bool" and g.chance(0.3) else {}
    )
    g.add(
        "ScatterND",
        [x, g.constant(places.astype(np.int64)), g.weight((count, *x.shape[width:]), x.dtype)],
        **attributes,
    )


def one_hot(g: Graph) -> None:
    x = g.any(("int64", "int32"), (1, 2))
    kind = g.choose(("float32", "int64", "int32"))
    depth = g.constant(np.array(g.choose((3, 10)), np.int64))
    g.add("OneHot", [x, depth, g.constant(np.array([0, 1]).astype(kind))], axis=g.choose((-1, 0, 1)))


def trilu(g: Graph) -> None:
    x = g.any(("float32", "float64", "int64"), (2, 3, 4))
    given = [g.constant(np.array(g.number(-2, 2), np.int64))] if g.chance(0.6) else []
    g.add("Trilu", [x, *given], upper=g.number(0, 1))


def shape_of(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4))
    attributes = {"start": g.number(-2, 1), "end": g.number(1, 4)} if g.opset >= 15 and g.chance(0.3) else {}
    if g.chance(0.7):
        g.add("Shape", [x], **attributes)
    else:
        g.add("Size", [x])


def made(g: Graph) -> None:
    """Tensors made of nothing but constants."""
    which = g.choose(("Range", "ConstantOfShape", "EyeLike"))
    if which == "Range":
        kind = g.choose(("float32", "int64", "int32", "float64"))
        start, limit, step = (np.array(v).astype(kind) for v in (g.number(-3, 3), g.number(5, 9), g.number(1, 3)))
        g.add(which, [g.constant(v) for v in (start, limit, step)])
    elif which == "ConstantOfShape":
        value = helper.make_tensor("value", TensorProto.FLOAT, [1], [1.5])
        g.add(which, [g.constant(np.array(g.shape(2), np.int64))], **({"value": value} if g.chance(0.7) else {}))
    else:
        g.add(which, [g.any(("float32", "int32"), (2,))], k=g.number(-2, 2), dtype=g.choose((1, 7)))


def other_moves(g: Graph) -> None:
    which = g.choose(("ReverseSequence", "Compress", "CenterCropPad", "Col2Im"))
    if which == "ReverseSequence":
        x = g.any(("float32",), (2, 3))
        time, batch = (0, 1) if g.chance(0.5) else (1, 0)
        lengths = g.constant(g.rng.integers(1, x.shape[time] + 1, x.shape[batch]).astype(np.int64))
        g.add(which, [x, lengths], time_axis=time, batch_axis=batch)
    elif which == "Compress":
        x = g.any(("float32", "int64", "bool"), (1, 2, 3))
        place = g.number(0, x.rank - 1) if g.chance(0.7) else None
        count = int(np.prod(x.shape)) if place is None else x.shape[place]
        kept = g.constant(g.rng.random(g.number(1, count)) < 0.7)
        g.add(which, [x, kept], **({} if place is None else {"axis": place}))
    elif which == "CenterCropPad":
        x = g.any(("float32",), (2, 3, 4))
        g.add(which, [x, g.constant(np.array([max(1, n + g.number(-2, 2)) for n in x.shape], np.int64))])
    else:
        x = g.input((1, 2 * 4, 9), "float32")
        g.add(which, [x, *(g.constant(np.array(v, np.int64)) for v in ((4, 4), (2, 2)))])


ELEMENTWISE: tuple[Step, ...] = (unary, unary, unary, binary, binary, binary, clip, where, compare, cast)
MOVES: tuple[Step, ...] = (
    reshape,
    transpose,
    squeeze,
    unsqueeze,
    concat,
    split,
    cut,
    pad,
    expand,
    tile,
    flatten,
    gather,
)
GENERAL: tuple[Step, ...] = (
    *ELEMENTWISE,
    *MOVES,
    *(reduction, reduction, position, running_sum, softmax, logic, bits, dropout, matmul, gemm, einsum),
    *(gather_elements, gather_nd, scatter, scatter_nd, one_hot, trilu, shape_of, made, other_moves, layer_norm),
)
IMAGE: tuple[Step, ...] = (
    *(conv, conv, conv, conv, pool, pool, batch_norm, batch_norm, unary, unary, binary, binary, concat, resize),
    *(
        conv_transpose,
        global_pool,
        space,
        pad,
        instance_norm,
        group_norm,
        other_norm,
        reduction,
        transpose,
        split,
        clip,
    ),
)
SEQUENCE: tuple[Step, ...] = (
    *(matmul, matmul, gemm, layer_norm, layer_norm, softmax, attention, binary, binary, unary, transpose, reshape),
    *(gather, einsum, reduction, where, split, concat, cut, unsqueeze),
)
QUANTIZED: tuple[Step, ...] = (
    *(quantize, quantize, dequantize, dequantize, quantized_product, quantized_conv, quantized_conv, matmul, conv),
    *(unary, binary, pool, clip, cast),
)
THEMES: tuple[tuple[Step, ...], ...] = (IMAGE, IMAGE, IMAGE, SEQUENCE, SEQUENCE, QUANTIZED, GENERAL, GENERAL)
