"""Intervals, boxes and predicates of blocks, held to every value there is."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from xdsl.ir import Block, Region

from loopwright.dialects.attributes import Axis
from loopwright.dialects.index import IndexExpr, Ranges, axis, constant
from loopwright.dialects.index_text import parse_index
from loopwright.dialects.loop import BlockOp
from loopwright.dialects.te import YieldOp
from loopwright.passes.analysis.domain import conditions_on_iterators
from loopwright.passes.analysis.regions import Interval, clip_conditions, covers, interval_of, region_of, union

OUTER = {"o": (0, 4), "p": (0, 2)}
INNER = {"i": (0, 3), "j": (0, 2)}


def points(ranges: Ranges) -> list[dict[str, int]]:
    """Every point of a box."""
    spans = [range(lo, hi + 1) for lo, hi in ranges.values()]
    return [dict(zip(ranges, values, strict=True)) for values in product(*spans)]


def holds(part: Interval, value: int, at: dict[str, int]) -> bool:
    low = part.low.evaluate(at)
    return low <= value < low + part.extent


def _grow(children: st.SearchStrategy[IndexExpr]) -> st.SearchStrategy[IndexExpr]:
    return st.one_of(
        st.builds(lambda x, y: x + y, children, children),
        st.builds(lambda x, k: x * k, children, st.integers(-5, 8)),
        st.builds(lambda x, k: x // k, children, st.integers(2, 9)),
        st.builds(lambda x, k: x % k, children, st.integers(2, 9)),
    )


leaves = st.one_of(st.sampled_from((*OUTER, *INNER)).map(axis), st.integers(-9, 9).map(constant))
exprs = st.recursive(leaves, _grow, max_leaves=7)
intervals = st.builds(
    lambda k, c, q, n: Interval(axis("o") * k + (axis("p") + c) // q, n),
    st.integers(-3, 3),
    st.integers(-6, 6),
    st.integers(1, 3),
    st.integers(1, 7),
)


@given(exprs)
def test_an_interval_holds_every_value(x: IndexExpr) -> None:
    part = interval_of(x, INNER)
    assert part.low.axes() <= OUTER.keys()
    for at in points(OUTER):
        assert all(holds(part, x.evaluate({**at, **t}), at) for t in points(INNER))


@given(st.lists(st.tuples(st.sampled_from((*OUTER, *INNER)), st.integers(-6, 6)), max_size=6), st.integers(-9, 9))
def test_an_interval_of_a_linear_expression_is_tight(terms: list[tuple[str, int]], const: int) -> None:
    x = constant(const)
    for name, c in terms:
        x = x + axis(name) * c
    part = interval_of(x, INNER)
    for at in points(OUTER):
        values = [x.evaluate({**at, **t}) for t in points(INNER)]
        assert (min(values), max(values)) == (part.low.evaluate(at), part.low.evaluate(at) + part.extent - 1)


@pytest.mark.parametrize(
    ("text", "low", "extent"),
    [
        ("o * 2 + i", "o * 2", 4),
        ("o - i", "o - 3", 4),
        ("(o * 4 + i) floordiv 2", "o * 2", 2),
        ("(o * 4 + i) mod 8", "(o * 4) mod 8", 4),  # tiles of 4 never straddle a multiple of 8
        ("(o * 4 + i) floordiv 8", "(o * 4) floordiv 8", 1),
        ("(o * 4 + i) mod 4", "0", 4),
        ("(o * 4 + i + 1) floordiv 8", "(o * 4 + 1) floordiv 8", 2),
        ("(o * 16 + i) floordiv 7", "(o * 16) floordiv 7", 2),  # the second row begins anywhere in the tile
        ("(o * 16 + i) mod 7", "0", 7),
        ("(i * 2 + j) floordiv 9", "0", 1),
        ("(i + 5) mod 9", "5", 4),
        ("o * 3 - (i floordiv 2)", "o * 3 - 1", 2),
        ("(o mod 2) * 4 + j", "(o mod 2) * 4", 3),
    ],
)
def test_intervals_of_split_and_fused_axes(text: str, low: str, extent: int) -> None:
    assert interval_of(parse_index(text), INNER) == Interval(parse_index(low), extent)


@given(intervals, intervals)
def test_a_union_holds_both(a: Interval, b: Interval) -> None:
    both = union(a, b, OUTER)
    assert both is not None
    for at in points(OUTER):
        for part in (a, b):
            start = part.low.evaluate(at)
            assert holds(both, start, at) and holds(both, start + part.extent - 1, at)


def test_a_union_of_shifted_tiles_is_tight() -> None:
    a, b = Interval(axis("o") * 4, 4), Interval(axis("o") * 4 + 3, 6)
    assert union(a, b, OUTER) == union(b, a, OUTER) == Interval(axis("o") * 4, 9)
    assert union(a, a, OUTER) == a
    assert union(Interval(axis("o"), 1), Interval(axis("p"), 1), OUTER) == Interval(axis("o") - 4, 7)
    assert union(Interval(axis("o"), 1), Interval(axis("unknown"), 1), OUTER) is None


@given(st.lists(st.lists(exprs, min_size=2, max_size=2), min_size=1, max_size=3))
def test_a_region_holds_what_is_accessed_inside_of_the_buffer(accesses: list[list[IndexExpr]]) -> None:
    shape = (9, 6)
    box = region_of(accesses, [INNER] * len(accesses), OUTER, shape)
    assert all(1 <= part.extent <= extent for part, extent in zip(box, shape, strict=True))
    for at in points(OUTER):
        for t in points(INNER):
            for indices in accesses:
                values = [e.evaluate({**at, **t}) for e in indices]
                for part, value, extent in zip(box, values, shape, strict=True):
                    assert holds(part, value, at) or not 0 <= value < extent


def test_regions_of_readers_with_loops_of_their_own() -> None:
    first, second = [axis("o") * 2 + axis("i")], [axis("o") * 2 + axis("j") + 3]
    assert region_of([first, second], [{"i": (0, 3)}, {"j": (0, 2)}], OUTER, (40,)) == [Interval(axis("o") * 2, 6)]
    assert region_of([first, second], [{"i": (0, 3)}, {"j": (0, 2)}], OUTER, (6,)) == [Interval(constant(0), 6)]
    outside = [axis("i") - 1]
    assert region_of([outside], [{"i": (0, 3)}], {}, (7,)) == [Interval(constant(0), 3)]
    assert region_of([[axis("i") + 5]], [{"i": (0, 3)}], {}, (7,)) == [Interval(constant(5), 2)]


@given(intervals, intervals, st.integers(-2, 3), st.booleans(), st.integers(1, 12))
def test_what_covers_holds_all_that_is_inside_of_the_buffer(
    a: Interval, b: Interval, shift: int, near: bool, size: int
) -> None:
    b = Interval(a.low + shift, b.extent) if near else b
    if not covers(a, b, size, OUTER):
        return
    event("covers")
    for at in points(OUTER):
        start = b.low.evaluate(at)
        assert all(holds(a, v, at) for v in range(start, start + b.extent) if 0 <= v < size)


def test_what_covers() -> None:
    o = axis("o")
    assert covers(Interval(o * 2, 4), Interval(o * 2 + 1, 3), 99, OUTER)
    assert not covers(Interval(o * 2, 4), Interval(o * 2 + 1, 4), 99, OUTER)
    assert covers(Interval(constant(0), 7), Interval(o * 5 - 2, 30), 7, OUTER)
    assert not covers(Interval(o, 7), Interval(constant(0), 2), 9, OUTER)


@given(intervals, st.integers(1, 12))
def test_clip_conditions_keep_exactly_what_is_inside(part: Interval, size: int) -> None:
    conditions = clip_conditions(part.low, "t", part.extent, size, OUTER)
    needed = [0, 0]
    for at in points(OUTER):
        for t in range(part.extent):
            value = part.low.evaluate(at) + t
            kept = all(c.evaluate({**at, "t": t}) >= 0 for c in conditions)
            assert kept == (0 <= value < size)
            needed[0] |= value < 0
            needed[1] |= value >= size
    assert len(conditions) == sum(needed) or not part.low.is_linear_in("p")


def block_of(axes: Sequence[tuple[str, int]], bindings: Sequence[str], where: Sequence[str]) -> BlockOp:
    """A block that writes nothing."""
    body = Region(Block([YieldOp.create(operands=[])]))
    parsed = [parse_index(b) for b in bindings]
    return BlockOp("b", [Axis(*a) for a in axes], parsed, [], [], body, where=[parse_index(w) for w in where])


@pytest.mark.parametrize(
    ("axes", "bindings", "where", "found"),
    [
        ([("x", 5)], ["a * 3 + b"], ["4 - a * 3 - b"], []),
        ([("x", 5)], ["a * 3 + b"], ["3 - a * 3 - b"], ["3 - x"]),
        ([("x", 7), ("y", 7)], ["(a * 16 + b) floordiv 7", "(a * 16 + b) mod 7"], ["48 - a * 16 - b"], []),
        ([("x", 7), ("y", 7)], ["a * 2 + b floordiv 7", "b mod 7"], ["48 - a * 14 - b"], []),
        ([("x", 4), ("y", 3)], ["p floordiv 4", "p mod 4"], ["2 - p mod 4"], []),
        ([("u", 2), ("v", 2)], ["a", "b"], ["2 - a * 2 - b"], ["2 - u * 2 - v"]),
        ([("x", 9)], ["a + b - 1"], ["a + b - 1", "9 - a - b"], []),
        ([("x", 9)], ["a * 2"], ["3 - a"], ["6 - x"]),
        ([("x", 9)], ["a"], ["3 - b"], None),
        ([("x", 9), ("y", 9)], ["a", "a"], ["8 - a"], []),
        ([("x", 2), ("y", 3), ("z", 5)], ["p floordiv 15", "p floordiv 5 mod 3", "p mod 5"], ["29 - p"], []),
        ([("x", 5)], ["a"], [], []),
    ],
)
def test_predicates_on_iterators(
    axes: list[tuple[str, int]], bindings: list[str], where: list[str], found: list[str] | None
) -> None:
    got = conditions_on_iterators(block_of(axes, bindings, where))
    assert got == (None if found is None else [parse_index(f) for f in found])
