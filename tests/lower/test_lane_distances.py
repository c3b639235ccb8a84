"""Distances between lanes are those of their positions, wherever the loops around are."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from loopwright.dialects.index import IndexExpr, axis, constant
from loopwright.passes.analysis.lane_distances import lane_distances

LOOPS = st.sampled_from([axis("i"), axis("j")])


def _grown(parts: st.SearchStrategy[IndexExpr]) -> st.SearchStrategy[IndexExpr]:
    return st.one_of(
        st.builds(lambda a, b: a + b, parts, parts),
        st.builds(lambda a, n: a * n, parts, st.integers(1, 12)),
        st.builds(lambda a, n: a // n, parts, st.integers(1, 12)),
        st.builds(lambda a, n: a % n, parts, st.integers(1, 12)),
    )


@given(st.recursive(LOOPS, _grown, max_leaves=5), st.sampled_from([1, 4, 6]), st.booleans())
def test_they_are_the_same_in_all_vectors(position: IndexExpr, lanes: int, from_zero: bool) -> None:
    first = constant(0) if from_zero else axis("j") * lanes
    distances = lane_distances(position, "j", first, lanes)
    if distances is None:
        return
    for i, j in product(range(9), range(7)):
        start = first.evaluate({"i": i, "j": j})
        found = [position.evaluate({"i": i, "j": start + lane}) for lane in range(lanes)]
        assert [at - found[0] for at in found] == [*distances]


def test_pixels_that_are_repeated_are_near_in_vectors_that_begin_with_one() -> None:
    i, j = axis("i"), axis("j")
    assert lane_distances(i * 40 + j // 2, "j", j * 4, 4) == (0, 0, 1, 1)
    assert lane_distances(i * 40 + j // 3, "j", j * 4, 4) is None
    assert lane_distances(i * 40 + j // 3, "j", constant(0), 4) == (0, 0, 0, 1)
