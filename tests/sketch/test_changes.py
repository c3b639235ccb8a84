"""Changes of rows by machine code against the same by NumPy, an array of random numbers after the other."""

import numpy as np
import numpy.typing as npt
import pytest

from loopwright.search.sketch.changes import EXCHANGED, NEIGHBOUR, TWICE
from loopwright.search.sketch.hole import Hole, Kind
from loopwright.search.sketch.population import WEIGHTS, Population

Rows = npt.NDArray[np.int64]


def stepped(rng: np.random.Generator, sizes: Rows, rows: Rows, which: Rows, holes: Rows) -> None:
    """Move holes of some rows to a neighbour or anywhere."""
    old = rows[which, holes]
    up = (rng.random(len(which)) < 0.5) & (old < sizes[holes] - 1) | (old == 0)
    anywhere = (rng.integers(0, 1 << 32, size=len(which), dtype=np.uint32) * sizes[holes]) >> 32
    rows[which, holes] = np.where(rng.random(len(which)) < NEIGHBOUR, old + np.where(up, 1, -1), anywhere)


def changed(rng: np.random.Generator, population: Population, rows: Rows, members: list[int] | None) -> Rows:
    """The rows that `Population.mutate` gives, by NumPy."""
    rows = rows.copy()
    holes = population.holes
    partners = [[j for j, p in enumerate(holes) if j != i and h.axis and h.axis == p.axis] for i, h in enumerate(holes)]
    most = max([1, *map(len, partners)])
    filled = np.array([[*each, *[-1] * (most - len(each))] for each in partners])
    logs = [np.log2(np.maximum(hole.choices, 0.5)) for hole in holes]
    weights = np.array([WEIGHTS[hole.kind] * (len(hole.choices) > 1) for hole in holes])
    if members is not None:
        weights[[i for i in range(len(holes)) if i not in members]] = 0
    shares = np.cumsum(weights / weights.sum())
    for part in (1.0, TWICE):
        which = np.flatnonzero(rng.random(len(rows)) < part)
        own = (shares / shares[-1]).searchsorted(rng.random(len(which)), side="right")
        trades = (rng.random(len(which)) < EXCHANGED) & (filled[own, 0] >= 0)
        stepped(rng, population.sizes, rows, which[~trades], own[~trades])
        which, own = which[trades], own[trades]
        if not len(which):
            continue
        picked = np.argmax(np.where(filled[own] >= 0, rng.random((len(own), most)), -1.0), axis=1)
        others = filled[own, picked]
        before = [logs[i][rows[r, i]] + logs[j][rows[r, j]] for r, i, j in zip(which, own, others, strict=True)]
        stepped(rng, population.sizes, rows, which, own)
        for row, i, j, product in zip(which, own, others, before, strict=True):
            rows[row, j] = np.argmin(np.abs(logs[j] - (product - logs[i][rows[row, i]])))
    return rows


def drawn_population(rng: np.random.Generator) -> Population:
    """One to twelve holes of all kinds, some of a single choice, on a few axes."""
    kinds: list[Kind] = ["tile", "threads", "vector", "unroll", "stages", "parts"]
    choices = [tuple(sorted(rng.choice(64, size=int(rng.integers(1, 9)), replace=False))) for _ in range(12)]
    holes = [
        Hole(f"h{n}", tuple(map(int, each)), int(each[0]), kinds[rng.integers(6)], rng.choice(["", "a", "b", "c"]))
        for n, each in enumerate(choices[: rng.integers(1, 13)])
    ]
    return Population((*holes, Hole("last", (1, 2), 1)), (), ())


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_changed_as_by_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    population = drawn_population(rng)
    rows = (rng.random((300, len(population.holes))) * population.sizes).astype(np.int64)
    free = [i for i, hole in enumerate(population.holes) if len(hole.choices) > 1]
    for members in (None, free[: 1 + len(free) // 2]):
        own, numpys = np.random.default_rng(seed), np.random.default_rng(seed)
        found = population.mutate(own, rows, members)
        assert (found == changed(numpys, population, rows, members)).all()
        assert own.random() == numpys.random(), "as many numbers are drawn"


def test_rows_without_choices_stay() -> None:
    alone = Population((Hole("one", (4,), 4),), (), ())
    rng = np.random.default_rng(0)
    assert (alone.mutate(rng, np.zeros((3, 1), np.int64)) == 0).all()
    assert Population((), (), ()).mutate(rng, np.zeros((3, 0), np.int64)).shape == (3, 0)
    assert drawn_population(rng).mutate(rng, np.zeros((0, 1), np.int64)).shape == (0, 1)
