"""Numbers that decide what is searched, scheduled or rewritten say what they count, and where they are from."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("search", "passes", "graph", "templates")
NAMELESS = ("Not measured", "No measurement is kept", "Nobody measured")
"""Sentences that leave open why a number is what it is: one that is a choice says so, and what it trades."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_number_of_a_module_says_what_it_is(folder: str) -> None:
    numbers = _numbers(folder)
    assert numbers
    assert not [where for where, text in numbers if not text], "a docstring below it: unit, and source or measurement"


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_nobody_measured_is_called_a_choice(folder: str) -> None:
    vague = [where for where, text in _numbers(folder) if any(each in text for each in NAMELESS)]
    assert not vague, "say 'A choice: ' and what larger and smaller ones would cost"


@cache
def _numbers(folder: str) -> list[tuple[str, str]]:
    """Each number, or list of numbers, that a module names in capitals, and its docstring on one line."""
    return list(_found(folder))


def _found(folder: str) -> Iterator[tuple[str, str]]:
    for file in sorted((ROOT / folder).rglob("*.py")):
        body = ast.parse(file.read_text()).body
        for statement, behind in zip(body, [*body[1:], None], strict=True):
            name = _named(statement)
            if name and isinstance(statement, ast.Assign | ast.AnnAssign) and _is_number(statement.value):
                yield f"{file.relative_to(ROOT)}: {name}", _text(behind)


def _named(statement: ast.stmt) -> str:
    """The name that a statement defines, where it is one of a constant."""
    target: ast.expr | None = None
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    return target.id if isinstance(target, ast.Name) and target.id.isupper() else ""


def _is_number(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant(value=int() | float() as number):
            return not isinstance(number, bool)
        case ast.Tuple(elts=elements):
            return any(map(_is_number, elements))
        case ast.Dict(values=elements):
            return any(map(_is_number, elements))
        case ast.UnaryOp(operand=inner):
            return _is_number(inner)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) or _is_number(right)
    return False


def _text(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return " ".join(str(statement.value.value).split())
    return ""
