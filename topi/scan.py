"""Sums and products of all elements up to each along an axis, in as many steps as there are elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import te
from ..te import Tensor, compute, reduce_axis
from ..te.expr import Expr
from .arguments import one_axis

PART = 16
"""Elements of a part, each of which looks at all of its part: a vector of floats on CPUs with the widest ones. Rows of
128x512 take 95 us so, 207 in parts of 32, 4041 in one (an early version of this, one core of an Emerald Rapids)."""
WHOLE = 2 * PART
"""Elements of a row up to which it is one part. A choice: what comes of parts is two stages more."""


def cumsum(data: Tensor, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The sum of the elements up to each along an axis, without it where `exclusive`, from the end in `reverse`."""
    scan = _Scan("cumsum", te.sum, lambda x, y: x + y, 0, reverse)
    return scan.of(data, one_axis("cumsum", axis, data.ndim), exclusive)


def cumprod(data: Tensor, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The product of the elements up to each along an axis, without it where `exclusive`, from the end in `reverse`."""
    scan = _Scan("cumprod", te.prod, lambda x, y: x * y, 1, reverse)
    return scan.of(data, one_axis("cumprod", axis, data.ndim), exclusive)


@dataclass(frozen=True)
class _Scan:
    """A reduction, the same of two elements, its neutral element, and the direction.

    Long rows are scanned in parts: within each, over what each comes to in all, and both are joined. So it is done in
    scans of several blocks on GPUs, too (Sengupta et al., Scan Primitives for GPU Computing).
    """

    name: str
    reduced: Any
    joined: Callable[[Expr, Expr], Expr]
    neutral: int
    reverse: bool

    def of(self, data: Tensor, place: int, exclusive: bool) -> Tensor:
        """The scan along the axis at a place."""
        if data.shape[place] <= WHOLE:
            return self._whole(data, place, exclusive)
        within = self._within(data, place)
        before = self.of(self._totals(within, place), place, True)

        def element(*i: Expr) -> Any:
            part, at = i[place] // PART, i[place] % PART
            if exclusive:
                near, there = (at + 1, at < PART - 1) if self.reverse else (at - 1, at > 0)
                own = te.select(there, within[_put(i, place, part, near)], te.const(self.neutral, data.dtype))
            else:
                own = within[_put(i, place, part, at)]
            return self.joined(own, before[_put(i, place, part)])

        result: Tensor = compute(data.shape, element, f"T_{self.name}")
        return result

    def _whole(self, data: Tensor, place: int, exclusive: bool) -> Tensor:
        k = reduce_axis((0, data.shape[place]), "k")

        def element(*i: Expr) -> Any:
            below, above = (i[place], k) if self.reverse else (k, i[place])
            taken = below < above if exclusive else below <= above
            return self.reduced(self._where(data, _put(i, place, k), taken), axis=k)

        result: Tensor = compute(data.shape, element, f"T_{self.name}")
        return result

    def _within(self, data: Tensor, place: int) -> Tensor:
        """Each part's own scan, as `(.., parts, PART, ..)`; beyond the end of a row is the neutral element."""
        row = data.shape[place]
        k = reduce_axis((0, PART), "k")

        def element(*i: Expr) -> Any:
            part, at = i[place], i[place + 1]
            element = part * PART + k
            taken = [at <= k if self.reverse else k <= at, *([element < row] if row % PART else [])]
            return self.reduced(self._where(data, (*i[:place], element, *i[place + 2 :]), te.all(*taken)), axis=k)

        result: Tensor = compute(_put(data.shape, place, -(-row // PART), PART), element, f"{self.name}_within")
        return result

    def _totals(self, within: Tensor, place: int) -> Tensor:
        """All of each part: what its scan ends with."""
        end = 0 if self.reverse else PART - 1
        shape = (*within.shape[: place + 1], *within.shape[place + 2 :])
        result: Tensor = compute(shape, lambda *i: within[_put(i, place, i[place], end)], f"{self.name}_totals")
        return result

    def _where(self, data: Tensor, at: tuple[Any, ...], taken: Any) -> Any:
        return te.select(taken, data[at], te.const(self.neutral, data.dtype))


def _put(i: Sequence[Any], place: int, *instead: Any) -> tuple[Any, ...]:
    """The indices with others in the place of one."""
    return (*i[:place], *instead, *i[place + 1 :])
