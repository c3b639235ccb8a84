"""A tuner guided by gradient-boosted trees that learn from every trial."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cost_model import Floats, relative_speed
from ..records.file import Record
from ..strategies.chains import AnnealingSettings, Chains
from ..strategies.diversity import pick_diverse
from ..template.history import SKETCH_PREFIX
from ..template.knobs.knob import ConfigError
from ..template.space import KnobSpace, Rows
from ..template.task import TemplateTask
from .local_measuring import check_count
from .rank_trees import RankTrees
from .speed_trees import SpeedTrees
from .tuner import Tuner, Where, load_records

LOSSES = ("reg", "rank", "rank-binary")

_SMALL = 4096
"""Spaces up to this size are looked at whole."""

_EXPLORE = 0.5
_HINTS = 16
_AT_RANDOM = 24
"""Trials before the first fit, unless other tasks have shown the way."""
_ONE_IN = 16
"""One config in so many is drawn at random, however little the model thinks of it."""
_FORGOTTEN = 0.05
_HALF_LIFE = 64.0
"""Trials in which what was learned from other tasks loses half of its weight, and the share below which it is dropped
(constants of the classic autotuner)."""

Trees = RankTrees | SpeedTrees


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
        loss_type: str = "rank",
        diversity_filter_ratio: float | None = 2.0,
        seed: int = 0,
        annealing: AnnealingSettings | None = None,
    ) -> None:
        super().__init__(task, seed)
        if loss_type not in LOSSES:
            raise ValueError(f"loss_type must be one of {', '.join(LOSSES)}, got '{loss_type}'")
        check_count("plan_size", plan_size)
        task.features(np.zeros((0, task.config_space.n_decisions), dtype=np.int64), feature_type)
        self.batch_size = plan_size
        self.plan_size = plan_size
        self.feature_type = feature_type
        self.loss_type = loss_type
        self.diversity_filter_ratio = diversity_filter_ratio
        self._settings = annealing or AnnealingSettings()
        self._annealing = Chains(self.space, self._settings)
        self._rows: list[tuple[int, ...]] = []
        self._times_s: list[float] = []
        self._features: list[Floats] = []
        self._knob_width = self.space.features(np.zeros((1, self.space.n_decisions), dtype=np.int64)).shape[1]
        self._history: list[tuple[Floats, Floats]] = []
        self._models: list[Trees] = []
        self._scale = 1.0
        self._hints: Rows = np.zeros((0, self.space.n_decisions), dtype=np.int64)
        """What was fast for other tasks, as near as this space has it: where annealing may begin."""

    # -- learning -----------------------------------------------------------------------------------------------------

    def update(self, rows: Rows, times_s: npt.NDArray[np.float64]) -> None:
        self._rows += [tuple(row) for row in rows.tolist()]
        self._times_s += times_s.tolist()
        self._features.append(self.task.features(rows, self.feature_type))
        self._models = []

    def load_history(self, records: Where) -> int:
        """Learn from records of the same template with other arguments or on other targets of the same kind.

        What was loaded before stays.
        """
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
        self._history += [(features[i], scores[i]) for i in fitting]
        self._models = []
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
        fastest = np.argsort(times_s)[:_HINTS]
        self._hints = np.concatenate([self._hints, _nearest(other.config_space, rows[fastest], self.space)])
        return other.features(rows, self.feature_type), relative_speed(times_s)

    def draw_rows(self, count: int) -> Rows:
        """Some legal rows."""
        return self.space.rows(self.draw(count))

    def _new_model(self, last: int | None = None) -> Trees:
        """Trees for the loss; of the `last` features only, if given."""
        seed = self.seed + len(self._times_s)
        if self.loss_type == "reg":
            return SpeedTrees(seed, last)
        return RankTrees(seed, binary=self.loss_type == "rank-binary", last=last)

    def _fit(self) -> None:
        """Fit to the trials and to the history, which counts less the more trials there are."""
        share = float(2.0 ** (-len(self._times_s) / _HALF_LIFE))
        groups = self._history if share >= _FORGOTTEN else []
        parts = [None] if self.feature_type == "knob" else [None, self._knob_width]
        self._models = [self._new_model(part) for part in parts]
        self._scale = 1.0
        features = [f for f, _ in groups] + self._features
        if not features:
            return
        mine = relative_speed(np.array(self._times_s))
        scores = np.concatenate([*(s for _, s in groups), mine])
        sizes = [len(s) for _, s in groups]
        tasks = np.repeat(np.arange(len(sizes) + 1), [*sizes, len(mine)])
        weights = np.repeat([share, 1.0], [sum(sizes), len(mine)])
        everything = np.concatenate(features)
        for model, part in zip(self._models, parts, strict=True):
            told = slice(None) if part is None else slice(sum(sizes), None)  # sizes of tiles mean less to other tasks
            model.fit(everything[told], scores[told], tasks[told], weights[told])
        self._scale = float(self._expect(everything)[0].std()) or 1.0

    @property
    def _ready(self) -> bool:
        """Whether anything is known to be guided by."""
        enough = len(self._times_s) >= _AT_RANDOM or bool(self._history)
        return enough and any(model.ready for model in self._models)

    def _expect(self, features: Floats) -> tuple[Floats, Floats]:
        """What the models expect of features `(n, f)`, and how unsure they are, each `(n,)`."""
        found = [m.predict(features) for m in self._models if m.ready]
        if not found:
            return np.zeros(len(features)), np.zeros(len(features))
        mean, spread = (np.mean([pair[i] for pair in found], axis=0) for i in range(2))
        return mean / self._scale, spread / self._scale

    # -- proposing ----------------------------------------------------------------------------------------------------

    def propose(self, count: int) -> list[int]:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

        with threadpool_limits(1):  # on so few samples more threads only cost time
            return self._propose(count)

    def _propose(self, count: int) -> list[int]:
        if not self._models:
            self._fit()
        if not self._ready:
            return self.draw(count)
        at_random = max(int(count >= _ONE_IN), round(count / _ONE_IN))
        planned = self._plan(count - at_random)
        return planned + self.draw(count - len(planned), planned)

    @cached_property
    def _everything(self) -> tuple[Rows, Floats]:
        """All legal rows of a small space, and their features."""
        rows = self.space.rows(np.arange(self.space.size))
        rows = rows[self.task.legal(rows)]
        return rows, self.task.features(rows, self.feature_type)

    def _plan(self, count: int) -> list[int]:
        ratio = max(1.0, self.diversity_filter_ratio or 1.0)

        def score(rows: Rows) -> Floats:
            legal, features = self.task.survey(rows, self.feature_type)
            found = np.full(len(rows), -np.inf)
            mean, spread = self._expect(features)
            found[legal] = mean + _EXPLORE * spread
            return found

        keep = int(ratio * count) + len(self.visited)
        if self.space.size <= _SMALL:
            rows, features = self._everything
            mean, spread = self._expect(features)
            scores = mean + _EXPLORE * spread
            order = np.argsort(-scores, kind="stable")[: min(keep, int(np.isfinite(scores).sum()))]
            rows, scores = rows[order], scores[order]
        else:
            most = self._settings.chains // 2
            order = np.argsort(self._times_s)[: most - min(len(self._hints), most // 4)]
            starts = np.array([self._rows[i] for i in order], dtype=np.int64).reshape(
                len(order), self.space.n_decisions
            )
            rows, scores = self._annealing.search(self.rng, score, np.concatenate([starts, self._hints])[:most], keep)
        unseen = np.array([i not in self.visited for i in self.space.indices(rows).tolist()], dtype=bool)
        rows, scores = rows[unseen][: int(ratio * count)], scores[unseen][: int(ratio * count)]
        if self.diversity_filter_ratio is not None and len(rows):
            at = pick_diverse(rows, scores, count)
            rows = rows[at]
        return [int(i) for i in self.space.indices(rows[:count])]


def _nearest(source: KnobSpace, rows: Rows, space: KnobSpace) -> Rows:
    """Rows of `source` as rows of another space with the same knobs: for each knob the choice that is most alike."""
    found = np.zeros((len(rows), space.n_decisions), dtype=np.int64)
    for i, name in enumerate(space.names):
        if name not in source.knobs:
            continue
        theirs, mine = source.knobs[name].features, space.knobs[name].features
        if theirs.shape[1] == mine.shape[1]:
            wanted = theirs[rows[:, source.names.index(name)]]
            found[:, i] = np.abs(wanted[:, None, :] - mine[None, :, :]).sum(axis=2).argmin(axis=1)
    return found


def _arguments(args: Any) -> Any:
    """Arguments as a template takes them: lists, which JSON makes of tuples, as tuples."""
    return tuple(_arguments(a) for a in args) if isinstance(args, list) else args
