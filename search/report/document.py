"""A page of ours: one HTML document that loads nothing from elsewhere."""

from __future__ import annotations

from ...dialects.markup import as_text
from .style import STYLE

PAGE_MARK = '<meta name="generator" content="loopwright">'
"""The mark of a page of ours, which another one may replace."""


def document(title: str, body: str, scripts: str = "") -> str:
    """Return a document of a body that is HTML, with the style sheet of all pages."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{PAGE_MARK}<title>{as_text(title)}</title><style>{STYLE}</style></head><body>{body}{scripts}</body></html>\n"
    )
