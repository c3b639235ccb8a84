"""Candidates whose blocks have room: limits tell what is planned, the steps what is kept in shared memory."""

import numpy as np
import pytest
from xdsl.utils.exceptions import PassFailedException

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.search.cost_model import make_model
from loopwright.search.sketch.likely import Compared, best_with_room
from loopwright.search.sketch.sketch import Sketch
from loopwright.search.sketch.space import Rows
from loopwright.search.strategies.evolution import Evolution
from loopwright.search.strategies.random_search import RandomSearch

TARGET = "cuda model=h200"


def layer(n: int, c: int, size: int, out: int, window: tuple[int, int], stride: int) -> lw.SearchTask:
    """A convolution with "same" padding."""
    data, kernel = te.placeholder((n, c, size, size), name="data"), te.placeholder((out, c, *window), name="kernel")
    padded = (window[0] // 2, window[1] // 2)
    return lw.SearchTask([data, kernel, topi.nn.conv2d_nchw(data, kernel, stride, padded, 1)], target=TARGET)


CASES = {
    "tiles behind the last row": (lambda: layer(1, 32, 28, 128, (9, 1), 3), "yy_xx"),
    "parts of filters": (lambda: layer(2, 96, 112, 128, (9, 9), 1), "winograd_p"),
}


def space(name: str) -> tuple[lw.SearchTask, Sketch]:
    make, sketch = CASES[name]
    task = make()
    return task, next(each for each in task.sketches if each.name == sketch)


def drawn(sketch: Sketch, count: int) -> Rows:
    rows = sketch.sample(np.random.default_rng(101), count)
    kept = np.exp2(sketch.features(rows)[:, sketch.feature_names.index("program.shared_bytes")])
    return rows[np.argsort(-kept, kind="stable")]  # those that keep most first


@pytest.mark.parametrize("name", CASES)
def test_what_has_room_is_what_can_be_lowered(name: str) -> None:
    task, sketch = space(name)
    for row in drawn(sketch, 3000)[:4]:
        schedule = sketch.schedule(row)
        assert sketch.legal(row[None])[0]
        if sketch.has_room(row):
            lower_to_kernel(task.schedule_module(schedule))
        else:
            with pytest.raises(PassFailedException, match="bytes of shared memory, the target has 232448"):
                lower_to_kernel(task.schedule_module(schedule))
    assert sketch.has_room(row) == (name == "parts of filters")  # whose tiles of all candidates at once tell less


@pytest.mark.parametrize("strategy", [RandomSearch, Evolution])
def test_searches_propose_what_has_room(strategy: type[RandomSearch | Evolution]) -> None:
    """A space of nothing but candidates without room, and of some that have."""
    _, sketch = space("tiles behind the last row")
    rows = drawn(sketch, 3000)

    class Some:
        name, n_decisions = sketch.name, sketch.n_decisions
        mutate = crossover = lambda self, rng, rows, others=None: rows
        features, legal, schedule, has_room = sketch.features, sketch.legal, sketch.schedule, sketch.has_room

        def sample(self, rng: np.random.Generator, n: int) -> Rows:
            return np.concatenate([rows[:6], rows[-6:]])

    proposals = strategy([Some()], 1).propose(make_model("random"), 12)
    assert {proposal.row for proposal in proposals} == {tuple(row) for row in rows[-6:].tolist()}


def test_untuned_choices_are_among_what_has_room() -> None:
    _, sketch = space("tiles behind the last row")
    rows = drawn(sketch, 3000)
    compared = Compared(sketch, rows[[0, 1, -2, -1]], np.array([4.0, 3.0, 1.0, 2.0]), 1.0)
    assert best_with_room([compared])[1].tolist() == rows[-1].tolist()
    without = Compared(sketch, rows[:2], np.array([3.0, 4.0]), 1.0)
    assert best_with_room([without])[1].tolist() == rows[1].tolist()


def test_other_targets_have_room_for_all() -> None:
    x = te.placeholder((64, 64), name="x")
    sketch = lw.SearchTask([x, te.compute((64, 64), lambda i, j: x[i, j] + 1.0, name="y")], target="llvm").sketches[0]
    assert sketch.has_room(sketch.default)
