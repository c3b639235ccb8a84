"""Addresses as text: whatever form they take, their value is that of the operations."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.backends.c_family import index_arithmetic as index
from loopwright.backends.c_family.expression import EQUALITY, RELATION, Expr

NAMES = {"x": 3, "y": -7, "tx": 31}
OPERATIONS = {"+": index.add, "-": index.subtract, "*": index.multiply}
FUNCTIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}


def leaf(value: str | int) -> tuple[Expr, int]:
    return (Expr(value), NAMES[value]) if isinstance(value, str) else (index.literal(value), value)


def joined(symbol: str, a: tuple[Expr, int], b: tuple[Expr, int]) -> tuple[Expr, int]:
    return OPERATIONS[symbol](a[0], b[0]), FUNCTIONS[symbol](a[1], b[1])


leaves = st.builds(leaf, st.sampled_from(sorted(NAMES)) | st.integers(-9, 9))
trees = st.recursive(leaves, lambda below: st.builds(joined, st.sampled_from(sorted(OPERATIONS)), below, below))


@given(trees)
def test_values(tree: tuple[Expr, int]) -> None:
    expression, value = tree
    assert eval(expression.text, {}, NAMES) == value
    if expression.number is not None:
        assert expression.number == value
    if expression.negates is not None:
        assert eval(expression.negates.text, {}, NAMES) == -value
    if expression.plus is not None:
        base, constant = expression.plus
        assert eval(base.text, {}, NAMES) + constant == value


@given(trees, trees, st.sampled_from(sorted(SIGNS)))
def test_comparisons(a: tuple[Expr, int], b: tuple[Expr, int], sign: str) -> None:
    precedence = EQUALITY if sign in ("==", "!=") else RELATION
    text = index.compare(sign, precedence, a[0], b[0]).text
    assert eval(text, {}, NAMES) == SIGNS[sign](a[1], b[1])


X, Y = Expr("x"), Expr("y")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (index.add(index.literal(-1), X), "x - 1"),
        (index.add(index.literal(7), index.multiply(X, index.literal(-1))), "7 - x"),
        (index.add(index.add(X, index.literal(3)), Y), "x + y + 3"),
        (index.add(X, index.multiply(Y, index.literal(-4))), "x - y * 4"),
        (index.subtract(X, index.add(Y, index.literal(2))), "x - y - 2"),
        (index.multiply(index.literal(4), index.add(X, Y)), "(x + y) * 4"),
        (index.compare(">=", RELATION, index.add(X, index.literal(-1)), index.literal(0)), "x >= 1"),
        (
            index.compare(
                ">=",
                RELATION,
                index.add(index.literal(7), index.multiply(X, index.literal(-2))),
                index.literal(0),
            ),
            "x * 2 <= 7",
        ),
    ],
)
def test_forms(expression: Expr, text: str) -> None:
    assert expression.text == text
