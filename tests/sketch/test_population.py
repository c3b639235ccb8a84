"""Rows of sketches: drawn within the limits, group by group; changed, crossed, and carried over to another sketch."""

from typing import Any

import effort
import numpy as np
import numpy.typing as npt
import pytest
from sample_workloads import SAMPLES

import loopwright as lw
from loopwright.dialects.presets import PRESETS, preset_target
from loopwright.search.sketch.distinct import distinct_rows, next_rows, sorted_rows
from loopwright.search.sketch.hole import Columns, Derived, Hole, KnownColumns, Limit, once
from loopwright.search.sketch.population import Population

POWERS = tuple(2**n for n in range(11))


def tiled(prefix: str, extent: int = 1024) -> tuple[Hole, ...]:
    return (
        Hole(f"{prefix}_outer", POWERS, 1, axis=prefix),
        Hole(f"{prefix}_inner", POWERS, 1, axis=prefix),
        Hole(f"{prefix}_unroll", (1, 2, 4), 1, "unroll"),
    )


def two_anchors(rare: bool = False) -> Population:
    """Each anchor has limits of its own; with `rare`, one of a thousand rows keeps those of the second."""
    first, second = tiled("a"), tiled("b")
    product = Derived("b_tile", lambda c: c["b_outer"] * c["b_inner"], 1)
    limits = [
        lambda c: c["a_outer"] * c["a_inner"] == 1024,
        lambda c: (c["b_tile"] >= (512 if rare else 4)) & (c["b_tile"] <= (512 if rare else 64)),
        lambda c: c["b_unroll"] * c["b_outer"] <= (4 if rare else 2048),
    ]
    return Population((*first, *second), (product,), tuple(limits))


def test_limits_divide_the_holes_into_groups() -> None:
    population = two_anchors()
    assert [g.members for g in population.groups] == [(0, 1), (2,), (3, 4, 5)]
    assert [len(g.limits) for g in population.groups] == [1, 0, 2]


def test_a_limit_that_names_nothing_ties_all_holes() -> None:
    population = Population(tiled("a"), (), (lambda c: np.sum([*c.values()], axis=0) < 100,))
    assert [g.members for g in population.groups] == [(0, 1, 2)]


@pytest.mark.parametrize("rare", [False, True])
def test_samples_are_legal_many_and_everywhere(rare: bool) -> None:
    population = two_anchors(rare)
    rows = population.sample(np.random.default_rng(0), 2000)
    assert rows.shape == (2000, 6) and population.legal(rows).all()
    columns = population.columns(rows)
    assert set(columns["a_outer"]) == set(POWERS)
    counts = np.unique(columns["a_outer"], return_counts=True)[1]
    assert counts.min() > 100
    assert len(np.unique(columns["b_tile"])) == (1 if rare else 5)


def test_rare_rows_of_a_large_group_are_found_by_walking() -> None:
    holes = tuple(Hole(f"x{i}", POWERS, 1, axis="x") for i in range(6))
    limit = lambda c: np.prod([c[h.name].astype(float) for h in holes], axis=0) <= 8  # noqa: E731
    population = Population(holes, (), (limit,))
    assert population.legal(np.random.default_rng(0).integers(0, 11, size=(20000, 6))).mean() < 1e-3
    rows = population.sample(np.random.default_rng(0), 500)
    assert len(rows) == 500 and population.legal(rows).all()
    assert len(np.unique(rows, axis=0)) > 60


def test_a_limit_may_ask_for_more_than_it_does_at_the_defaults() -> None:
    """Holes that it asks for in some rows alone are of no group of its own, and have their defaults in it."""

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        large = c["x0"] * c["x1"] * c["x2"] > 8
        return ~large | (large & (c["y"] == 1)) if np.any(large) else ~large

    holes = (*(Hole(f"x{i}", tuple(range(1, 40)), 1) for i in range(3)), Hole("y", POWERS, 1))
    population = Population(holes, (), (limit,))
    assert [group.members for group in population.groups] == [(0, 1, 2), (3,)]
    rows = population.sample(np.random.default_rng(0), 5000)
    assert len(rows) == 5000 and (population.columns(rows)["x0"] > 8).any()


