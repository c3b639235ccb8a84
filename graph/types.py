"""Types of tensors in networks, and te tensors for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from .. import te
from ..dialects.element import DTYPES, dtype_name
from ..dialects.graph import Option, OptionsAttr
from .operator import apply


def tensor_type(shape: Sequence[int], dtype: str) -> TensorType[Any]:
    """Return the type of a tensor; ValueError for a dtype that has none."""
    if dtype not in DTYPES:
        raise ValueError(f"element type '{dtype}' is not one of {', '.join(DTYPES)}")
    return TensorType(DTYPES[dtype], tuple(int(n) for n in shape))


def shape_of(value: SSAValue | Attribute) -> tuple[int, ...]:
    """Return the shape of a tensor."""
    kind = value.type if isinstance(value, SSAValue) else value
    assert isinstance(kind, TensorType)
    return tuple(kind.get_shape())


def dtype_of(value: SSAValue | Attribute) -> str:
    """NumPy's name of a tensor's elements."""
    kind = value.type if isinstance(value, SSAValue) else value
    assert isinstance(kind, TensorType)
    return dtype_name(kind.get_element_type())


def placeholder(value: SSAValue | Attribute, name: str = "p", constant: bool = False) -> te.Tensor:
    """Return a te placeholder of a tensor's type."""
    return te.placeholder(shape_of(value), dtype_of(value), name, constant)


def infer(operator: str, kinds: Sequence[Attribute], options: Mapping[str, Option]) -> list[TensorType[Any]]:
    """Infer the types an operator gives for tensors of these types; ExpressionError where they do not fit."""
    return list(_infer(operator, tuple(kinds), OptionsAttr.of(options)))


@lru_cache(maxsize=4096)
def _infer(operator: str, kinds: tuple[Attribute, ...], options: OptionsAttr) -> tuple[TensorType[Any], ...]:
    tensors = [placeholder(kind, f"p{k}") for k, kind in enumerate(kinds)]
    return tuple(tensor_type(t.shape, t.dtype) for t in apply(operator, tensors, options.values))
