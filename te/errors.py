"""Refusals of the tensor-expression front end."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialects.errors import Error


class ExpressionError(Error, ValueError):
    """A tensor expression that the te dialect cannot hold; the message says which and what to write instead."""


class ShapeError(ExpressionError):
    """Shapes that do not fit an operator; the message names the operator and the shapes."""


def format_shape(shape: Sequence[int]) -> str:
    """`(1, 512, 7, 7)`, and `(3,)` for one extent, as Python prints tuples."""
    return str(tuple(int(s) for s in shape))
