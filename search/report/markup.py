"""Text from records as HTML and SVG text."""

from __future__ import annotations

from html import escape

from ...dialects.names import printable


def as_text(text: str) -> str:
    """The text as content of an element or an attribute: markup is escaped, and so is what neither format can hold."""
    return escape(printable(text))
