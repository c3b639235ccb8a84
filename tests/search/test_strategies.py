"""Every strategy searches sketches and templates: legal candidates, each once, the same for the same seed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import template_workloads  # noqa: F401 (registers its template)
from fake_space import SIZES, Failing, FakeSpace, Knowing

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.cuda.compile import print_cuda
from loopwright.search.cost_model import CostModel, Floats, make_model, relative_speed
from loopwright.search.cost_model.grounded import Grounded
from loopwright.search.records import file as rec
from loopwright.search.records.file import Role
from loopwright.search.sketch.population import Rows
from loopwright.search.sketch.space import GuardedSpace, Space
from loopwright.search.strategies.genetic import Genetic
from loopwright.search.strategies.grid import Grid
from loopwright.search.strategies.make import STRATEGIES
from loopwright.search.strategies.order import rows_at, size_of
from loopwright.search.strategies.strategy import Proposal, Strategy
from loopwright.search.template.in_search import TemplateSpace

LLVM = "llvm cores=2 vector_bytes=32"


class ListedSpace(FakeSpace):
    sizes = np.array(SIZES)


def product() -> list[te.Tensor]:
    a, b = te.placeholder((48, 32), name="a"), te.placeholder((32, 64), name="b")
    return [a, b, topi.matmul(a, b)]


def convolution() -> list[te.Tensor]:
    """One whose steps copy operands to registers, in lanes that begin anywhere, beside the products."""
    x, w = te.placeholder((1, 16, 14, 14), name="x"), te.placeholder((32, 16, 3, 3), name="w")
    return [x, w, topi.nn.conv2d_nchw(x, w, 1, 1)]


def sketches() -> Sequence[Space]:
    return lw.SearchTask(product, target=LLVM).sketches


def configs() -> Sequence[Space]:
    return [TemplateSpace(lw.TemplateTask("tests_matmul", (16, 24, 8), LLVM))]


def fakes() -> Sequence[Space]:
    return [ListedSpace("a", failing=0.1), ListedSpace("b", slowdown=2.0)]


SPACES = {"sketches": sketches, "template": configs, "fake": fakes}


def made(name: str, spaces: Sequence[Space], seed: int = 0) -> Strategy:
    return STRATEGIES[name](spaces, seed=seed, note=pytest.fail)


def speed_of(space: Space, row: Sequence[int]) -> float:
    """A time for any row of any space: that of a fake one, or one that falls with the decisions."""
    if isinstance(space, FakeSpace):
        return float(space.times(np.array([row]))[0])
    return 1.0 / (1.0 + sum(row))


def searched(
    strategy: Strategy, spaces: Sequence[Space], batches: int, count: int = 16, model: CostModel | None = None
) -> list[Proposal]:
    """Proposals in some batches, each of which is measured."""
    known, found = model or make_model("linear"), list[Proposal]()
    for _ in range(batches):
        if strategy.learns:
            features, times_s = strategy.training_set()
            known.fit(features, relative_speed(times_s))
        for p in (batch := strategy.propose(known, count)):
            strategy.observe(p.space, p.row, speed_of(spaces[p.space], p.row))
        found += batch
    return found


@pytest.mark.parametrize("where", SPACES)
@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.few(1)
def test_proposals_are_legal_distinct_and_the_same_for_the_same_seed(name: str, where: str) -> None:
    spaces = SPACES[where]()
    first, again, other = (searched(made(name, spaces, seed), spaces, 2, count=24) for seed in (3, 3, 4))
    assert first == again
    assert first != other or name == "grid"
    assert len({p.schedule for p in first}) == len({(p.space, p.row) for p in first}) == 48
    for p in first:
        assert spaces[p.space].legal(np.array([p.row]))[0]
        assert spaces[p.space].schedule(np.array(p.row)) == p.schedule
    assert {p.space for p in first} == set(range(len(spaces)))


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.few(1)
def test_a_small_space_is_used_up(name: str) -> None:
    def rows() -> list[te.Tensor]:
        a = te.placeholder((64, 64), name="a")
        return [a, topi.nn.softmax(a)]

    template = [TemplateSpace(lw.TemplateTask("dense", (4, 2, 2), LLVM))]
    for spaces in (lw.SearchTask(rows, target=LLVM).sketches, template):
        legal = 0
        for space in spaces:
            every = rows_at(np.arange(size_of(space.sizes)), space.sizes)
            legal += int(space.legal(every).sum())
        strategy = made(name, spaces)
        assert len(searched(strategy, spaces, 5, count=24)) == legal
        assert strategy.propose(make_model("random"), 8) == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_is_put_back_is_proposed_first(name: str) -> None:
    strategy, model = made(name, fakes()), make_model("random")
    batch = strategy.propose(model, 8)
    strategy.put_back(batch[2:7])
    assert strategy.propose(model, 3) == batch[2:5]
    later = strategy.propose(model, 8)
    assert later[:2] == batch[5:7]
    assert len({(p.space, p.row) for p in batch + later}) == 8 + 6


def test_a_grid_goes_along_the_index_in_one_space_after_the_other() -> None:
    spaces = fakes()
    proposals = Grid(spaces).propose(make_model("random"), 20)
    assert [p.space for p in proposals] == [0, 1] * 10
    rows = rows_at(np.arange(size_of(np.array(SIZES))), np.array(SIZES))
    legal = rows[spaces[0].legal(rows)][:10].tolist()
    assert [list(p.row) for p in proposals[::2]] == legal == [list(p.row) for p in proposals[1::2]]
    assert legal[1][0] == legal[0][0] + 1


@pytest.mark.parametrize("name", ["grid", "random"])
def test_what_learns_nothing_goes_on_after_a_break_as_without_one(name: str) -> None:
    spaces = sketches()
    whole = searched(made(name, spaces), spaces, 4)
    later = made(name, spaces)
    for p in whole[:32]:
        later.skip(p.schedule)
        later.observe(p.space, p.row, 1.0)
    assert searched(later, spaces, 2) == whole[32:]


@pytest.mark.slow(1.2)
def test_what_asks_a_model_that_knows_finds_the_optimum_sooner_than_chance() -> None:
    space = ListedSpace()

    def best_s(name: str, seed: int) -> float:
        proposals = searched(made(name, [space], seed), [space], 4, model=Knowing())
        return min(speed_of(space, p.row) for p in proposals) / space.best_s()

    chance = np.median([best_s("random", seed) for seed in range(8)])
    for name in ("evolution", "annealing"):
        assert max(best_s(name, seed) for seed in range(2)) < 1.05 < 1.3 < chance, name


class Coded(ListedSpace):
    """A space whose last decision makes no difference to the code."""

    def code(self, row: Rows, schedule: str) -> str:
        return str(row[:-1])


@pytest.mark.parametrize("name", STRATEGIES)
def test_of_rows_that_are_built_to_the_same_code_one_is_proposed(name: str) -> None:
    spaces = [Coded("a"), Coded("b")]
    found = [p.row[:-1] for p in searched(made(name, spaces), spaces, 4)]
    assert len(found) == len(set(found)) == 64


@pytest.mark.parametrize("workload", [product, convolution])
def test_what_a_pragma_allows_beyond_all_loops_makes_no_other_code(workload: Callable[[], list[te.Tensor]]) -> None:
    task = lw.SearchTask(workload, target="cuda model=h200")
    sketch = task.sketches[-1]
    (unroll,) = [n for n, hole in enumerate(sketch.holes) if hole.kind == "unroll"]
    found: dict[str, set[str]] = {}
    rows = np.repeat(sketch.sample(np.random.default_rng(0), 5), sketch.sizes[unroll], axis=0)
    rows[:, unroll] = np.arange(len(rows)) % sketch.sizes[unroll]
    for row in rows:
        schedule = sketch.schedule(row)
        text = print_cuda(lower_to_kernel(task.schedule_module(schedule), task.target)).source
        found.setdefault(sketch.code(row, schedule), set()).add(text)
    assert all(len(texts) == 1 for texts in found.values()) and 3 <= len(found) < len(rows)


def test_what_takes_long_to_be_built_is_put_first() -> None:
    class Long(FakeSpace):
        def build_seconds(self, rows: Rows) -> Floats:
            return 1.0 + rows[:, 0]

    strategy = made("random", [Long("long"), FakeSpace("unknown")])
    proposals = strategy.propose(make_model("linear"), 32)
    ordered = strategy.longest_first(proposals)
    took = [1.0 + p.row[0] if p.space == 0 else 0.0 for p in ordered]
    assert took == sorted(took, reverse=True) and set(ordered) == set(proposals)
    assert [p for p in ordered if p.space] == [p for p in proposals if p.space]


def test_generations_are_bred_from_the_fastest() -> None:
    spaces = fakes()
    strategy = Genetic(spaces, 1, population=24)
    proposals = searched(strategy, spaces, 12)
    times_s = np.array([speed_of(spaces[p.space], p.row) for p in proposals])
    slow = np.where(np.isfinite(times_s), times_s, 1.0)
    assert np.median(slow[-48:]) < 0.7 * np.median(slow[:24])


class Unlisted(FakeSpace):
    """Of another package's, which need not say how many positions a decision has."""


