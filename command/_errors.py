"""What ends a command: a sentence for the user, and an exit code."""

from __future__ import annotations


class UserError(Exception):
    """The command cannot be carried out as given; the text is one sentence that says what to give instead."""
