"""Index expressions mean what integers mean, have one form, and print as they parse."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.dialects.index import Div, IndexExpr, Lookup, Mod, axis, constant, flatten, linear
from loopwright.dialects.index_text import parse_index, python_source

NAMES = ("a", "b", "c")
EXTENTS = {"a": 4, "b": 3, "c": 7}
RANGES = {name: (0, extent - 1) for name, extent in EXTENTS.items()}
POINTS = [dict(zip(NAMES, values, strict=True)) for values in product(*(range(EXTENTS[n]) for n in NAMES))]


def _combine(children: st.SearchStrategy[IndexExpr]) -> st.SearchStrategy[IndexExpr]:
    divisor = st.integers(1, 9)
    return st.one_of(
        st.builds(lambda x, y: x + y, children, children),
        st.builds(lambda x, y: x - y, children, children),
        st.builds(lambda x, k: x * k, children, st.integers(-8, 8)),
        st.builds(lambda x, k: x // k, children, divisor),
        st.builds(lambda x, k: x % k, children, divisor),
    )


leaves = st.one_of(st.sampled_from(NAMES).map(axis), st.integers(-20, 20).map(constant))
exprs = st.recursive(leaves, _combine, max_leaves=8)
points = st.fixed_dictionaries({n: st.integers(-30, 30) for n in NAMES})


@given(exprs, exprs, points, st.integers(-9, 9), st.integers(1, 12))
def test_arithmetic_is_that_of_integers(x: IndexExpr, y: IndexExpr, at: dict[str, int], k: int, d: int) -> None:
    u, v = x.evaluate(at), y.evaluate(at)
    assert (x + y).evaluate(at) == u + v
    assert (x - y).evaluate(at) == u - v
    assert (-x).evaluate(at) == -u
    assert (x + k).evaluate(at) == (k + x).evaluate(at) == u + k
    assert (x - k).evaluate(at) == u - k
    assert (k - x).evaluate(at) == k - u
    assert (x * k).evaluate(at) == (k * x).evaluate(at) == u * k
    assert (x // d).evaluate(at) == u // d
    assert (x % d).evaluate(at) == u % d


@given(exprs, exprs, exprs)
def test_sums_have_one_form(x: IndexExpr, y: IndexExpr, z: IndexExpr) -> None:
    assert x + y == y + x
    assert hash(x + y) == hash(y + x)
    assert x - x == constant(0)
    assert x * 2 == x + x
    assert (x + y) + z == x + (y + z) or any(not isinstance(a, str) for e in (x, y, z) for a, _ in e.terms)


def test_remainders_of_small_sums_are_the_sums() -> None:
    a = axis("a")
    assert (a % 3 + 2) % 5 == a % 3 + 2
    assert (a % 3 + 3) % 5 == IndexExpr(((Mod(a % 3 + 3, 5), 1),), 0)
    assert a + (a % 3 + 2) % 5 == a + a % 3 + 2
    assert a + a % 7 // 5 % 5 == a + a % 7 // 5


@given(exprs, st.integers(2, 9), st.integers(-3, 3))
def test_quotient_and_remainder_join_again(x: IndexExpr, d: int, k: int) -> None:
    assert x // d * d + x % d == x
    assert (x + k * d) % d == x % d
    assert (x + k * d) // d == x // d + k
    assert (x % d) % d == x % d
    assert x // 1 == x and x % 1 == constant(0)


@given(st.sampled_from(NAMES), st.integers(2, 6), st.integers(2, 6))
def test_digits_join_again(name: str, low: int, high: int) -> None:
    p = axis(name) * 5 + axis("q")
    assert p // low % high * low + p % low == p % (low * high)
    assert (p % (low * high)) % low == p % low


@given(exprs)
def test_text_parses_back(x: IndexExpr) -> None:
    """Also the order of terms, which steps pass on: a schedule gives the same IR on a program that was printed."""
    parsed = parse_index(str(x))
    assert parsed == x
    assert _in_order(parsed) == _in_order(x)


def _in_order(x: IndexExpr) -> list[object]:
    return [(a if isinstance(a, str | Lookup) else (type(a), _in_order(a.expr), a.divisor), c) for a, c in x.terms]


@given(exprs, points)
def test_python_text_evaluates(x: IndexExpr, at: dict[str, int]) -> None:
    assert eval(python_source(x), {}, dict(at)) == x.evaluate(at)
    renamed = {f"v_{n}": value for n, value in at.items()}
    assert eval(python_source(x, lambda n: f"v_{n}"), {}, renamed) == x.evaluate(at)


@given(exprs)
def test_bounds_hold_every_value(x: IndexExpr) -> None:
    lowest, highest = x.bounds(RANGES)
    values = [x.evaluate(p) for p in POINTS]
    assert lowest <= min(values) and max(values) <= highest


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(-5, 5))), st.integers(-5, 5))
def test_bounds_of_linear_expressions_are_reached(terms: list[tuple[str, int]], const: int) -> None:
    x = linear(terms, const)
    values = [x.evaluate(p) for p in POINTS]
    assert x.bounds(RANGES) == (min(values), max(values))


@given(exprs)
def test_simplified_means_the_same_within_the_ranges(x: IndexExpr) -> None:
    simple = x.simplify(RANGES)
    assert all(simple.evaluate(p) == x.evaluate(p) for p in POINTS)
    assert simple.axes() <= x.axes()


@given(exprs, st.sampled_from(NAMES))
def test_simplified_drops_axes_of_one_value(x: IndexExpr, name: str) -> None:
    ranges = {**RANGES, name: (0, 0)}
    simple = x.simplify(ranges)
    assert name not in simple.axes()
    assert all(simple.evaluate(p) == x.evaluate(p) for p in POINTS if p[name] == 0)


@given(exprs, exprs, exprs, points)
def test_substitution_is_composition(x: IndexExpr, y: IndexExpr, z: IndexExpr, at: dict[str, int]) -> None:
    replaced = x.substitute({"a": y, "b": z})
    assert replaced.evaluate(at) == x.evaluate({**at, "a": y.evaluate(at), "b": z.evaluate(at)})
    assert x.substitute({}) is x
    assert x.substitute({"elsewhere": y}) is x


@given(exprs)
def test_axes_are_what_the_value_depends_on(x: IndexExpr) -> None:
    for name in set(NAMES) - x.axes():
        assert len({x.evaluate({**POINTS[0], name: v}) for v in range(-5, 6)}) == 1


@given(st.lists(exprs, min_size=3, max_size=3), points)
def test_flatten_is_the_offset(indices: list[IndexExpr], at: dict[str, int]) -> None:
    assert flatten(indices, (35, 7, 1)).evaluate(at) == sum(
        e.evaluate(at) * stride for e, stride in zip(indices, (35, 7, 1), strict=True)
    )


def test_questions() -> None:
    x = axis("a") * 4 + axis("b") + (axis("c") + 1) // 3
    assert x.coefficient("a") == 4 and x.coefficient("c") == 0
    assert x.is_linear_in("a") and not x.is_linear_in("c")
    assert axis("a").as_axis() == "a"
    assert (axis("a") + 1).as_axis() is None and (axis("a") * 2).as_axis() is None
    assert constant(3).is_constant and not x.is_constant
    assert x.axes() == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("i", "i"),
        ("0", "0"),
        ("-i", "0 - i"),
        ("-3 - i", "0 - i - 3"),
        ("4 - i", "4 - i"),
        ("i * 16 + j - 1", "i * 16 + j - 1"),
        ("2 * (i + 3) // 2", "i + 3"),
        ("(i*14 + j) floordiv 7", "i * 2 + j floordiv 7"),
        ("(i * 14 + j) mod 7", "j mod 7"),
        ("((i floordiv 3) floordiv 5)", "i floordiv 15"),
        ("(i mod 12) mod 4", "i mod 4"),
        ("(i mod 4) mod 6", "i mod 4"),
        ("(i mod 4 + 2) floordiv 6", "0"),
        ("(i mod 12) floordiv 4", "(i floordiv 4) mod 3"),
        ("(i * 6 + 5) // 4", "(i * 3) floordiv 2 + 1"),
        ("i // 2 * 2 + i % 2", "i"),
        ("(i floordiv 2) mod 3 * 2 + i mod 2", "i mod 6"),
    ],
)
def test_canonical_text(text: str, printed: str) -> None:
    assert str(parse_index(text)) == printed


def test_fused_then_split_axes_come_apart() -> None:
    p = axis("o") * 14 + axis("t")
    ranges = {"o": (0, 6), "t": (0, 13)}
    assert str((p // 7).simplify(ranges)) == "o * 2 + t floordiv 7"
    whole = axis("o") * 7 + axis("t")
    assert (whole // 7).simplify({"o": (0, 6), "t": (0, 6)}) == axis("o")
    assert (whole % 7).simplify({"o": (0, 6), "t": (0, 6)}) == axis("t")
    assert ((axis("o") * 4 + axis("t")) % 8).simplify({"o": (0, 9), "t": (0, 3)}) == axis("o") % 2 * 4 + axis("t")
    shared = axis("o") * 16 + axis("t")  # 8 divides both
    ranges = {"o": (0, 9), "t": (0, 3)}
    assert str((shared % 72).simplify(ranges)) == "(o * 2) mod 9 * 8 + t"
    assert str((shared // 72).simplify(ranges)) == "(o * 2) floordiv 9"


sizes = st.integers(1, 16)


@given(sizes, sizes, sizes, st.sampled_from([1, 2, 3]), st.integers(1, 72), st.integers(1, 12), st.integers(0, 12))
def test_steps_of_an_axis_stay_when_another_is_known(
    a: int, b: int, c: int, gap: int, d: int, e: int, first: int
) -> None:
    """An expression that grows by a step along one axis for all values of the others does so for each of them."""
    flat = axis("a") * (b * c * gap) + axis("b") * c + axis("c") + first
    ranges = {"a": (0, a - 1), "b": (0, b - 1), "c": (0, c - 1)}
    for whole in (flat // d * 977 + flat % d, flat // (d * e) * 977 + flat // d % e * 91 + flat % d):
        simple = whole.simplify(ranges)
        if not simple.is_linear_in("c"):
            continue
        for name, extent in (("a", a), ("b", b)):
            for value in range(extent):
                known = whole.substitute({name: constant(value)}).simplify({**ranges, name: (value, value)})
                assert known.is_linear_in("c") and known.coefficient("c") == simple.coefficient("c")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("i * j", "index expressions multiply by constants only"),
        ("i floordiv 0", "floordiv and mod take a positive constant"),
        ("i mod j", "floordiv and mod take a positive constant"),
        ("(i + 1", r"expected '\)'"),
        ("i +", "expected an axis name, an integer or '\\('"),
        ("i 3", "unexpected '3'"),
        ("i & 3", "unexpected '& 3'"),
    ],
)
def test_what_does_not_parse_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_index(text)


def test_atoms_differ_by_kind_and_divisor() -> None:
    i = axis("i")
    assert Div(i, 3) == Div(i, 3) != Div(i, 4)
    assert Div(i, 3) != Mod(i, 3)
    assert hash(Mod(i, 3)) == hash(Mod(axis("i"), 3))
