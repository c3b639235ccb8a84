"""Sums of products along named axes."""

from __future__ import annotations

from functools import reduce

from ... import te, topi
from ...dialects.numpy_types import working_type
from ...te import ShapeError, Tensor, compute, reduce_axis
from ...te.errors import format_shape
from ...te.expr import Expr, promote
from ...te.reduce import Reduce
from ..operator import product


def _einsum(*tensors: Tensor, equation: str) -> Tensor:
    """NumPy's einsum, `...` included; an axis of extent 1 is stretched under `...` alone."""
    terms, result = _parsed(equation, tensors)
    extents: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        for letter, extent in zip(term, tensor.shape, strict=True):
            known = extents.get(letter, 1)
            if known not in (1, extent) and not (extent == 1 and letter.isdigit()):
                raise ShapeError(f"einsum: axis {letter} of '{equation}' has extents {known} and {extent}")
            extents[letter] = max(known, extent)
    reduced = {letter: reduce_axis((0, n), f"k_{letter}") for letter, n in extents.items() if letter not in result}

    dtype = reduce(promote, (t.dtype for t in tensors))
    kind = working_type(dtype) if reduced else dtype

    def element(*indices: Expr) -> Expr | Reduce:
        at: dict[str, Expr] = {**dict(zip(result, indices, strict=True)), **reduced}
        factors = [
            t[tuple(0 if n == 1 else at[letter] for letter, n in zip(term, t.shape, strict=True))].astype(kind)
            for term, t in zip(terms, tensors, strict=True)
        ]
        term = reduce(lambda a, b: a * b, factors)
        return te.sum(term, axis=list(reduced.values())) if reduced else term

    made: Tensor = compute(tuple(extents[letter] for letter in result), element, "T_einsum")
    return made if kind == dtype else topi.cast(made, dtype)


def _parsed(equation: str, tensors: tuple[Tensor, ...]) -> tuple[list[str], str]:
    """Parse the equation to one letter an axis; those under `...` are digits, the last axis 0."""
    left, arrow, right = equation.partition("->")
    terms = []
    for term, tensor in zip(left.split(","), tensors, strict=False):
        left_out = range(tensor.ndim - len(term.replace("...", "")))
        terms.append(term.replace("...", "".join(str(k) for k in reversed(left_out))))
    if len(terms) != len(tensors) or any(len(t) != x.ndim for t, x in zip(terms, tensors, strict=True)):
        shapes = ", ".join(format_shape(t.shape) for t in tensors)
        raise ShapeError(f"einsum: '{equation}' does not fit tensors of shapes {shapes}")
    hidden = max(("".join(c for c in term if c.isdigit()) for term in terms), key=len, default="")
    joined = "".join(terms)
    if arrow:
        return terms, right.replace("...", hidden)
    return terms, hidden + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and not c.isdigit()))


einsum = product(_einsum)