def test_nothing_legal_gives_nothing() -> None:
    holes = tuple(Hole(f"x{i}", POWERS, 1) for i in range(5))
    population = Population(holes, (), (lambda c: c["x0"] + c["x1"] + c["x2"] + c["x3"] + c["x4"] < 0,))
    assert population.sample(np.random.default_rng(0), 100).shape == (0, 5)
    small = Population(holes[:2], (), (lambda c: c["x0"] < 0,))
    assert small.sample(np.random.default_rng(0), 100).shape == (0, 2)


def test_mutation_moves_every_kind_and_exchanges_factors() -> None:
    population = two_anchors()
    rng = np.random.default_rng(0)
    rows = population.sample(rng, 3000)
    moved = population.mutate(rng, rows)
    assert (moved >= 0).all() and (moved < population.sizes).all()
    differing = moved != rows
    assert (differing.sum(axis=1) <= 4).all() and (differing.sum(axis=1) >= 1).mean() > 0.85
    assert differing.any(axis=0).all()
    assert differing[:, 2].sum() < differing[:, 0].sum()  # unrolling is moved less often than tiles
    exchanged = (differing.sum(axis=1) == 2) & differing[:, 0] & differing[:, 1]
    columns = population.columns(moved[exchanged])
    assert exchanged.sum() > 100 and (columns["a_outer"] * columns["a_inner"] == 1024).mean() > 0.6


def test_crossover_takes_whole_axes() -> None:
    population = two_anchors()
    rng = np.random.default_rng(0)
    a, b = np.zeros((500, 6), np.int64), np.ones((500, 6), np.int64)
    crossed = population.crossover(rng, a, b)
    assert (crossed[:, 0] == crossed[:, 1]).all() and (crossed[:, 3] == crossed[:, 4]).all()
    assert {tuple(r) for r in crossed[:, [0, 2, 3, 5]].tolist()} >= {(0, 0, 1, 1), (1, 1, 0, 0), (0, 1, 0, 1)}


def test_rows_of_another_sketch_keep_what_has_the_same_name() -> None:
    theirs = Population((Hole("tile", (1, 3, 8, 16), 1), Hole("gone", (1, 2), 1)), (), ())
    ours = Population((Hole("new", (1, 2, 4), 1), Hole("tile", (2, 4, 8), 2)), (), ())
    adopted = ours.adopt(np.random.default_rng(0), theirs, np.array([[0, 0], [1, 1], [2, 0], [3, 1]] * 10))
    assert adopted[:, 1].tolist() == [0, 1, 2, 2] * 10
    assert set(adopted[:, 0]) == {0, 1, 2}


def test_the_same_seed_gives_the_same_rows() -> None:
    first, again, other = (two_anchors(True).sample(np.random.default_rng(s), 50) for s in (0, 0, 1))
    assert (first == again).all() and (first != other).any()


