"""Simulated annealing over the rows of a space, many chains at once, guided by what a model expects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..cost_model import Floats
from ..sketch.distinct import first_places
from ..sketch.space import Rows

Score = Callable[[Rows], Floats]
"""From rows to what is expected of them, more for better; -infinity for rows that cannot be."""


@dataclass(frozen=True)
class AnnealingSettings:
    """Number of chains and of moves, and the temperature of the first move; it falls linearly to 0.

    It ends early after `patience` moves that brought nothing new into the best `keep`.
    """

    chains: int = 192
    moves: int = 32
    temperature: float = 0.25
    patience: int = 10


class Walkable(Protocol):
    """A space that chains walk in: rows are drawn, and changed a little."""

    @property
    def n_decisions(self) -> int: ...

    def sample(self, rng: np.random.Generator, n: int) -> Rows: ...

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows: ...


class Chains:
    """Chains that go on, in the next search, from where they ended."""

    def __init__(self, space: Walkable, settings: AnnealingSettings) -> None:
        self._space = space
        self._settings = settings
        self._points: Rows = np.zeros((0, space.n_decisions), dtype=np.int64)

    def search(
        self, rng: np.random.Generator, score: Score, starts: Rows, keep: int, share: float = 1.0
    ) -> tuple[Rows, Floats]:
        """The distinct rows with the best scores that were met, best first, at most `keep` of those above -infinity.

        `starts` are where half of the chains begin, at most; `share` is the part of all chains that are used.
        """
        settings = self._settings
        rows = self._begin(rng, starts, max(4, round(share * settings.chains)))
        scores = score(rows)
        met_rows, met_scores = [rows], [scores]
        floor = -np.inf
        stale = 0
        for move in range(settings.moves if len(rows) else 0):
            heat = settings.temperature * (1.0 - move / settings.moves)
            moved = self._space.mutate(rng, rows)
            moved_scores = score(moved)
            met_rows.append(moved)
            met_scores.append(moved_scores)
            with np.errstate(invalid="ignore", over="ignore"):
                gain = np.where(np.isfinite(scores), moved_scores - scores, np.inf)
                chance = np.exp(np.minimum(0.0, gain / (heat + 1e-5)))
            accepted = np.isfinite(moved_scores) & (rng.random(len(rows)) < chance)
            rows = np.where(accepted[:, None], moved, rows)
            scores = np.where(accepted, moved_scores, scores)
            stale = 0 if (moved_scores > floor).any() else stale + 1
            if stale >= settings.patience:
                break
            if move % 8 == 7:
                floor = _floor(np.concatenate(met_scores), keep)
        self._points = rows[np.isfinite(scores)]
        return best_of(np.concatenate(met_rows), np.concatenate(met_scores), keep)

    def _begin(self, rng: np.random.Generator, starts: Rows, count: int) -> Rows:
        """The points of all chains: half from `starts`, a quarter where they ended, the rest anywhere."""
        chosen = starts[: count // 2]
        before = self._points[rng.permutation(len(self._points))[: count // 4]]
        fresh = self._space.sample(rng, count - len(chosen) - len(before))
        return np.concatenate([chosen, before, fresh])


def _floor(scores: Floats, keep: int) -> float:
    """The score that one has to beat to be among the best `keep`."""
    return -np.inf if len(scores) <= keep else float(np.partition(scores, -keep)[-keep])


def best_of(rows: Rows, scores: Floats, keep: int) -> tuple[Rows, Floats]:
    """The distinct rows with the best scores above -infinity, best first, at most `keep`, and their scores."""
    right = np.isfinite(scores)
    rows, scores = rows[right], scores[right]
    if not len(rows):
        return rows, scores
    first = first_places(rows)
    rows, scores = rows[first], scores[first]
    order = np.argsort(-scores, kind="stable")[:keep]
    return rows[order], scores[order]
