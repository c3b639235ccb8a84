"""What is known of the values of the loops around a place in a nest, and index expressions simplified by it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.index import IndexExpr
from ...dialects.loop import AtOp


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
        env = self.env
        if all(isinstance(a, str) for a, _ in expr.terms):
            const = expr.const
            terms = []
            for atom, c in expr.terms:
                value = env.get(atom)  # type: ignore[arg-type]
                if type(value) is int:
                    const += c * value
                else:
                    terms.append((atom, c))
            return IndexExpr(tuple(terms), const)
        constants = {n: IndexExpr((), env[n]) for n in expr.axes() if type(env.get(n)) is int}  # type: ignore[arg-type]
        return expr.substitute(constants).simplify(self.ranges)

    def iteration(self, op: AtOp) -> tuple[IndexExpr, tuple[int, int]]:
        """The iteration of a loop that nests are run for, and the values that it can have where they are."""
        iteration = self.fixed(op.value)
        low, high = iteration.bounds(self.ranges)
        most = [limit.const for c in op.conditions if (limit := c + op.value).is_constant]  # `limit - value >= 0`
        return iteration, (low, min(high, *most) if most else high)
