"""Tables of results in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def table_lines(heading: str, rows: Iterable[str]) -> list[str]:
    """The lines of a table: its heading, the line below it, and its rows."""
    return [heading, "|" + "---|" * (heading.count("|") - 1), *rows]
