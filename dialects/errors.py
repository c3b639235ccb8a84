"""The base of the errors that loopwright raises: `except lw.Error` catches what it refuses and what fails in it."""

from __future__ import annotations


class Error(Exception):
    """An error of loopwright's own; one that is also of a kind of Python's, as ValueError, is of both."""
