"""Known values of the loops around a place in a nest, and index expressions simplified by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.index import IndexExpr, Term
from ...dialects.loop import AtOp, ForOp, is_bound
from ...dialects.loop_steps import Copies


@dataclass(frozen=True)
class Known:
    """A loop's value and the depth of the scope it is defined in."""

    value: SSAValue
    depth: int


class _Ranges(dict[str, tuple[int, int]]):
    """Ranges of loops; counts how often they changed."""

    changes = 0

    def __setitem__(self, name: str, extent: tuple[int, int]) -> None:
        self.changes += 1
        super().__setitem__(name, extent)

    def __delitem__(self, name: str) -> None:
        self.changes += 1
        super().__delitem__(name)


class LoopValues:
    """Of the loops around, a range of values each, and in `env` a constant value or one that is `Known`."""

    def __init__(self) -> None:
        self.env: dict[str, int | Known] = {}
        self.ranges = _Ranges()
        self._settled: dict[IndexExpr, IndexExpr] = {}
        self._settled_at = 0
        self._axes: dict[tuple[Term, ...], tuple[str, ...]] = {}
        self._simplified: dict[tuple[object, ...], IndexExpr] = {}

    def fixed(self, expr: IndexExpr) -> IndexExpr:
        """The expression with constant loops replaced, simplified for the ranges of the others."""
        if self._settled_at != self.ranges.changes:
            self._settled_at = self.ranges.changes
            self._settled.clear()
        found = self._settled.get(expr)
        if found is None:
            found = self._settled[expr] = self._settle(expr)
        return found

    def _settle(self, expr: IndexExpr) -> IndexExpr:
        const = expr.const
        terms: list[Term] = []
        is_plain = True
        for term in expr.terms:
            atom, c = term
            if isinstance(atom, str):
                value = self.env.get(atom)
                if type(value) is int:
                    const += c * value
                    continue
            else:
                is_plain = False
            terms.append(term)
        if is_plain:
            return expr if len(terms) == len(expr.terms) else IndexExpr(tuple(terms), const)
        return self._simplify(tuple(terms)) + const

    def _simplify(self, terms: tuple[Term, ...]) -> IndexExpr:
        """A sum with constant loops replaced, simplified: once for copies of loops that it does not name.

        The constant of a sum, and what is added to it, have no part in that.
        """
        axes = self._axes.get(terms)
        if axes is None:
            axes = self._axes[terms] = tuple(sorted(IndexExpr(terms, 0).axes()))
        values = [value if type(value := self.env.get(n)) is int else None for n in axes]
        key = (terms, *values, *map(self.ranges.get, axes))
        found = self._simplified.get(key)
        if found is None:
            constants = {n: IndexExpr((), value) for n, value in zip(axes, values, strict=True) if value is not None}
            found = self._simplified[key] = IndexExpr(terms, 0).substitute(constants).simplify(self.ranges)
        return found

    def iteration(self, op: AtOp) -> tuple[IndexExpr, tuple[int, int]]:
        """The iteration of a loop that nests are run for, and the values that it can have where they are."""
        iteration = self.fixed(op.value)
        low, high = iteration.bounds(self.ranges)
        most = [limit.const for c in op.conditions if (limit := c + op.value).is_constant]  # `limit - value >= 0`
        return iteration, (low, min(high, *most) if most else high)

    def is_copy(self, copies: Copies) -> bool:
        """True in those copies of unrolled loops around."""
        return any(all(self.fixed(c).bounds(self.ranges)[0] >= 0 for c in conditions) for conditions in copies)

    @contextmanager
    def valued(self, name: str, value: int | Known | None, values: tuple[int, int]) -> Iterator[None]:
        """Know a loop's value, where there is one, and the values that it can have."""
        around, extent = self.env.get(name), self.ranges.get(name)
        if value is not None:
            self.env[name] = value
        self.ranges[name] = values
        yield
        self.env.pop(name, None)
        del self.ranges[name]
        if around is not None:
            self.env[name] = around
        if extent is not None:
            self.ranges[name] = extent

    @contextmanager
    def inside(self, op: ForOp, sizes: Mapping[str, int]) -> Iterator[None]:
        """Know what holds for all iterations of a loop, in a launch of so many blocks and threads on each axis."""
        one = sizes[op.loop_kind] == 1 if is_bound(op) else op.size == 1 and op.loop_kind != "vthread"
        with self.valued(op.loop_name, 0 if one else None, (0, op.size - 1)):
            yield

    @contextmanager
    def at_iteration(self, op: AtOp) -> Iterator[None]:
        """Know what holds for nests that are run for another iteration."""
        iteration, values = self.iteration(op)
        with self.valued(op.loop_name, iteration.const if iteration.is_constant else None, values):
            yield
