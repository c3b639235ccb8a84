"""Parts of an explanation: a title, a note, a table and a listing, as plain text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...dialects.markup import as_text as escaped
from ...dialects.markup import folded, table
from ...dialects.shown_text import printable

WIDTH = 110
"""Columns of the text that notes are wrapped to."""


@dataclass(frozen=True)
class Section:
    """A part with its title, a note, rows of cells under heads, and lines of a listing, folded under its own title.

    `numbers` are the columns that are aligned to the right. The text shows the first `shown` lines of the listing.
    """

    title: str
    note: str = ""
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: frozenset[int] = frozenset()
    listing: Sequence[str] = ()
    listing_title: str = ""
    shown: int = 0
    after: Sequence[str] = field(default=())
    """Sentences below the table."""


def as_text(sections: Sequence[Section]) -> str:
    """The sections as plain text."""
    return "\n\n".join(printable("\n".join(_lines(section))) for section in sections)


def _lines(section: Section) -> list[str]:
    lines = [section.title]
    lines += [f"  {line}" for line in textwrap.wrap(section.note, WIDTH - 2)]
    lines += _columns(section)
    for sentence in section.after:
        lines += [f"  {line}" for line in textwrap.wrap(sentence, WIDTH - 2)]
    if section.listing:
        lines += [f"  {line}".rstrip() for line in section.listing[: section.shown]]
        left = len(section.listing) - section.shown
        lines += [f"  ... {left} more"] if left > 0 else []
    return lines


def _columns(section: Section) -> list[str]:
    rows = [list(map(printable, row)) for row in ([section.heads] if section.heads else []) + list(section.rows)]
    if not rows:
        return []
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    shown = [
        "  ".join(
            f"{cell:>{w}}" if n in section.numbers else f"{cell:<{w}}"
            for n, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return [f"  {line}".rstrip() for line in shown]


def as_html(sections: Sequence[Section]) -> str:
    """The sections as HTML, for a page or a notebook."""
    return "".join(_html(section, first=number == 0) for number, section in enumerate(sections))


def _html(section: Section, first: bool) -> str:
    level = "h2" if first else "h3"
    parts = [f"<{level}>{escaped(section.title)}</{level}>"]
    parts += [f'<p class="soft">{escaped(section.note)}</p>'] if section.note else []
    if section.rows:
        rows = [[escaped(cell) for cell in row] for row in section.rows]
        parts.append(table([escaped(head) for head in section.heads], rows, section.numbers))
    parts += [f'<p class="soft">{escaped(sentence)}</p>' for sentence in section.after]
    if section.listing:
        listing = f"<pre>{escaped(chr(10).join(section.listing))}</pre>"
        parts.append(folded(section.listing_title or "All lines", listing))
    return "".join(parts)
