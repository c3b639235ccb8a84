"""The error that ends a command: a sentence for the user, and an exit code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from ..dialects.errors import Error


class UserError(Error):
    """The command cannot be carried out as given; the text is one sentence that says what to give instead."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean resnet-18?)`, where something known is like the word but for marks, capitals, a letter or two."""
    plain = {_letters(name): name for name in sorted(known)}
    close = get_close_matches(_letters(word), plain, n=1, cutoff=0.8)
    return f" (did you mean {plain[close[0]]}?)" if close else ""


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def interruption_code(error: KeyboardInterrupt) -> int:
    """The exit code of a command that Ctrl-C or a signal ended, as shells have it: 128 and the signal's number."""
    return int(getattr(error, "exit_code", 130))
