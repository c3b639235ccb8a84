"""A genetic algorithm over the positions of the knobs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..template.space import Rows
from ..template.task import TemplateTask
from .tuner import Tuner


class GATuner(Tuner):
    """Breeds each generation from the last one and its elite.

    Parents are drawn by their speed; a child has one parent's knobs up to a random place, the other's behind it, and
    each knob at random with the probability `mutation_prob`. What was measured before is bred again, never measured
    again. Defaults: Chen et al., Learning to Optimize Tensor Programs, 2018.
    """

    def __init__(
        self,
        task: TemplateTask,
        pop_size: int = 100,
        elite_num: int = 3,
        mutation_prob: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(task, seed)
        if not 0 < elite_num < pop_size:
            raise ValueError(f"elite_num must be in [1, pop_size), got {elite_num} of {pop_size}")
        self.pop_size = pop_size
        self.elite_num = elite_num
        self.mutation_prob = mutation_prob
        self._generation: list[tuple[tuple[int, ...], float]] = []
        self._elite: list[tuple[tuple[int, ...], float]] = []
        self._waiting: list[int] = []

    def propose(self, count: int) -> list[int]:
        if not self._waiting:
            self._waiting = self._next_generation()
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def update(self, rows: Rows, times_s: npt.NDArray[np.float64]) -> None:
        self._generation += [(tuple(row), 1.0 / time_s) for row, time_s in zip(rows.tolist(), times_s, strict=True)]
        ranked = sorted(self._elite + self._generation, key=lambda pair: -pair[1])
        self._elite = ranked[: self.elite_num]

    def _next_generation(self) -> list[int]:
        bred: list[int] = []
        parents = self._generation + [e for e in self._elite if e not in self._generation]
        right = [(row, speed) for row, speed in parents if speed > 0]
        if len(right) >= 2:
            rows = np.array([row for row, _ in right], dtype=np.int64)
            speeds = np.array([speed for _, speed in right])
            for _ in range(4):
                children = self._breed(rows, speeds / speeds.sum(), 2 * self.pop_size)
                seen = {*self.visited, *bred}
                bred += self.fresh(self.space.indices(children), self.pop_size - len(bred), seen)
            self._generation = []
        return bred + self.draw(self.pop_size - len(bred), bred)

    def _breed(self, rows: Rows, chances: npt.NDArray[np.float64], count: int) -> Rows:
        """Children `(count, d)` of parents `(n, d)`."""
        a, b = self.rng.choice(len(rows), size=(2, count), p=chances)
        cut = self.rng.integers(0, self.space.n_decisions + 1, size=count)
        first = np.arange(self.space.n_decisions) < cut[:, None]
        children = np.where(first, rows[a], rows[b])
        mutated = self.rng.random(children.shape) < self.mutation_prob
        return np.where(mutated, self.space.sample(self.rng, count), children)
