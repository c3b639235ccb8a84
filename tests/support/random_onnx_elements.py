"""Random ONNX operators element by element, reductions and normalisations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx import helper
from random_onnx import Graph, RefusedError, Tensor, of_own_mean, words
from random_onnx_values import ALL, ANY_RANK, FLOATS, INTS, axes_of, axis, beside, some_axes

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
    axis, epsilon = first - x.rank * g.number(0, 1), g.choose((1e-5, 1e-3))
    off = of_own_mean(x, x.shape[first:], scale, epsilon)
    g.add("LayerNormalization", inputs, axis=axis, epsilon=epsilon, off=off)


def batch_norm(g: Graph) -> None:
    x = g.any(("float32", "float32", "float64"), (2, 3, 4, 4, 4, 5))
    shape = (x.shape[1],)
    scale, shift, mean = (g.weight(shape, x.dtype, fixed=g.chance(0.9)) for _ in range(3))
    variance = g.constant(np.abs(g.values(shape, x.dtype)) + np.ones((), x.dtype) / 2)
    g.add("BatchNormalization", [x, scale, shift, mean, variance], epsilon=g.choose((1e-5, 1e-3)))


def instance_norm(g: Graph) -> None:
    x = g.any(("float32",), (3, 4, 4, 5))
    scale, shift = (g.weight((x.shape[1],), x.dtype) for _ in range(2))
    off = of_own_mean(x, x.shape[2:], scale, 1e-3)
    g.add("InstanceNormalization", [x, scale, shift], epsilon=1e-3, off=off)


def group_norm(g: Graph) -> None:
    if g.opset < 21:  # that of version 18 is not valid any more
        raise RefusedError("too old")
    x = g.any(("float32",), (3, 4))
    groups = g.choose([n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0])
    scale, shift = (g.weight((x.shape[1],), x.dtype) for _ in range(2))
    off = of_own_mean(x, (x.shape[1] // groups, *x.shape[2:]), scale, 1e-3)
    g.add("GroupNormalization", [x, scale, shift], num_groups=groups, epsilon=1e-3, off=off)


def other_norm(g: Graph) -> None:
    operator = g.choose(("LRN", "LpNormalization", "MeanVarianceNormalization"))
    x = g.any(("float32",), (4,))
    if operator == "LRN":
        g.add(operator, [x], size=g.choose((1, 3, 5)), alpha=0.1, beta=0.75, bias=float(g.choose((1.0, 2.0))))
    elif operator == "LpNormalization":
        g.add(operator, [x], axis=axis(g, x.rank), p=g.number(1, 2))
    else:
        axes = [0, 2, 3] if g.chance(0.5) else [1, 2]
        if prod(x.shape[n] for n in axes) == 1:  # divided by 1e-9 alone, what a mean rounds off becomes 1 or -1
            raise RefusedError("one element")
        g.add(operator, [x], axes=axes)
