"""A tuner guided by gradient-boosted trees that learn from every trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cost_model import BoostedTrees, CostModel, Floats, relative_speed
from ..records import Record
from ..template.knobs.knob import ConfigError
from ..template.space import Rows
from ..template.task import TemplateTask
from .annealing import Annealing, AnnealingSettings
from .diversity import pick_diverse
from .rank_trees import RankTrees
from .tuner import SKETCH_PREFIX, Tuner, Where, load_records

LOSSES = ("reg", "rank", "rank-binary")

_RANDOM_SHARE = 0.05
_FORGOTTEN = 0.05
_HALF_LIFE = 64.0
"""Trials after which what was learned from other tasks counts e times less, and the share below which it is dropped
(the constants of the classic autotuner)."""


class GradientBoostingTuner(Tuner):
    """Fits trees to the trials, looks for configs that they like by simulated annealing, and measures those.

    `plan_size` configs are planned between two fits. `feature_type`: `knob`, `itervar` or `curve`; `loss_type`: `reg`
    learns speeds, `rank` and `rank-binary` which of two configs is faster. With `diversity_filter_ratio` r, the plan is
    picked from r times as many configs, so that they differ. `load_history` begins with what other tasks of the same
    template have shown.
    """

    def __init__(
        self,
        task: TemplateTask,
        plan_size: int = 16,
        feature_type: str = "itervar",
        loss_type: str = "reg",
        diversity_filter_ratio: float | None = 2.0,
        seed: int = 0,
        annealing: AnnealingSettings | None = None,
    ) -> None:
        super().__init__(task, seed)
        if loss_type not in LOSSES:
            raise ValueError(f"loss_type must be one of {', '.join(LOSSES)}, got '{loss_type}'")
        if plan_size < 1:
            raise ValueError(f"plan_size must be at least 1, got {plan_size}")
        task.features(np.zeros((0, task.config_space.n_decisions), dtype=np.int64), feature_type)
        self.batch_size = plan_size
        self.plan_size = plan_size
        self.feature_type = feature_type
        self.loss_type = loss_type
        self.diversity_filter_ratio = diversity_filter_ratio
        self._annealing = Annealing(self.space, self.rng, annealing)
        self._rows: list[tuple[int, ...]] = []
        self._times_s: list[float] = []
        self._features: list[Floats] = []
        self._base: CostModel | None = None
        self._model: CostModel | None = None
        self._base_share = 0.0

    # -- learning -----------------------------------------------------------------------------------------------------

    def update(self, rows: Rows, times_s: npt.NDArray[np.float64]) -> None:
        self._rows += [tuple(row) for row in rows.tolist()]
        self._times_s += times_s.tolist()
        self._features.append(self.task.features(rows, self.feature_type))
        self._model = None

    def load_history(self, records: Where) -> int:
        """Learn from records of the same template with other arguments or on other targets of the same kind."""
        groups: dict[tuple[str, str], list[Record]] = {}
        for record in load_records(records):
            mine = record.workload_hash == self.task.compute_dag.hash and record.target == str(self.task.target)
            if record.sketch == SKETCH_PREFIX + self.task.name and not mine:
                groups.setdefault((record.workload_hash, record.target), []).append(record)
        features: list[Floats] = []
        scores: list[Floats] = []
        for group in groups.values():
            found = self._history_of(group)
            if found is not None:
                features.append(found[0])
                scores.append(found[1])
        width = self.task.features(self.draw_rows(1), self.feature_type).shape[1] if features else 0
        fitting = [i for i, f in enumerate(features) if f.shape[1] == width]
        if not fitting:
            return 0
        self._base = self._new_model(0)
        self._base.fit(np.concatenate([features[i] for i in fitting]), np.concatenate([scores[i] for i in fitting]))
        if not self._base.ready:
            self._base = None
        return sum(len(scores[i]) for i in fitting)

    def _history_of(self, records: Sequence[Record]) -> tuple[Floats, Floats] | None:
        """Features and scores of the records of one other task; None where the template no longer fits them."""
        first = records[0]
        if first.target.partition(" ")[0] != self.task.target.kind:
            return None
        try:
            other = TemplateTask(self.task.template, _arguments(first.template["args"]), first.target)
        except (ConfigError, KeyError, TypeError, ValueError):
            return None
        space = other.config_space
        fitting = [r for r in records if len(r.decisions) == space.n_decisions]
        rows = np.array([r.decisions for r in fitting], dtype=np.int64).reshape(len(fitting), -1)
        if not len(rows) or (rows >= space.sizes).any() or other.compute_dag.hash != first.workload_hash:
            return None
        times_s = np.array([r.time_s for r in fitting])
        return other.features(rows, self.feature_type), relative_speed(times_s)

    def draw_rows(self, count: int) -> Rows:
        """Some legal rows."""
        return self.space.rows(self.draw(count))

    def _new_model(self, salt: int) -> CostModel:
        seed = self.seed + 1000 * salt
        if self.loss_type == "reg":
            return BoostedTrees(seed, members=2)
        return RankTrees(seed, binary=self.loss_type == "rank-binary")

    def _fit(self) -> None:
        """Fit what the trials add to the base, which counts less the more trials there are."""
        share = float(np.exp(-len(self._times_s) / _HALF_LIFE)) if self._base is not None else 0.0
        self._base_share = share if share >= _FORGOTTEN else 0.0
        self._model = self._new_model(1 + len(self._times_s))
        if self._times_s:
            self._model.fit(np.concatenate(self._features), relative_speed(np.array(self._times_s)))

    def _expect(self, rows: Rows) -> tuple[Floats, Floats]:
        """What the models expect of rows `(n,)`, and how unsure they are."""
        features = self.task.features(rows, self.feature_type)
        assert self._model is not None
        mean, spread = self._model.predict(features)
        if not self._base_share or self._base is None:
            return mean, spread
        before, before_spread = self._base.predict(features)
        if not self._model.ready:
            return before, before_spread
        share = self._base_share
        return (1 - share) * mean + share * before, (1 - share) * spread + share * before_spread

    # -- proposing ----------------------------------------------------------------------------------------------------

    def propose(self, count: int) -> list[int]:
        if self._model is None:
            self._fit()
        assert self._model is not None
        if not self._model.ready and not (self._base is not None and self._base.ready and self._base_share):
            return self.draw(count)
        at_random = round(_RANDOM_SHARE * count)
        planned = self._plan(count - at_random)
        return planned + self.draw(count - len(planned), planned)

    def _plan(self, count: int) -> list[int]:
        ratio = max(1.0, self.diversity_filter_ratio or 1.0)

        def score(rows: Rows) -> Floats:
            found = np.full(len(rows), -np.inf)
            legal = np.flatnonzero(self.task.legal(rows))
            if len(legal):
                mean, spread = self._expect(rows[legal])
                found[legal] = mean + _EXPLORE * spread
            return found

        order = np.argsort(self._times_s)[: max(1, self._annealing.starts)]
        starts = np.array([self._rows[i] for i in order], dtype=np.int64).reshape(len(order), -1)
        rows, scores = self._annealing.search(score, starts, keep=int(ratio * count) + len(self.visited))
        unseen = np.array([i not in self.visited for i in self.space.indices(rows).tolist()], dtype=bool)
        rows, scores = rows[unseen][: int(ratio * count)], scores[unseen][: int(ratio * count)]
        if self.diversity_filter_ratio is not None and len(rows):
            at = pick_diverse(rows, scores, count)
            rows = rows[at]
        return [int(i) for i in self.space.indices(rows[:count])]


_EXPLORE = 0.5


def _arguments(args: Any) -> Any:
    """Arguments as a template takes them: lists, which JSON makes of tuples, as tuples."""
    return tuple(_arguments(a) for a in args) if isinstance(args, list) else args
