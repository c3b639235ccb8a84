"""Proposals by simulated annealing: what a cost model likes, chosen so that a batch is not all alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..cost_model import CostModel, Floats
from ..sketch.space import GuardedSpace, Rows, Space
from .annealing_chains import AnnealingSettings, Chains, best_of
from .diversity import pick_diverse
from .order import rows_at, size_of
from .strategy import Note, Proposal, Strategy, padded

_SMALL = 4096
"""Spaces up to this size are looked at whole. A choice: a tenth of a second at 50,000 candidates a second."""
_EXPLORE = 0.5
"""Share of its spread that a candidate is credited with. A choice."""
_ONE_IN = 16
"""One candidate in so many is drawn at random, however little the model thinks of it. A choice: one of a batch."""


class Annealing(Strategy):
    """Looks for candidates that the cost model likes by simulated annealing in each space, from the fastest measured.

    With `diversity` r, a batch is picked from the best r times as many, so that its rows differ; None: just the best.
    Until the model is ready, candidates are drawn at random.
    """

    def __init__(
        self,
        spaces: Sequence[Space],
        seed: int = 0,
        note: Note = lambda text: None,
        *,
        settings: AnnealingSettings | None = None,
        diversity: float | None = 2.0,
    ) -> None:
        super().__init__(spaces, seed, note)
        self._settings, self._diversity = settings or AnnealingSettings(), diversity
        self._hints: dict[int, Rows] = {}
        self._chains: dict[int, Chains] = {}
        self._surveyed: dict[int, tuple[Rows, Floats]] = {}

    def hint(self, space: int, rows: Rows) -> None:
        """Let chains in a space begin at these rows too."""
        self._hints[space] = np.concatenate([self._hints_of(space), rows])

    def _hints_of(self, space: int) -> Rows:
        return self._hints.get(space, np.zeros((0, self.spaces[space].n_decisions), dtype=np.int64))

    def _propose(self, model: CostModel, count: int) -> list[Proposal]:
        proposals: list[Proposal] = []
        if model.ready and self.spaces:
            at_random = max(int(count >= _ONE_IN), round(count / _ONE_IN))
            self._plan(proposals, model, count - at_random)
        return self._fill(proposals, count)

    def _plan(self, proposals: list[Proposal], model: CostModel, count: int) -> None:
        """Take what the model likes of all spaces."""
        rng = np.random.default_rng([self._seed, len(self._seen)])
        score = _Score(model, self.training_set()[0])
        wanted = int(max(1.0, self._diversity or 1.0) * count)
        pool: list[tuple[float, int, tuple[int, ...]]] = []
        for space, share in zip(self.spaces, self._shares(), strict=True):
            if not space.left_out:
                rows, scores = self._search(rng, space, score, wanted + len(self._measured), float(share))
                found = zip(scores.tolist(), map(tuple, rows.tolist()), strict=True)
                unseen = [(value, space.number, row) for value, row in found if (space.number, row) not in self._seen]
                pool += unseen[:wanted]
        pool = sorted(pool, key=lambda one: -one[0])[:wanted]
        for n in self._picked(pool, count):
            if len(proposals) < count:
                self._take(proposals, *pool[n][1:])

    def _picked(self, pool: Sequence[tuple[float, int, tuple[int, ...]]], count: int) -> Sequence[int]:
        """Order the scored rows of spaces as they are proposed."""
        if self._diversity is None or not pool:
            return range(len(pool))
        spaces, rows = padded([(space, row) for _, space, row in pool])
        apart = rows + (spaces << 40)[:, None]  # the same decision of two sketches is not the same choice
        chosen: list[int] = pick_diverse(apart, np.array([value for value, _, _ in pool]), count).tolist()
        return chosen

    def _search(
        self, rng: np.random.Generator, space: GuardedSpace, score: _Score, keep: int, share: float
    ) -> tuple[Rows, Floats]:
        """Up to `keep` rows of a space with their scores, best first."""
        if space.is_listed and size_of(space.sizes) <= _SMALL:
            rows, features = self._whole(space)
            return best_of(rows, score.of(features), keep)
        most = self._settings.chains // 2
        hints = self._hints_of(space.number)
        fastest = self._fastest(space.number, most - min(len(hints), most // 4))
        chains = self._chains.setdefault(space.number, Chains(space, self._settings))
        share = share if len(self.spaces) > 1 else 1.0

        def scored(rows: Rows) -> Floats:
            legal, features = space.survey(rows)
            found = np.full(len(rows), -np.inf)
            found[legal] = score.of(features)
            return found

        return chains.search(rng, scored, np.concatenate([fastest, hints]), keep, share)

    def _whole(self, space: GuardedSpace) -> tuple[Rows, Floats]:
        """The legal rows of a small space, and their features."""
        if space.number not in self._surveyed:
            rows = rows_at(np.arange(size_of(space.sizes), dtype=np.int64), space.sizes)
            legal, features = space.survey(rows)
            self._surveyed[space.number] = rows[legal], features
        return self._surveyed[space.number]


class _Score:
    """Acquisition score: the predicted mean plus a part of the spread, scaled by the spread of known samples."""

    def __init__(self, model: CostModel, known: Floats) -> None:
        self._model = model
        self._scale = (float(model.predict(known)[0].std()) if len(known) else 0.0) or 1.0

    def of(self, features: Floats) -> Floats:
        """The scores `(n,)` of features `(n, f)`."""
        if not len(features):
            return np.zeros(0)
        mean, spread = self._model.predict(features)
        return (mean + _EXPLORE * spread) / self._scale
