"""A tuner guided by gradient-boosted trees that learn from every trial.

Its trees are not those of sketches. With rankers of `cost_model/` instead, on the features of sketches and the knobs,
chains of 16 moves to the better of 2 neighbours take as many trials or more to the best of 500 random configs, means of
20 seeds on a simulated landscape: 78.0 on conv2d_no_batching (CUDA), 71.3 with its own; 87.1 and 83.5 on batch_matmul
(OpenCL); 64.8 and 64.9 on conv2d_nchw (LLVM). The standard error of a difference is 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np

from ...dialects.cached_property import cached_property
from ...dialects.classic_words import knows_classic_words
from ...dialects.counts import require_count
from ..cost_model import CostModel, Floats, Tasks, relative_speed
from ..cost_model.threads import at_most
from ..records.file import Record
from ..records.index import SKETCH_PREFIX
from ..strategies.annealing import Annealing
from ..strategies.annealing_chains import AnnealingSettings
from ..strategies.order import in_random_order
from ..strategies.strategy import StrategyMaker
from ..template.features import KINDS
from ..template.in_search import TemplateSpace
from ..template.knobs.knob import ConfigError
from ..template.space import KnobSpace, Rows
from ..template.task import TemplateTask
from .rank_trees import PairwiseTrees
from .speed_trees import SpeedTrees
from .tuner import Tuner, Where, load_records

Loss = Literal["reg", "rank", "rank-binary"]
LOSSES: tuple[Loss, ...] = get_args(Loss)

_HINTS = 16
"""Configs of other tasks, the fastest, that annealing starts from. A choice: a twelfth of its 192 chains."""
_AT_RANDOM = 24
"""Trials before the first fit, unless other tasks have shown the way."""
_FORGOTTEN = 0.05
"""Share of its weight below which what was learned from other tasks is dropped, as in the classic autotuner."""
_HALF_LIFE = 64.0
"""Trials in which what was learned from other tasks loses half of its weight (likewise)."""


class KnobTrees:
    """The cost model of a template: trees that see loops and knobs, and others that see the knobs alone.

    The last `knobs` features are those of the knobs. Samples of other tasks, in `history`, count less the more trials
    there are.
    """

    def __init__(self, loss: Loss, seed: int, knobs: int, only_knobs: bool) -> None:
        self._loss, self._seed = loss, seed
        self._parts: list[int | None] = [None] if only_knobs else [None, knobs]
        self.history: list[tuple[Floats, Floats]] = []
        self._models: list[PairwiseTrees | SpeedTrees] = []

    def learn_from(self, samples: Sequence[tuple[Floats, Floats]]) -> None:
        """Add features `(n, f)` and scores `(n,)` of other tasks."""
        self.history += samples
        self._models = []

    @property
    def ready(self) -> bool:
        """True where there is anything to be guided by."""
        if not self._models and self.history:
            self.fit(self.history[0][0][:0], np.zeros(0))
        return any(model.ready for model in self._models)

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Fit to the trials and to the history."""
        self._models = []
        share = float(2.0 ** (-len(scores) / _HALF_LIFE))
        groups = self.history if share >= _FORGOTTEN else []
        if len(scores) < _AT_RANDOM and not self.history:
            return
        sizes = [len(s) for _, s in groups]
        everything = np.concatenate([*(f for f, _ in groups), features])
        values = np.concatenate([*(s for _, s in groups), scores])
        numbers = np.repeat(np.arange(len(sizes) + 1), [*sizes, len(scores)])
        weights = np.repeat([share, 1.0], [sum(sizes), len(scores)])
        seed = self._seed + len(scores)
        with at_most(1):
            for part in self._parts:
                told = slice(0 if part is None else sum(sizes), None)  # sizes of tiles mean less to other tasks
                model = self._new(seed, part)
                model.fit(everything[told], values[told], numbers[told], weights[told])
                self._models.append(model)

    def _new(self, seed: int, last: int | None) -> PairwiseTrees | SpeedTrees:
        """Trees for the loss; of the `last` features only, if given."""
        if self._loss == "reg":
            return SpeedTrees(seed, last)
        return PairwiseTrees(seed, binary=self._loss == "rank-binary", last=last)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return what is expected of features `(n, f)`, and how unsure that is, each `(n,)`."""
        with at_most(1):
            found = [model.predict(features) for model in self._models if model.ready]
        if not found:
            return np.zeros(len(features)), np.zeros(len(features))
        mean, spread = (np.mean([pair[i] for pair in found], axis=0) for i in range(2))
        return mean, spread


class _KindSpace(TemplateSpace):
    """The configs of a template, of which chains may meet any."""

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """Random rows `(n, d)`, legal or not: chains leave those that are not."""
        return self._space.sample(rng, n)


class GradientBoostingTuner(Tuner):
    """Fits trees to the trials, looks for configs that they like by simulated annealing, and measures those.

    `plan_size` configs are planned between two fits. `feature_type`: `knob`, `itervar` or `curve`; `loss_type`: `reg`
    learns speeds, `rank` and `rank-binary` which of two configs is faster. With `diversity_filter_ratio` r, the plan is
    picked from r times as many configs, so that they differ. `load_history` begins with what other tasks of the same
    template have shown.
    """

    @knows_classic_words
    def __init__(
        self,
        task: TemplateTask,
        plan_size: int = 16,
        feature_type: str = "itervar",
        loss_type: Loss = "rank",
        diversity_filter_ratio: float | None = 2.0,
        seed: int = 0,
        annealing: AnnealingSettings | None = None,
    ) -> None:
        super().__init__(task, seed)
        if loss_type not in LOSSES:
            raise ValueError(f"loss_type must be one of {', '.join(LOSSES)}, got '{loss_type}'")
        require_count("plan_size", plan_size)
        if feature_type not in KINDS:
            raise ValueError(f"feature type must be one of {', '.join(KINDS)}, got '{feature_type}'")
        self.batch_size = plan_size
        self.plan_size = plan_size
        self.feature_type = feature_type
        self.loss_type: Loss = loss_type
        self.diversity_filter_ratio = diversity_filter_ratio
        self._settings = annealing

    def _strategy(self) -> StrategyMaker:
        return partial(Annealing, settings=self._settings, diversity=self.diversity_filter_ratio)

    def _space(self) -> TemplateSpace:
        return _KindSpace(self.task, self.feature_type)

    def _model(self) -> CostModel:
        return self.trees

    @cached_property
    def trees(self) -> KnobTrees:
        """The cost model."""
        width = self.space.features(np.zeros((1, self.space.n_decisions), dtype=np.int64)).shape[1]
        return KnobTrees(self.loss_type, self.seed, width, self.feature_type == "knob")

    # -- what other tasks have shown ----------------------------------------------------------------------------------

    def load_history(self, records: Where) -> int:
        """Learn from records of the same template with other arguments or on other targets of the same kind.

        What was loaded before stays.
        """
        groups: dict[tuple[str, str], list[Record]] = {}
        for record in load_records(records):
            mine = record.workload_hash == self.task.compute_dag.hash and record.target == str(self.task.target)
            if record.sketch == SKETCH_PREFIX + self.task.name and not mine:
                groups.setdefault((record.workload_hash, record.target), []).append(record)
        found = [samples for group in groups.values() if (samples := self._history_of(group)) is not None]
        if not found:
            return 0
        legal = [*islice(in_random_order(self._loop.strategy.spaces[0], np.random.default_rng(self.seed)), 1)]
        rows = np.array(legal, dtype=np.int64).reshape(len(legal), self.space.n_decisions)
        width = self.task.features(rows, self.feature_type).shape[1]
        fitting = [(features, scores) for features, scores in found if features.shape[1] == width]
        self.trees.learn_from(fitting)
        return sum(len(scores) for _, scores in fitting)

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
        fastest = rows[np.argsort(times_s)[:_HINTS]]
        strategy = self._loop.strategy
        assert isinstance(strategy, Annealing)
        strategy.hint(0, _nearest(other.config_space, fastest, self.space))
        return other.features(rows, self.feature_type), relative_speed(times_s)


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
