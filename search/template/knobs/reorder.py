"""A knob that orders loops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....dialects.cached_property import cached_property
from ....schedule import Schedule
from ....te.tensor import Tensor
from .knob import ConfigError, Knob

POLICIES = ("identity", "all", "interval", "interval_all", "candidate", "interleave")
_MOST = 100_000
"""Orders of a knob: those of 8 loops are 40,320, and of 9 more than a search looks at."""

Order = tuple[int, ...]


@dataclass(frozen=True)
class ReorderEntity:
    """One order: the positions of the given loops, outermost first."""

    perm: Order

    def apply(self, sch: Schedule, block: str | Tensor, axes: Sequence[Any]) -> list[Any]:
        """Reorder `axes` of `block`; returns them in their new order."""
        if len(axes) != len(self.perm):
            raise ConfigError(f"this order is one of {len(self.perm)} loops, got {len(axes)}")
        ordered = [axes[i] for i in self.perm]
        if self.perm != tuple(range(len(axes))):
            sch.reorder(block, *ordered)
        return ordered

    def __str__(self) -> str:
        return str(list(self.perm))


class ReorderKnob(Knob[ReorderEntity]):
    """Orders of loops.

    `identity`: as given. `all`: every order. `interval` (also `interval_all`): every order of `axes[begin:end]`, the
    others stay. `candidate`: the listed ones. `interleave`: `spatial` and `reduce` are lists of chains of loops; the
    outer parts of the spatial chains are merged in every way that keeps each chain's order, then, inside, the
    innermost loops of the spatial chains with the reduce chains.
    """

    def __init__(
        self,
        name: str,
        axes: Sequence[Any],
        policy: str = "all",
        candidate: Sequence[Sequence[Any]] | None = None,
        interval: tuple[int, int] | None = None,
        spatial: Sequence[Sequence[Any]] | None = None,
        reduce: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        if policy not in POLICIES:
            raise ConfigError(f"reorder '{name}': policy must be one of {', '.join(POLICIES)}, got '{policy}'")
        self.name = name
        self.policy = policy
        self.n_axes = len(axes)
        self._axes = list(axes)
        needed = {"candidate": candidate, "interval": interval, "interval_all": interval, "interleave": spatial}
        if policy in needed and needed[policy] is None:
            option = {"candidate": "candidate", "interleave": "spatial"}.get(policy, "interval")
            raise ConfigError(f"reorder '{name}': policy '{policy}' needs the option '{option}'")
        orders = self._orders(candidate, interval, spatial, reduce)
        self._perms = list(dict.fromkeys(itertools.islice(orders, _MOST + 1)))
        if not self._perms or len(self._perms) > _MOST:
            raise ConfigError(f"reorder '{name}' of {len(axes)} loops: between 1 and {_MOST} orders, narrow the policy")

    def _orders(
        self,
        candidate: Sequence[Sequence[Any]] | None,
        interval: tuple[int, int] | None,
        spatial: Sequence[Sequence[Any]] | None,
        reduce: Sequence[Sequence[Any]] | None,
    ) -> Iterator[Order]:
        everything = tuple(range(self.n_axes))
        if candidate is not None:
            return (self._indices(order, whole=True) for order in candidate)
        if interval is not None:
            begin, end = self._interval(interval)
            inner = itertools.permutations(everything[begin:end])
            return ((*everything[:begin], *order, *everything[end:]) for order in inner)
        if spatial is not None:
            chains = [self._indices(chain) for chain in spatial]
            inside = [chain[-1:] for chain in chains] + [self._indices(chain) for chain in reduce or ()]
            outer = list(_merges([chain[:-1] for chain in chains]))
            return (o + i for o in outer for i in _merges(inside))
        return itertools.permutations(everything) if self.policy == "all" else iter([everything])

    def _interval(self, interval: Sequence[int]) -> tuple[int, int]:
        given = [i for i in interval if isinstance(i, int)]
        if len(interval) != 2 or len(given) != 2 or not 0 <= given[0] < given[1] <= self.n_axes:
            rule = f"0 <= begin < end <= {self.n_axes}"
            raise ConfigError(f"reorder '{self.name}': interval must be (begin, end) with {rule}, got {interval}")
        return given[0], given[1]

    def _indices(self, chain: Sequence[Any], whole: bool = False) -> Order:
        """The positions in `axes` of loops given as they are, or as positions already."""
        if all(isinstance(a, int) for a in chain) and not all(isinstance(a, int) for a in self._axes):
            found = list(chain)
        else:
            found = [next((i for i, known in enumerate(self._axes) if known is a or known == a), -1) for a in chain]
        if -1 in found or (whole and sorted(found) != list(range(self.n_axes))):
            raise ConfigError(f"reorder '{self.name}': every order must hold the given loops once, got {list(chain)}")
        return tuple(found)

    def __len__(self) -> int:
        return len(self._perms)

    def entity(self, position: int) -> ReorderEntity:
        return ReorderEntity(self._perms[position])

    def value(self, position: int) -> list[int]:
        return list(self._perms[position])

    def describe(self) -> str:
        return f"Reorder(policy={self.policy}, num_axes={self.n_axes})"

    @cached_property
    def features(self) -> npt.NDArray[np.float32]:
        """The place of each given loop in the order."""
        return np.argsort(np.array(self._perms, dtype=np.int64), axis=1).astype(np.float32)


def _merges(chains: Sequence[Order]) -> Iterator[Order]:
    """Return all sequences of the chains' members in which each chain keeps its order."""
    chains = [chain for chain in chains if chain]
    if not chains:
        yield ()
    for i, chain in enumerate(chains):
        for rest in _merges([*chains[:i], chain[1:], *chains[i + 1 :]]):
            yield (chain[0], *rest)
