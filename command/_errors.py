"""The error that ends a command: a sentence for the user, and an exit code."""

from __future__ import annotations


class UserError(Exception):
    """The command cannot be carried out as given; the text is one sentence that says what to give instead."""


def interruption_code(error: KeyboardInterrupt) -> int:
    """The exit code of a command that Ctrl-C or a signal ended, as shells have it: 128 and the signal's number."""
    return int(getattr(error, "exit_code", 130))
