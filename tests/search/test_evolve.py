"""Evolution proposes legal candidates that are new, finds good ones sooner than chance, and repeats itself by seed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fake_space import SIZES, Failing, FakeSpace, Knowing

from loopwright.search.cost_model import CostModel, Floats, make_model, relative_speed
from loopwright.search.cost_model.protocol import Tasks
from loopwright.search.sketch.population import Rows
from loopwright.search.sketch.space import SpaceError
from loopwright.search.strategies.best_of import best_of
from loopwright.search.strategies.evolution import _DRAWS, Evolution, EvolutionSettings


def search(model: CostModel, spaces: Sequence[FakeSpace], seed: int, trials: int = 64, batch: int = 16) -> float:
    """Return the best time found; measuring is exact and instantaneous."""
    evolution, best = Evolution(spaces, seed), np.inf
    for done in range(0, trials, batch):
        features, times = evolution.training_set()
        if done:
            model.fit(features, relative_speed(times))
        for proposal in evolution.propose(model, batch):
            time_s = spaces[proposal.space].times(np.array([proposal.row]))[0]
            evolution.observe(proposal.space, proposal.row, time_s)
            best = min(best, time_s)
    return best


@pytest.mark.slow(1.2)
def test_a_model_that_knows_finds_the_optimum_sooner_than_chance() -> None:
    """By each of six seeds: how soon trees are as good depends on the seed, and on how a machine rounds."""
    spaces = [FakeSpace("good", failing=0.1), FakeSpace("bad", slowdown=2.0)]
    best_s = spaces[0].best_s()
    guided = [search(Knowing(), spaces, seed) / best_s for seed in range(6)]
    by_chance = [search(make_model("random"), spaces, seed) / best_s for seed in range(8)]
    assert max(guided) < 1.05 < 1.5 < np.median(by_chance)


class Listed(FakeSpace):
    """A space whose rows can be counted, which mutants never come nearer to the optimum in."""

    sizes = np.array(SIZES)

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        return rows.copy()

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        return a.copy()


def test_what_is_next_to_the_best_is_proposed_where_chance_leaves_it_out() -> None:
    """A model that knows all times is climbed by, from what was drawn and measured."""
    found = {}
    for climbs in (0, 6):
        space = Listed()
        evolution = Evolution([space], 0, EvolutionSettings(population=32, climbs=climbs, climbers=4, thrift=0.0))
        first = evolution.propose(Knowing(), 16)
        found[climbs] = space.times(np.array([p.row for p in first])).min() / space.best_s()
        assert len({p.row for p in first}) == 16 and space.legal(np.array([p.row for p in first])).all()
    assert found[6] < 1.1 < found[0]


def fitted(evolution: Evolution, seed: int = 0) -> CostModel:
    model = make_model("trees", seed)
    features, times = evolution.training_set()
    model.fit(features, relative_speed(times))
    return model


def filled(spaces: Sequence[FakeSpace], seed: int = 0, count: int = 32) -> Evolution:
    evolution = Evolution(spaces, seed)
    for p in evolution.propose(make_model("random"), count):
        evolution.observe(p.space, p.row, spaces[p.space].times(np.array([p.row]))[0])
    return evolution


def test_proposals_are_legal_distinct_and_new() -> None:
    spaces = [FakeSpace("a"), FakeSpace("b", slowdown=1.2)]
    evolution, seen = filled(spaces), set()
    model = fitted(evolution)
    for _ in range(6):
        proposals = evolution.propose(model, 16)
        assert len(proposals) == 16
        for p in proposals:
            assert spaces[p.space].legal(np.array([p.row]))[0]
            assert p.schedule == spaces[p.space].schedule(np.array(p.row))
            assert p.schedule not in seen
            seen.add(p.schedule)


def test_every_space_is_tried_before_anything_is_known() -> None:
    spaces = [FakeSpace(name) for name in "abc"]
    counts = np.bincount([p.space for p in Evolution(spaces).propose(make_model("random"), 15)])
    assert counts.tolist() == [5, 5, 5]


def test_the_better_space_gets_more_of_the_trials() -> None:
    class Told(FakeSpace):
        """One more feature tells the space."""

        def features(self, rows: Rows) -> npt.NDArray[np.float32]:
            return np.c_[super().features(rows), np.full(len(rows), self.slowdown > 1)]

    spaces = [Told("good"), Told("bad", slowdown=20.0)]
    evolution = filled(spaces)
    proposals = evolution.propose(fitted(evolution), 16)
    assert sum(p.space == 0 for p in proposals) >= 13


class Counting(FakeSpace):
    """Notes the rounds in which its rows are bred."""

    round = 0

    def __init__(self, name: str, slowdown: float = 1.0) -> None:
        super().__init__(name, slowdown=slowdown)
        self.bred: set[int] = set()

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        self.bred.add(Counting.round)
        return super().mutate(rng, rows)


def test_spaces_known_to_be_slow_are_bred_in_turn() -> None:
    spaces = [Counting("good"), *(Counting(f"bad {n}", slowdown=30.0) for n in range(3))]
    Counting.round = 0
    evolution = filled(spaces, count=64)
    model = fitted(evolution)
    for Counting.round in range(1, 7):
        assert len(evolution.propose(model, 8)) == 8
    good, *bad = (len(space.bred - {0}) for space in spaces)
    assert good == 6 == sum(bad) and min(bad) < 6


def test_all_spaces_are_bred_while_little_is_known() -> None:
    spaces = [Counting("good"), Counting("bad", slowdown=30.0), Counting("worse", slowdown=60.0)]
    Counting.round = 0
    evolution = filled(spaces, count=48)
    Counting.round = 1
    evolution.propose(fitted(evolution), 8)
    assert all(1 in space.bred for space in spaces)


def test_fresh_rows_are_those_that_the_trials_so_far_tell() -> None:
    """So that a search that is resumed goes on as it would have."""
    spaces = [FakeSpace("one"), FakeSpace("other")]
    evolution = filled(spaces, count=150)
    again = Evolution(spaces)
    for space, row, time_s in evolution._measured:
        again.observe(space, row, time_s)
    again._seen = set(evolution._seen)
    for number in range(2):
        np.testing.assert_array_equal(again._fresh(number, 500), evolution._fresh(number, 500))
    assert [len(draws) for draws in evolution._drawn] == [_DRAWS, _DRAWS]


class Narrow(FakeSpace):
    """A space whose rows differ in the first two decisions alone: 64."""

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        return super().sample(rng, n) * (1, 1, 0, 0, 0, 0, 0)

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        return self.sample(rng, len(rows))


def test_slow_spaces_are_searched_to_their_ends_where_the_fast_one_is_used_up() -> None:
    spaces = [Narrow("good"), *(Narrow(f"bad {n}", slowdown=1e4) for n in range(3))]
    evolution = filled(spaces, count=80)
    model = fitted(evolution)
    batches = [evolution.propose(model, 40) for _ in range(4)]
    assert [len(batch) for batch in batches] == [40] * 4
    assert len(evolution.propose(model, 40)) >= 12  # of the 16 that are left, all but what chance misses


def test_candidates_are_kept_where_a_space_fails_as_it_is_drawn_from_once_more() -> None:
    class Failing(Narrow):
        """Fails from the second time on."""

        left = 1

        def sample(self, rng: np.random.Generator, n: int) -> Rows:
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("no more")
            return super().sample(rng, n)

    said: list[str] = []
    found = Evolution([Failing("narrow")], note=said.append).propose(make_model("random"), 100)
    assert len(found) > 50 and len(said) == 1 and "no more" in said[0]


def test_the_same_seed_and_history_give_the_same_proposals() -> None:
    spaces = [FakeSpace("a")]
    batches = []
    for seed in (3, 3, 4):
        evolution = filled(spaces, seed)
        batches.append([evolution.propose(fitted(evolution), 16), evolution.propose(fitted(evolution), 16)])
    assert batches[0] == batches[1] != batches[2]
    assert batches[0][0] != batches[0][1]


class TinySpace(FakeSpace):
    """Twelve rows, six of which say the same as the six others, two illegal."""

    n_decisions = 2

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        return rng.integers((6, 2), size=(n, 2))

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        return self.sample(rng, len(rows))

    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]:
        return rows[:, 0] > 0

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        return rows.astype(np.float32)

    def schedule(self, row: Rows) -> str:
        return f"n={row[0]}"

    def times(self, rows: Rows) -> Floats:
        return 1.0 + rows[:, 0]


@pytest.mark.parametrize("name", ["trees", "random"])
def test_a_small_space_is_used_up_and_no_schedule_comes_twice(name: str) -> None:
    space, schedules = TinySpace(), []
    evolution, model = Evolution([space]), make_model(name)
    evolution.skip("n=3")
    while proposals := evolution.propose(model, 2):
        for p in proposals:
            evolution.observe(p.space, p.row, float(1 + p.row[0]))
            schedules.append(p.schedule)
        features, times = evolution.training_set()
        model.fit(features, relative_speed(times))
    assert sorted(schedules) == ["n=1", "n=2", "n=4", "n=5"]


class NothingLegal(TinySpace):
    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]:
        return np.zeros(len(rows), bool)


class NothingToDecide(TinySpace):
    n_decisions = 0

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        return np.zeros((1, 0), np.int64)

    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]:
        return np.ones(len(rows), bool)

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        return np.ones((len(rows), FakeSpace().features(np.ones((1, 7), np.int64)).shape[1]), np.float32)

    def schedule(self, row: Rows) -> str:
        return "the only one"

    def times(self, rows: Rows) -> Floats:
        return np.ones(len(rows))


def test_a_sketch_without_decisions_is_one_candidate() -> None:
    evolution = filled([NothingToDecide(), FakeSpace("a")], count=16)
    proposals = evolution.propose(fitted(evolution), 16)
    assert len(proposals) == 16 and {p.space for p in proposals} == {1}
    _, times = evolution.training_set()
    assert len(times) == 16 and (times == 1.0).sum() == 1


def test_spaces_without_candidates_are_no_obstacle() -> None:
    model = make_model("random")
    assert Evolution([]).propose(model, 4) == []
    assert Evolution([NothingLegal()]).propose(model, 4) == []
    evolution = filled([NothingLegal(), FakeSpace("a")])
    proposals = evolution.propose(fitted(evolution), 8)
    assert len(proposals) == 8 and {p.space for p in proposals} == {1}


def test_when_everything_fails_candidates_are_drawn_at_random() -> None:
    space = FakeSpace("a", failing=1.0)
    evolution = filled([space])
    model = fitted(evolution)
    assert not model.ready
    assert len(evolution.propose(model, 16)) == 16


class Adopter(FakeSpace):
    """Takes over rows as they are, and remembers that it did."""

    def __init__(self, name: str, slowdown: float = 1.0) -> None:
        super().__init__(name, slowdown)
        self.adopted = 0

    def adopt(self, rng: np.random.Generator, other: FakeSpace, rows: Rows) -> Rows:
        assert other is not self and other.legal(rows).all()
        self.adopted += len(rows)
        return rows


def test_the_best_rows_of_a_sketch_are_tried_in_others() -> None:
    spaces = [Adopter("a"), Adopter("b", slowdown=1.1)]
    evolution = filled(spaces)
    proposals = evolution.propose(fitted(evolution), 16)
    assert len(proposals) == 16
    assert all(space.adopted > 0 for space in spaces)


@pytest.mark.parametrize("method", ["sample", "legal", "features", "schedule", "mutate", "crossover"])
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.few(1)
def test_a_space_that_raises_is_left_out_and_the_others_are_searched(method: str, after: int) -> None:
    notes: list[str] = []
    spaces = [FakeSpace("a"), Failing(method, after), FakeSpace("b")]
    evolution = Evolution(spaces, note=notes.append)
    model = make_model("trees", 0)
    for _ in range(5):
        proposals = evolution.propose(model, 16)
        assert len(proposals) == 16
        evolution.expected(model, proposals)
        for p in proposals:
            evolution.observe(p.space, p.row, spaces[p.space].times(np.array([p.row]))[0])
        features, times = evolution.training_set()
        model.fit(features, relative_speed(times))
    assert notes == ["sketch 'failing' is left out of the search: it raised KeyError: 'no such stage'"]
    assert all(p.space != 1 for p in proposals)


def test_when_every_space_raises_the_search_says_so() -> None:
    evolution = Evolution([Failing("sample"), Failing("features")])
    with pytest.raises(SpaceError, match=r"no sketch is left to search: sketch 'failing' .* KeyError"):
        for _ in range(2):
            for p in evolution.propose(make_model("random"), 4):
                evolution.observe(p.space, p.row, 1.0)


def test_a_row_out_of_range_is_no_candidate_and_costs_the_sketch_nothing() -> None:
    """Decisions come from record files, which may be anyone's."""

    class Choosy(FakeSpace):
        def schedule(self, row: Rows) -> str:
            return ",".join(str(np.arange(size)[d]) for size, d in zip(SIZES, row, strict=True))

    notes: list[str] = []
    evolution = Evolution([Choosy()], seed=0, note=notes.append)
    assert not evolution.means(0, np.array([0, 0, 0, 0, 0, 0, 99]), "anything")
    assert evolution.means(0, np.zeros(7, dtype=np.int64), "0,0,0,0,0,0,0")
    assert not notes and not evolution.spaces[0].left_out


