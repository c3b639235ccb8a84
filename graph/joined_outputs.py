"""Several results of one shape as one computation: what they share is computed once, in one loop nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..te import Tensor, compute
from ..te.expr import Binary, Bitcast, Call, Cast, Compare, Expr, Logic, Not, Read, Select
from ..te.reduce import Reduce
from ..te.tensor import Compute


def joined_outputs(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors of one shape as the results of one computation that reads reductions and placeholders only.

    What stands between is written out for each element. Tensors of several shapes, and reductions, stay as they are.
    """
    shapes = {tensor.shape for tensor in outputs}
    if len(outputs) < 2 or len(shapes) != 1 or not all(_is_open(tensor) for tensor in outputs):
        return list(outputs)

    def elements(*axes: Expr) -> tuple[Expr, ...]:
        written = _Written()
        return tuple(written.element(tensor, axes) for tensor in outputs)

    made: list[Tensor] = compute(outputs[0].shape, elements, "T_joined")
    return made


def _is_open(tensor: Tensor) -> bool:
    """True for a tensor whose elements can be written out where they are read."""
    return isinstance(tensor.op, Compute) and not isinstance(tensor.op.body, Reduce)


class _Written:
    """Elements of tensors written out, each once: equal ones are one expression."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Expr, Sequence[Expr]]] = {}
        """With the indices that a key names by their identities, so that these stay theirs."""

    def element(self, tensor: Tensor, indices: Sequence[Expr]) -> Expr:
        """Return the element of a tensor at indices."""
        key = (id(tensor), *map(id, indices))
        if key not in self._known:
            op = tensor.op
            assert isinstance(op, Compute) and not isinstance(op.body, Reduce)
            at = {id(axis): index for axis, index in zip(op.axis, indices, strict=True)}
            self._known[key] = self._at(op.body[tensor.value_index], at, {}), indices
        return self._known[key][0]

    def _at(self, expr: Expr, at: Mapping[int, Expr], done: dict[int, Expr]) -> Expr:
        """Return an expression with other indices for its axes."""
        if id(expr) not in done:
            done[id(expr)] = at[id(expr)] if id(expr) in at else self._rebuilt(expr, at, done)
        return done[id(expr)]

    def _rebuilt(self, expr: Expr, at: Mapping[int, Expr], done: dict[int, Expr]) -> Expr:
        def of(part: Expr) -> Expr:
            return self._at(part, at, done)

        if isinstance(expr, Read):
            indices = tuple(of(index) for index in expr.indices)
            return self.element(expr.tensor, indices) if _is_open(expr.tensor) else Read(expr.tensor, indices)
        if isinstance(expr, Binary | Compare | Logic):
            return type(expr)(expr.op, of(expr.left), of(expr.right))
        if isinstance(expr, Call):
            return Call(expr.function, of(expr.operand))
        if isinstance(expr, Cast | Bitcast):
            return type(expr)(of(expr.operand), expr.dtype)
        if isinstance(expr, Not):
            return Not(of(expr.operand))
        if isinstance(expr, Select):
            return Select(of(expr.condition), of(expr.yes), of(expr.no))
        return expr
