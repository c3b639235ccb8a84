"""Simulated annealing over a config space, many chains at once, guided by what a model expects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..template.space import KnobSpace, Rows

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class AnnealingSettings:
    """Number of chains and of moves, and the temperature of the first move; it falls linearly to 0.

    It ends early after `patience` moves that brought nothing new into the best `keep`.
    """

    chains: int = 192
    moves: int = 32
    temperature: float = 0.25
    patience: int = 10


class Annealing:
    """Chains that go on, in the next search, from where they ended."""

    def __init__(self, space: KnobSpace, rng: np.random.Generator, settings: AnnealingSettings | None = None) -> None:
        self._space = space
        self._rng = rng
        self._settings = settings or AnnealingSettings()
        self._points: Rows = np.zeros((0, space.n_decisions), dtype=np.int64)

    @property
    def starts(self) -> int:
        """How many chains may begin at given rows."""
        return self._settings.chains // 2

    def search(self, score: Callable[[Rows], Floats], starts: Rows, keep: int) -> tuple[Rows, Floats]:
        """The distinct rows with the best scores that were met, best first, at most `keep` of those above -infinity.

        `score` gives -infinity to rows that cannot be. `starts` are where some chains begin.
        """
        settings, rng = self._settings, self._rng
        rows = self._begin(starts)
        scores = score(rows)
        met_rows, met_scores = [rows], [scores]
        floor = -np.inf
        stale = 0
        for move in range(settings.moves):
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
        return _best(self._space, np.concatenate(met_rows), np.concatenate(met_scores), keep)

    def _begin(self, starts: Rows) -> Rows:
        """The points of all chains: half from `starts`, a quarter where they ended, the rest anywhere."""
        count = self._settings.chains
        chosen = starts[: self.starts]
        before = self._points[self._rng.permutation(len(self._points))[: count // 4]]
        fresh = self._space.sample(self._rng, count - len(chosen) - len(before))
        return np.concatenate([chosen, before, fresh])


def _floor(scores: Floats, keep: int) -> float:
    """The score that one has to beat to be among the best `keep`."""
    return -np.inf if len(scores) <= keep else float(np.partition(scores, -keep)[-keep])


def _best(space: KnobSpace, rows: Rows, scores: Floats, keep: int) -> tuple[Rows, Floats]:
    right = np.isfinite(scores)
    rows, scores = rows[right], scores[right]
    _, first = np.unique(space.indices(rows), return_index=True)
    rows, scores = rows[first], scores[first]
    order = np.argsort(-scores, kind="stable")[:keep]
    return rows[order], scores[order]
