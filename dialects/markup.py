"""Text of programs and records as HTML, for pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from html import escape

from .names import printable


def as_text(text: str) -> str:
    """The text as content of an element or an attribute: markup is escaped, and so is what neither format can hold."""
    return escape(printable(text))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: AbstractSet[int] = frozenset()) -> str:
    """A table of cells that are HTML, which scrolls where it is too wide; columns of `numbers` are aligned right."""
    head = "".join(f"<th{_style(n, numbers)}>{h}</th>" for n, h in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td{_style(n, numbers)}>{cell}</td>" for n, cell in enumerate(row)) + "</tr>" for row in rows
    )
    top = f"<tr>{head}</tr>" if head else ""
    return f'<div class="scroll"><table class="wide">{top}{body}</table></div>'


def _style(column: int, numbers: AbstractSet[int]) -> str:
    return ' class="number"' if column in numbers else ""


def folded(title: str, content: str) -> str:
    """HTML that is shown when its title, a plain text, is opened."""
    return f"<details><summary>{as_text(title)}</summary>{content}</details>"