def test_spaces_that_cannot_be_listed_are_drawn_from_and_no_grid() -> None:
    spaces = [Unlisted("a"), ListedSpace("b")]
    for name in set(STRATEGIES) - {"grid"}:
        assert {p.space for p in searched(made(name, spaces), spaces, 2)} == {0, 1}
    notes: list[str] = []
    proposals = Grid(spaces, note=notes.append).propose(make_model("random"), 8)
    assert {p.space for p in proposals} == {1}
    why = "it raised TypeError: its rows cannot be listed, as it has no `sizes`"
    assert notes == [f"sketch 'a' is left out of the search: {why}"]


@pytest.mark.parametrize("method", ["sample", "legal", "features", "schedule", "mutate"])
@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("name", ["annealing", "genetic", "random"])
@pytest.mark.few(2)
def test_a_space_that_raises_is_left_out_and_the_others_are_searched(name: str, method: str, after: int) -> None:
    notes: list[str] = []
    spaces = [ListedSpace("a"), Failing(method, after), ListedSpace("b")]
    proposals = searched(STRATEGIES[name](spaces, seed=0, note=notes.append), spaces, 20)
    assert len(proposals) == 320
    if method in ("features", "mutate") and name != "annealing":
        assert not notes  # nobody asks
    else:
        assert notes == ["sketch 'failing' is left out of the search: it raised KeyError: 'no such stage'"]
        assert all(p.space != 1 for p in proposals[-16:])


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.few(1)
def test_sketches_and_templates_are_tuned_by_each(name: str, tmp_path: Path, quick_measuring: None) -> None:
    path = tmp_path / "records.jsonl"
    tasks: list[lw.SearchTask | lw.TemplateTask] = [
        lw.SearchTask(product, target="llvm cores=2"),
        lw.TemplateTask("tests_matmul", (16, 24, 8), "llvm cores=2"),
    ]
    for task in tasks:
        options: dict[str, Any] = {"records": path, "strategy": name, "batch_size": 2, "progress": False}
        usual = task.measure_options()
        quick = replace(usual, builders=1, timing=replace(usual.timing, repeat=1, min_repeat_ms=1.0))
        task.tune(lw.TuningOptions(num_measure_trials=2, **options), quick)
        result = task.tune(lw.TuningOptions(num_measure_trials=4, **options), quick)
        assert result.state.resumed == 2
        tried = [r for r in rec.load(path) if r.role is Role.TRIAL and r.workload_key == task.workload_key]
        assert len(tried) == len({r.schedule for r in tried}) == 4
        assert all(r.ok for r in tried)


