"""Sums of 16-bit floats in networks: in single precision, and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import topi
from ...dialects.numpy_types import working_type
from ...te import Tensor


def rounded_once(function: Callable[..., Tensor], word: str = "out_dtype") -> Callable[..., Tensor]:
    """Make an operator that sums in the type given as its option `word` return elements of its data's type.

    A sum in 16 bits stops growing where the next term is less than half its last place: of ones in bfloat16, at 256.
    """

    def compute(data: Tensor, *rest: Any, **options: Any) -> Tensor:
        kind = working_type(data.dtype)
        if kind == data.dtype:
            return function(data, *rest, **options)
        return topi.cast(function(data, *rest, **{**options, word: kind}), data.dtype)

    return compute
