"""A product space whose times behave like those of a tiled matrix product, with a known optimum.

Decisions (as exponents of two): tile of i, j, k, inner tile of i, j, vector width, unroll. Times are seconds.
"""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from loopwright.search.cost_model import Floats
from loopwright.search.sketch.population import Rows

SIZES = (8, 8, 8, 5, 5, 5, 6)


class FakeSpace:
    n_decisions = len(SIZES)

    def __init__(self, name: str = "tiled", slowdown: float = 1.0, failing: float = 0.0) -> None:
        self.name = name
        self.slowdown = slowdown
        self.failing = failing

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        return rng.integers(SIZES, size=(n, len(SIZES)), dtype=np.int64)

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        rows = rows.copy()
        column = rng.integers(rows.shape[1], size=len(rows))
        rows[np.arange(len(rows)), column] = rng.integers(np.array(SIZES)[column])
        return rows

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        return np.where(rng.random(a.shape) < 0.5, a, b)

    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]:
        return (rows[:, 3] <= rows[:, 0]) & (rows[:, 4] <= rows[:, 1]) & (rows[:, 3] + rows[:, 4] + rows[:, 6] <= 10)

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        i, j, k, ii, jj, v, u = rows.T
        working_set = np.log2(2.0 ** (i + k) + 2.0 ** (j + k) + 2.0 ** (i + j))
        features = [i, j, k, ii, jj, v, u, working_set, ii + jj, ii + jj + u, v - jj, 2.0**ii + 2.0**jj]
        return np.stack(features, axis=1).astype(np.float32)

    def schedule(self, row: Rows) -> str:
        time_s = float(self.times(np.array([row]))[0])
        return f"space={self.name} row={','.join(map(str, row))} " + (
            f"time={time_s!r}" if np.isfinite(time_s) else "run=raise time=1"
        )

    def times(self, rows: Rows) -> Floats:
        """Return the seconds of legal rows; infinity for those that fail."""
        i, j, k, ii, jj, v, u = rows.T
        working_set = 2.0 ** (i + k) + 2.0 ** (j + k) + 2.0 ** (i + j)
        cache = 1 + np.maximum(0, np.log2(working_set / 2**11)) * 0.8 + np.maximum(0, np.log2(2**9 / working_set)) * 0.2
        registers = 1 + np.maximum(0, ii + jj - 5) * 0.7 + np.maximum(0, 5 - ii - jj) * 0.35
        vector = np.where(v <= jj, 8 / 2.0 ** np.minimum(v, 3), 9.0) * np.where(v > 3, 1.3, 1.0)
        unroll = 1 + 0.08 * np.abs(u - 3) + np.where(ii + jj + u > 8, 0.5, 0.0)
        ripple = 1 + 0.05 * np.sin(rows @ np.array([3, 5, 7, 11, 13, 17, 19]))
        times = 1e-4 * cache * registers * vector * unroll * ripple * self.slowdown
        if self.failing:
            times[(rows @ np.array([7, 11, 13, 17, 19, 23, 29])) % 100 < 100 * self.failing] = np.inf
        return times

    def all_rows(self) -> Rows:
        rows = np.array(list(itertools.product(*map(range, SIZES))))
        return rows[self.legal(rows)]

    def best_s(self) -> float:
        return self.times(self.all_rows()).min()


class Failing(FakeSpace):
    """Raises in one of its methods from the `after`-th call on."""

    def __init__(self, method: str, after: int = 0) -> None:
        super().__init__("failing")
        asked = getattr(self, method)
        calls = iter(range(10**6))

        def ask(*args: Any) -> Any:
            if next(calls) >= after:
                raise KeyError("no such stage")
            return asked(*args)

        setattr(self, method, ask)


class Knowing:
    """A cost model that knows the times of FakeSpace's rows from their features, however few were measured."""

    ready = True

    def fit(self, features: npt.NDArray[Any], scores: Floats, tasks: npt.NDArray[Any] | None = None) -> None:
        pass

    def predict(self, features: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        rows = features[:, : len(SIZES)].astype(np.int64)
        return 1e-4 / FakeSpace().times(rows), np.zeros(len(rows))