TARGETS = {
    "llvm wide": "llvm cores=16 vector_bytes=64 vector_registers=32",
    "cuda": "cuda cores=132 max_threads_per_block=1024 max_shared_bytes=232448 warp_size=32 max_vthreads=8 "
    "compute_capability=90",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_defaults_and_samples_of_all_workloads_keep_their_limits(target: str) -> None:
    """Small odd extents and the layers of the command line; mutants mostly do too."""
    from loopwright.search.named_workloads import named_workloads

    rng = np.random.default_rng(0)
    kept = []
    workloads: dict[str, Any] = {**SAMPLES, **named_workloads()}
    for name in effort.spread(list(workloads), 16 * effort.level()):
        for sketch in lw.SearchTask(workloads[name], target=TARGETS[target]).sketches:
            assert sketch.legal(sketch.default[None]).all(), f"{name} {sketch.name}: the defaults break a limit"
            rows = sketch.sample(rng, 64)
            assert sketch.legal(rows).all(), f"{name} {sketch.name}"
            assert len(rows) == (64 if sketch.holes else 1), f"{name} {sketch.name}"
            kept.append(sketch.legal(sketch.mutate(rng, rows)).mean())
    assert np.mean(kept) > 0.6


@pytest.mark.parametrize(("kind", "model"), PRESETS)
@pytest.mark.few(1)
def test_defaults_keep_the_limits_of_every_known_device(kind: str, model: str) -> None:
    rng = np.random.default_rng(0)
    for name in ("conv_nchw_7x7", "two_layers", "attention", "depthwise_nchw", "softmax", "transpose"):
        for sketch in lw.SearchTask(SAMPLES[name], target=preset_target(f"{kind} model={model}")).sketches:
            rows = np.concatenate([sketch.default[None], sketch.sample(rng, 8)])
            assert len(rows) == (9 if sketch.holes else 2) and sketch.legal(rows).all(), f"{name} {sketch.name}"


@pytest.mark.parametrize("name", ["softmax", "max_pool", "sum_rows", "conv_nchw"])
def test_holes_of_gpu_sketches_say_what_is_chosen(name: str) -> None:
    for sketch in lw.SearchTask(SAMPLES[name], target="cuda model=h200").sketches:
        kinds = {h.name: h.kind for h in sketch.holes}
        for ending in ("threads", "vector", "unroll", "stages"):
            assert {kind for hole, kind in kinds.items() if hole.endswith(f"_{ending}")} <= {ending}
        assert any(kind == "threads" for kind in kinds.values()), kinds


@pytest.mark.parametrize("largest", [3, 2**40])
def test_distinct_rows_are_those_of_numpy(largest: int) -> None:
    """Few enough to have a key of 64 bits each, and more."""
    rng = np.random.default_rng(0)
    rows = rng.integers(2, size=(200, 5)) * largest
    ordered, first = np.unique(rows, axis=0, return_index=True)
    assert (sorted_rows(rows) == ordered).all()
    assert (distinct_rows(rows) == rows[np.sort(first)]).all()
    assert len(distinct_rows(rows[:0])) == 0
    assert distinct_rows(np.zeros((4, 0), dtype=np.int64)).shape == (1, 0)


def test_a_method_marked_once_computes_once_of_known_columns() -> None:
    class Model:
        asked = 0

        @once
        def twice(self, c: Columns) -> npt.NDArray[np.int64]:
            self.asked += 1
            return np.asarray(c["a"] * 2)

    model, columns = Model(), {"a": np.arange(3)}
    known = KnownColumns(columns)
    assert model.twice(known) is model.twice(known)
    assert model.asked == 1
    assert (model.twice(columns) == model.twice(columns)).all()
    assert model.asked == 3
    assert (model.twice(KnownColumns({"a": np.arange(4)})) == [0, 2, 4, 6]).all()


def test_a_limit_is_asked_about_what_those_before_have_left() -> None:
    asked: list[int] = []

    def up_to(most: int) -> Limit:
        def limit(columns: Columns) -> npt.NDArray[np.bool_]:
            asked.append(len(columns["a"]))
            return np.asarray(columns["a"] + columns["b"] <= most)

        return limit

    holes = (Hole("a", tuple(range(8)), 0), Hole("b", tuple(range(8)), 0))
    population = Population(holes, (), (up_to(9), up_to(20), up_to(4), up_to(-1), up_to(3)))
    every = population.every
    for limits, counts in ((population.limits[:3], [64, 49, 49]), (population.limits, [64, 49, 49, 15])):
        asked.clear()
        wanted = np.all([limit(population.columns(every)) for limit in limits], axis=0)
        asked.clear()
        np.testing.assert_array_equal(Population(holes, (), limits).legal(every), wanted)
        assert asked == counts
    assert population.legal(every[:0]).shape == (0,)


def test_next_rows_differ_in_the_next_choice_of_one_hole() -> None:
    found = next_rows(np.array([0, 1, 2]), np.array([1, 3, 3]))
    assert {tuple(row) for row in found.tolist()} == {(0, 0, 2), (0, 2, 2), (0, 1, 1)}
