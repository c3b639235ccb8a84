"""Strings that do not end in the text of IR, found in time that grows with the text.

xDSL's lexer takes time that doubles with every character of such a string (its pattern repeats a repetition), so text
from elsewhere is looked through before it is parsed.
"""

from __future__ import annotations

import re

_PIECE = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"|[^"/]+|/')
"""A comment, a string as the lexer takes it, or what is neither."""


def unclosed_string(text: str) -> int | None:
    """Find the first string that does not end as one, and return where it starts; None where all do."""
    position = 0
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None:
            return position
        position = piece.end()
    return None
