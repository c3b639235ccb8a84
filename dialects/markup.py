"""Text of programs and records as HTML, for pages and notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from html import escape

from .shown_text import printable

_LONGEST_TEXT = 200_000
"""Characters of a program that are shown: a page with more is slow to open (not measured closely)."""
_INLINE = {
    "soft": "opacity:.7",
    "bad": "color:#d1494f",
    "scroll": "overflow-x:auto",
    "number": "text-align:right;font-variant-numeric:tabular-nums",
    "wide": "text-align:left",
    "facts": "text-align:left",
    "code": "overflow-x:auto;padding-left:1.3em;font:12.5px/1.45 monospace",
    "line": "white-space:pre",
}
"""The style of each class of the style sheet where that is not at hand: colours are those of what is around."""
_CLASS = re.compile(r' class="(\w+)"')


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


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and what is to be said of each, both plain text."""
    cells = "".join(f"<tr><th>{as_text(name)}</th><td>{as_text(text)}</td></tr>" for name, text in rows)
    return f'<table class="facts">{cells}</table>'


def cut(text: str) -> str:
    """The text, of a very long one the beginning."""
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}\n... {len(text) - _LONGEST_TEXT} characters"


def folding(code: str) -> str:
    """Code whose regions can be folded: a line that ends with `{` opens one, the next `}` of its level ends it."""
    depth, parts = 0, []
    for line in cut(code).splitlines():
        if depth and line.lstrip().startswith("}"):
            parts.append("</details>")
            depth -= 1
        shown = as_text(line)
        if line.endswith("{"):
            parts.append(f'<details open><summary class="line">{shown}</summary>')
            depth += 1
        else:
            parts.append(f'<div class="line">{shown or "&nbsp;"}</div>')
    return f'<div class="code">{"".join(parts)}{"</details>" * depth}</div>'


def notebook(html: str) -> str:
    """HTML of this module as the output of a notebook's cell, which has no style sheet, light or dark."""
    return f"<div>{_CLASS.sub(_inline, html)}</div>"


def _inline(found: re.Match[str]) -> str:
    style = _INLINE.get(found[1])
    return "" if style is None else f' style="{style}"'
