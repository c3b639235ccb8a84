"""Quantised numbers, integers that stand for (n - zero point) * scale: to them, back, and what lies between."""

from __future__ import annotations

from functools import reduce

import numpy as np

from ... import topi
from ...te import ExpressionError, Tensor
from ..operator import elementwise

QUANTISED = ("int8", "uint8", "int16", "uint16")
"""Element types of quantised numbers."""


def _quantize(data: Tensor, scale: Tensor, zero: Tensor | None = None, *, dtype: str = "uint8") -> Tensor:
    """round(data / scale) + zero, halves to even, within the range of `dtype` (ONNX, QuantizeLinear).

    Scale and zero point broadcast with the data. The division is in the data's type, the sum in float32.
    """
    low, high = _limits(dtype, None, None)
    whole = topi.cast(topi.round(topi.divide(data, scale)), "float32")
    if zero is not None:
        whole = topi.add(whole, topi.cast(zero, "float32"))
    return topi.cast(topi.clip(whole, low, high), dtype)


def _dequantize(data: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """(data - zero) * scale in float32 (ONNX, DequantizeLinear); the difference is exact."""
    if zero is not None:
        data = topi.subtract(topi.cast(data, "int32"), topi.cast(zero, "int32"))
    return topi.multiply(topi.cast(data, "float32"), topi.cast(scale, "float32"))


def _center(data: Tensor, zero: Tensor | None = None) -> Tensor:
    """data - zero in int16, of integers of 8 bits."""
    if data.dtype not in ("int8", "uint8"):
        raise ExpressionError(f"integers of 8 bits are centred, not {data.dtype}")
    whole = topi.cast(data, "int16")
    return whole if zero is None else topi.subtract(whole, topi.cast(zero, "int16"))


def _saturate(
    data: Tensor, *, zero: int = 0, dtype: str = "uint8", low: int | None = None, high: int | None = None
) -> Tensor:
    """round(data) + zero, halves to even, within `low` to `high`, by default the range of `dtype`."""
    least, most = _limits(dtype, low, high)
    whole = topi.round(data)
    return topi.cast(topi.clip(topi.add(whole, float(zero)) if zero else whole, least, most), dtype)


def _scaled_sum(*tensors: Tensor) -> Tensor:
    """The sum in float32 of a * b over pairs of tensors a, b, and of one more that stands alone, if any."""
    singles = [topi.cast(x, "float32") for x in tensors]
    terms = [topi.multiply(a, b) for a, b in zip(singles[::2], singles[1::2], strict=False)]
    return reduce(topi.add, terms + singles[len(terms) * 2 :])


def _limits(dtype: str, low: int | None, high: int | None) -> tuple[float, float]:
    """The least and the most that a quantised number may be; ExpressionError where there are none."""
    if dtype not in QUANTISED:
        raise ExpressionError(f"numbers are quantised to {', '.join(QUANTISED)}, not to {dtype}")
    limits = np.iinfo(dtype)
    least, most = limits.min if low is None else low, limits.max if high is None else high
    if not limits.min <= least <= most <= limits.max:
        raise ExpressionError(f"limits {least} to {most} are not within those of {dtype}")
    return float(least), float(most)


quantize = elementwise(_quantize)
dequantize = elementwise(_dequantize)
center = elementwise(_center)
saturate = elementwise(_saturate)
scaled_sum = elementwise(_scaled_sum)
