"""Regression by randomised and by gradient-boosted trees: the cost model of a search unless told otherwise."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .columns import distinct_columns
from .forest import BINS, Forest
from .plain_file import Fields, Plain, PlainFileError
from .protocol import MOST_COLUMNS, Floats, Tasks, check_width, enough, finite, log_scale
from .saved import SavedCostModel
from .threads import at_most
from .trend import Scale, Trend

FEW = 300
"""Samples up to which trees are extremely randomised ones, not boosted: of 92 workloads in benchmarks/samples they rank
unseen candidates better after 10 to 25 samples (rank correlation 0.65 and 0.59 beside the shipped model, 0.72 and 0.70
after twice as many), and take a third of the time; on functions of features both rank alike from 400 samples on."""
RANDOMISED = 20
"""Randomised trees of a member."""
_GROWN_AT_ONCE = 4
"""Trees. A choice: more would take cores from those who compile candidates."""
MANY = 2000
"""Samples of each member of the ensemble at most: what bounds the time to learn from tens of thousands of records. A
choice."""
TREES = 50
"""Of a member. A choice: the time of a fit (`benchmarks/scoring.py`) against what a search's few hundred samples can
say."""
PENALTY = 10.0
"""Of a trend's slopes, in samples. A choice: as ten samples weigh, so that a line through few is nearly flat."""
FEWEST_FOR_TREND = 8
"""Samples without which a member is trees alone. A choice: a line through fewer is mostly noise."""
FEW_LEAVES = 15
"""Of a tree, of few samples. A choice, with `MANY_LEAVES`: smaller trees miss pairs of decisions, larger ones learn
noise."""
MANY_LEAVES = 20
"""The same of many samples."""
_MOST_THREADS = 1024
"""Of a model in a file: more than any machine would gain by."""
_MOST_SEED = (1 << 32) - 1 - 1024
"""Seeds that scikit-learn takes, less the members' numbers."""
_MOST_MEMBERS = 64
"""Of a model in a file."""
COLUMNS_A_SPLIT = 32
"""About how many columns a split chooses from, where there are more: many say nearly the same. A choice: the time of a
fit."""


class BoostedTrees(SavedCostModel):
    """Pairs of ensembles of trees; every second pair learns what a linear trend misses.

    A trend is seen in fewer samples than trees need, but is wrong about a best that lies in the middle: both kinds
    together rank better than either alone. Up to `FEW` samples the trees are extremely randomised (Geurts et al., 2006)
    and each sees all samples, beyond they are boosted by gradients on bootstrap samples. It learns `protocol.log_scale`
    of the scores; the spread is how much the two of a pair disagree. `threads` bounds scikit-learn's OpenMP threads: on
    few cores and few samples more of them only cost time.
    """

    kind = "trees"
    few: ClassVar[int] = FEW
    """Samples up to which trees are randomised."""

    def __init__(self, seed: int = 0, members: int = 4, fewest: int = 8, threads: int = 1) -> None:
        self._seed = seed
        self._count = members
        self._fewest = fewest
        self._threads = threads
        self._width = 0
        self._columns: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._scale: Scale | None = None
        self._members: list[tuple[Trend, Forest]] = []

    @classmethod
    def seeded(cls, seed: int) -> Self:
        """A model that draws its samples by a seed."""
        return cls(seed)

    @property
    def ready(self) -> bool:
        """True where it has been fitted to enough samples, of which some worked."""
        return bool(self._members)

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Fit all members anew; with too few samples, or none that worked, it is not ready."""
        self._members = []
        if not enough(scores, self._fewest):
            return
        tasks = np.zeros(len(scores), dtype=np.int64) if tasks is None else np.asarray(tasks)
        features, values = finite(features), log_scale(scores)
        self._width = features.shape[1]
        self._columns = distinct_columns(features)
        if not len(self._columns):
            return
        features = features[:, self._columns].astype(np.float64)
        self._scale = Scale.of(features)
        rng = np.random.default_rng(self._seed)
        with at_most(self._threads), ThreadPoolExecutor(_GROWN_AT_ONCE) as pool:
            for member in range(self._count):
                chosen = drawn(rng, len(values), whole=member == 0 or len(values) <= self.few)
                self._members.append(self._member(member, features[chosen], values[chosen], tasks[chosen], pool))

    def state(self) -> dict[str, Plain]:
        """Return the model's state as plain data, for a file."""
        made: dict[str, Plain] = {"seed": self._seed, "count": self._count, "fewest": self._fewest}
        fitted: dict[str, Plain] | None = None
        if self._members and self._scale is not None:
            each: list[Plain] = [{"trend": t.state(), "trees": [f.state()]} for t, f in self._members]
            scale = self._scale.state()
            fitted = {"width": self._width, "columns": self._columns, "scale": scale, "members": each}
        return {**made, "threads": self._threads, "fitted": fitted}

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The model in a file; PlainFileError where it is none."""
        members, threads = fields.whole("count", 1, _MOST_MEMBERS), fields.whole("threads", 1, _MOST_THREADS)
        model = cls(fields.whole("seed", 0, _MOST_SEED), members, fields.whole("fewest"), threads)
        if fields.has("fitted"):
            model._read_members(fields.part("fitted"))
        return model

    def _read_members(self, fields: Fields) -> None:
        self._width = width = fields.whole("width", 1, MOST_COLUMNS)
        self._columns = columns = fields.array("columns", "<i8", (-1,))
        if not len(columns) or columns[0] < 0 or columns[-1] >= width or (np.diff(columns) < 1).any():
            raise PlainFileError(f"'columns' must be some of {width}, in order")
        self._scale = Scale.read(fields.part("scale"), len(columns))
        for part in fields.parts("members", _MOST_MEMBERS):
            trend = Trend.read(part.part("trend"), len(columns))
            trees = [Forest.read(one, len(columns)) for one in part.parts("trees", 2)]
            if len(trees) != 1:
                raise PlainFileError(
                    "a member has boosted trees once, those of older rankers ten times: train it again"
                )
            self._members.append((trend, trees[0]))

    def _member(
        self, number: int, features: Floats, values: Floats, tasks: Tasks, pool: Executor
    ) -> tuple[Trend, Forest]:
        assert self._scale is not None
        standardised = self._scale.apply(features)
        right = values >= 0  # failures, which have no speed, would tilt it
        trend = trend_of(number, standardised[right], values[right])
        missed, seed = values - trend.at(standardised), self._seed + number
        if len(values) <= self.few:
            return trend, randomised(features, missed, seed, pool)
        return trend, Forest.of(grow(features, missed, seed))

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the members' mean, and their spread."""
        if not self._members:
            return np.zeros(len(features)), np.ones(len(features))
        if not len(features):
            return np.zeros(0), np.zeros(0)
        assert self._scale is not None
        check_width(self._width, features)
        chosen = by_column(features, self._columns)
        standardised = self._scale.apply(chosen)
        with at_most(self._threads):
            each = np.stack([trend.at(standardised) + trees.predict(chosen) for trend, trees in self._members])
        return each.mean(axis=0), spread_of(each)