def test_other_tasks_are_not_looked_at_where_nothing_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("")
    monkeypatch.setattr("loopwright.search.cost_model.transfer.transfer_to", lambda task, records: asked.append(1))
    task = lw.SearchTask(product, target=LLVM)
    for name in STRATEGIES:
        asked: list[int] = []
        options = lw.TuningOptions(strategy=name, records=path, progress=False)
        assert isinstance(task.taught(options).cost_model, Grounded) == options.learns
        assert bool(asked) == options.learns == (name in ("evolution", "annealing"))
    assert not lw.TuningOptions(cost_model="random").learns


def test_an_unknown_strategy_is_refused_with_the_names_of_all() -> None:
    names = "there are: evolution, annealing, genetic, random, grid"
    with pytest.raises(ValueError, match=f"unknown strategy 'gird'; {names}"):
        lw.TuningOptions(strategy="gird")


def test_a_strategy_of_ones_own_is_taken(quick_measuring: None) -> None:
    class Last(Grid):
        def _order(self, space: GuardedSpace) -> Any:
            rows: Rows = rows_at(np.arange(size_of(space.sizes))[::-1], space.sizes)
            return map(tuple, rows[space.legal(rows)].tolist())

    task = lw.TemplateTask("tests_matmul", (16, 24, 8), LLVM)
    result = task.tune(lw.TuningOptions(num_measure_trials=4, strategy=Last, progress=False))
    assert {r.template["index"] for r in result.trials[1:]} == {len(task.config_space) - 1 - n for n in range(3)}
