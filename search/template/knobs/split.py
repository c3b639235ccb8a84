"""A knob that splits a loop: how large each part is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ....dialects.cached_property import cached_property
from ....schedule import Schedule
from ....te.tensor import Tensor
from ..symbolic import KnobExpr, Tracer
from .knob import ConfigError, Knob

POLICIES = ("factors", "power2", "verbose", "candidate")


@dataclass(frozen=True)
class SplitEntity:
    """One way to split: the extents of the parts, outermost first. The first one is what the others leave."""

    size: Sequence[int]

    def apply(self, sch: Schedule, block: str | Tensor, axis: Any) -> list[Any]:
        """Split `axis` of `block`; returns the new loops, outermost first. A split in one is the loop itself."""
        if len(self.size) == 1:
            return [axis]
        parts: list[Any] = sch.split(block, axis, [None, *self.size[1:]])
        for part, extent in zip(parts, self.size, strict=True):
            part.extent = extent
        return parts

    def __str__(self) -> str:
        return str([int(n) for n in self.size])


class SplitKnob(Knob[SplitEntity]):
    """Return all splits of an extent into `num_outputs` parts.

    Inner parts are drawn from the divisors (`factors`), from the powers of two up to the extent (`power2`), or from
    both (`verbose`); `candidate` lists the splits. `no_tail` keeps splits that divide the extent alone, which `factors`
    does unless told otherwise. `filter` is asked of each SplitEntity. The innermost part varies slowest.
    """

    def __init__(
        self,
        name: str,
        extent: int,
        policy: str = "factors",
        num_outputs: int = 2,
        filter: Callable[[SplitEntity], bool] | None = None,
        max_factor: int | None = None,
        no_tail: bool | None = None,
        candidate: Sequence[Sequence[int]] | None = None,
    ) -> None:
        if policy not in POLICIES:
            raise ConfigError(f"split '{name}': policy must be one of {', '.join(POLICIES)}, got '{policy}'")
        if num_outputs < 1:
            raise ConfigError(f"split '{name}': num_outputs must be at least 1, got {num_outputs}")
        if (candidate is None) == (policy == "candidate"):
            raise ConfigError(f"split '{name}': candidate goes with policy 'candidate', got policy '{policy}'")
        self.name = name
        self.extent = extent
        self.policy = policy
        self.num_outputs = num_outputs
        tails = policy != "factors" if no_tail is None else not no_tail
        self._sizes = self._listed(candidate) if candidate is not None else self._enumerated(max_factor, tails)
        if filter is not None:
            keep = [bool(filter(SplitEntity(tuple(row)))) for row in self._sizes.tolist()]
            self._sizes = self._sizes[np.array(keep, dtype=bool)]
        if not len(self._sizes):
            raise ConfigError(f"split '{name}' of extent {extent}: no split is left")

    def _listed(self, candidate: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
        rows = []
        for given in candidate:
            if len(given) != self.num_outputs:
                raise ConfigError(f"split '{self.name}': a candidate has {self.num_outputs} parts, got {list(given)}")
            inner = [int(n) for n in given[1:]]
            if any(n < 1 for n in inner):
                raise ConfigError(f"split '{self.name}': parts must be at least 1, got {list(given)}")
            rows.append([-(-self.extent // prod(inner)), *inner])
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.num_outputs)

    def _enumerated(self, max_factor: int | None, tails: bool) -> npt.NDArray[np.int64]:
        factors = [f for f in self._factors() if max_factor is None or f <= max_factor]
        rows = np.ones((1, 0), dtype=np.int64)  # inner parts, innermost first
        room = np.full(1, self.extent, dtype=np.int64)
        for _ in range(self.num_outputs - 1):
            which = np.repeat(np.arange(len(rows)), len(factors))
            factor = np.tile(np.array(factors, dtype=np.int64), len(rows))
            fits = (factor <= room[which]) if tails else (room[which] % factor == 0)
            rows = np.concatenate([rows[which[fits]], factor[fits, None]], axis=1)
            room = room[which[fits]] // factor[fits]
        inner = rows[:, ::-1]
        quotient = -(-self.extent // inner.prod(axis=1, keepdims=True))
        return np.concatenate([quotient, inner], axis=1)

    def _factors(self) -> list[int]:
        n = self.extent
        divisors = {f for d in range(1, int(n**0.5) + 1) if n % d == 0 for f in (d, n // d)}
        powers = {1 << k for k in range(n.bit_length())}
        chosen = {"factors": divisors, "power2": powers, "verbose": divisors | powers}[self.policy]
        return sorted(chosen)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The extents of the parts of each choice, `(len, num_outputs)`, outermost first."""
        return self._sizes

    def __len__(self) -> int:
        return len(self._sizes)

    def entity(self, position: int) -> SplitEntity:
        return SplitEntity(tuple(self.value(position)))

    def traced(self, position: int, tracer: Tracer) -> SplitEntity:
        named = enumerate(self.value(position))
        return SplitEntity(tuple(tracer.number(n, KnobExpr("knob", (self.name, part), n)) for part, n in named))

    def parts(self) -> list[npt.NDArray[np.int64]]:
        return list(self._sizes.T)

    def value(self, position: int) -> list[int]:
        return [int(n) for n in self._sizes[position]]

    def position_of(self, value: Any) -> int:
        given = [int(n) for n in value]
        if len(given) == self.num_outputs:
            inner = np.array(given[1:], dtype=np.int64)
            found = np.flatnonzero((self._sizes[:, 1:] == inner).all(axis=1))
            if len(found) and given[0] in (-1, int(self._sizes[found[0], 0])):
                return int(found[0])
        raise ConfigError(f"knob '{self.name}' has no choice {value!r}: {self.describe()}")

    def describe(self) -> str:
        return f"Split(policy={self.policy}, product={self.extent}, num_outputs={self.num_outputs})"

    @cached_property
    def features(self) -> npt.NDArray[np.float32]:
        """The logarithm to the base of two of each part."""
        return np.log2(self._sizes).astype(np.float32)