class Long(FakeSpace):
    """A space whose rows take 1 or 9 seconds to be built, by their last decision."""

    def build_seconds(self, rows: Rows) -> Floats:
        return np.where(rows[:, -1] >= SIZES[-1] // 2, 9.0, 1.0)


class Alike:
    """A cost model that expects the same of all, but `more` of rows that take long, and has been wrong by `error`."""

    ready = True

    def __init__(self, more: float) -> None:
        self.more = more

    def fit(self, features: npt.NDArray[Any], scores: Floats, tasks: npt.NDArray[Any] | None = None) -> None:
        pass

    def predict(self, features: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        return np.where(features[:, len(SIZES) - 1] >= SIZES[-1] // 2, 1.0 + self.more, 1.0), np.zeros(len(features))


@pytest.mark.parametrize(("more", "longest"), [(0.0, 1.0), (0.02, 1.0), (0.2, 9.0)])
def test_what_takes_long_to_be_built_has_to_promise_more(more: float, longest: float) -> None:
    """Nine others are built meanwhile, the best of which is expected 1.5 of the model's errors above the mean."""
    space = Long("one")
    evolution, rng = Evolution([space]), np.random.default_rng(0)
    model = Alike(more)
    for round_ in range(3):
        proposals = evolution.propose(model, 16)
        if round_ == 2:  # what the first ones take is compared with nothing
            first = space.build_seconds(np.array([p.row for p in proposals[:10]]))
            assert (first == longest).all()
        evolution.expected(model, proposals)
        for p in proposals:  # of candidates that are as good as the best but for an error of 25%
            evolution.observe(p.space, p.row, float(2.0 ** (0.32 * rng.normal())))


def test_nothing_is_foregone_where_nobody_knows_what_takes_long() -> None:
    evolution, model = filled([Long("one"), FakeSpace("other")]), Alike(0.0)
    proposals = evolution.propose(model, 16)
    evolution.expected(model, proposals)
    for p in proposals:
        evolution.observe(p.space, p.row, 1.0)
    rows = np.array([p.row for p in proposals])
    assert (evolution._foregone(np.zeros(16, dtype=np.int64), rows) > 0).any()
    assert (evolution._foregone(np.arange(16) % 2, rows) == 0).all()


def test_the_best_of_several_is_expected_above_their_mean() -> None:
    drawn = np.random.default_rng(0).normal(size=(20_000, 9))
    for count in (1, 2, 3, 9):
        assert best_of(np.array([float(count)]))[0] == pytest.approx(drawn[:, :count].max(axis=1).mean(), abs=0.04)
    assert (np.diff(best_of(np.array([1.0, 1.5, 2.0, 2.5, 100.0]))) > 0).all()


class Estimated(FakeSpace):
    """A space with estimates, and features by which a model likes one of two twice as well as the other."""

    def __init__(self, name: str, unseen: bool, factor: float) -> None:
        super().__init__(name)
        self.unseen, self.factor = unseen, factor

    def estimate(self, rows: Rows) -> Floats:
        return self.factor * np.minimum(self.times(rows), 1.0)

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        speed, liked = -np.log2(np.minimum(self.times(rows), 1.0)), np.full(len(rows), self.name == "liked")
        return np.column_stack([super().features(rows), speed + liked]).astype(np.float32)


class Ground:
    """A model that ships, and likes one space better, whatever the rows."""

    ready, learned = True, False

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        pass

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        return features[:, -1].astype(float), np.zeros(len(features))


@pytest.mark.parametrize(("unseen", "factor", "liked"), [(False, 4.0, True), (True, 4.0, False), (True, 0.25, True)])
def test_spaces_like_none_that_the_model_knows_go_by_their_estimates(unseen: bool, factor: float, liked: bool) -> None:
    spaces = [Estimated("known", False, 1.0), Estimated("liked", unseen, factor)]
    found = Evolution(spaces, 0).propose(Ground(), 16)
    assert (sum(each.space == 1 for each in found) > 8) == liked


def test_rows_of_an_unknown_space_alone_count_as_they_do_among_others() -> None:
    """As where candidates are climbed from that are all of such a space."""
    known, unknown = spaces = [Estimated("known", False, 1.0), Estimated("liked", True, 1.0)]
    search, rng = Evolution(spaces, 0), np.random.default_rng(0)
    rows = [space.sample(rng, 8) for space in (known, unknown)]
    _, (among_others, _) = search._predict(Ground(), rows)
    _, (alone, _) = search._predict(Ground(), [rows[0][:0], rows[1]])
    np.testing.assert_array_equal(alone, among_others)
