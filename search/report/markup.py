"""Text from records as HTML and SVG text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ...dialects.names import printable


def as_text(text: str) -> str:
    """The text as content of an element or an attribute: markup is escaped, and so is what neither format can hold."""
    return escape(printable(text))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML."""
    head = "".join(f"<th>{h}</th>" for h in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<table class="wide"><tr>{head}</tr>{body}</table>'