def trend_of(member: int, standardised: Floats, values: Floats) -> Trend:
    """The trend that a member's trees begin from, of what worked; the mean alone in the first pair, the third, ..."""
    if member // 2 % 2 == 0 or len(values) < FEWEST_FOR_TREND:
        return Trend.flat(standardised.shape[1], float(values.mean()) if len(values) else 0.0)
    return Trend.fitted(standardised, values, PENALTY)


def spread_of(each: Floats) -> Floats:
    """Spread of members `(m, n)`: the mean distance of the two of a pair from their middle, `(n,)`."""
    pairs = len(each) // 2
    if not pairs:
        return np.zeros(each.shape[1])
    return np.asarray(np.abs(each[: 2 * pairs : 2] - each[1 : 2 * pairs : 2]).mean(axis=0) / 2.0)


def drawn(rng: np.random.Generator, samples: int, whole: bool) -> npt.NDArray[np.int64]:
    """The samples of one member: all of them for `whole`, else with repetitions; `MANY` at most."""
    if whole and samples <= MANY:
        return np.arange(samples)
    return rng.integers(samples, size=min(samples, MANY))


def by_column(features: Floats, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Finite doubles of some columns, column after column in memory: trees read few columns of many rows."""
    return np.asarray(finite(features.T[columns].astype(np.float64)).T)


def randomised(features: Floats, values: Floats, seed: int, pool: Executor) -> Forest:
    """Grow extremely randomised trees, each to leaves of single samples, whose mean predicts.

    They are those of scikit-learn's `ExtraTreesRegressor` of this seed, which grows one after the other, and of few
    samples spends most of its time beside them; here they grow in a pool's threads, without the interpreter's lock.
    """
    from sklearn.tree import ExtraTreeRegressor  # type: ignore[import-untyped, unused-ignore]

    seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=RANDOMISED)
    rows, wanted = np.ascontiguousarray(features, dtype=np.float32), np.ascontiguousarray(values[:, None], np.float64)
    share = _share_of_columns(features)

    def grown(one: int) -> Any:
        return ExtraTreeRegressor(max_features=share, random_state=one).fit(rows, wanted, check_input=False).tree_

    return Forest.of_mean([*pool.map(grown, seeds.tolist())])


def _share_of_columns(features: Floats) -> float:
    return float(np.clip(COLUMNS_A_SPLIT / features.shape[1], 0.3, 1.0))


def grow(features: Floats, values: Floats, seed: int, loss: Any = "squared_error") -> Any:
    """Boost trees; with few samples they are small, as most of the time goes into their histograms."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    many = len(values) >= MANY
    model = HistGradientBoostingRegressor(
        loss=loss,
        max_iter=TREES,
        learning_rate=0.2 if many else 0.14,
        max_leaf_nodes=MANY_LEAVES if many else FEW_LEAVES,
        min_samples_leaf=int(np.clip(len(values) // 64, 1, 20)),
        l2_regularization=0.01,
        max_bins=BINS,
        max_features=_share_of_columns(features),
        early_stopping=False,
        random_state=seed,
    )
    return model.fit(features, values)
